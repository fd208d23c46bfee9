// Start an AG-UI run from a browser or from Node, and read its events as they come.
//
// AG-UI's own client for this is HttpAgent of @ag-ui/client. It imports a dozen other packages by
// their bare names, so a page needs a bundler or a directory of packages to load it, and this
// page is to work in a fresh clone that has neither. The tests feed both with the same streams.

/** What the server answered in place of a stream: its status, and the code and text it gave. */
export class Refusal extends Error {
  constructor(status, { code, message } = {}) {
    super(message ?? `The server answered with ${status}.`);
    this.status = status;
    this.code = code ?? `http_${status}`;
  }
}

/** Post a RunAgentInput and yield the events of its run; throw a Refusal where none begins. */
export async function* run(url, input, headers = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream", ...headers },
    body: JSON.stringify(input),
  });
  if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => ({})));
  yield* events(response.body);
}

/** Yield the JSON of each event in a stream of bytes, however the network has cut it up. */
export async function* events(bytes) {
  let data = [];
  for await (const line of lines(bytes)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (line === "" && data.length) yield JSON.parse(data.splice(0).join("\n"));
    else if (field === "data") data.push(value);
  }
}

async function* lines(bytes) {
  const reader = bytes.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let isAfterReturn = false; // A line end of two characters may come in two pieces.
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return; // A line without its end is half an event, and is dropped.
      const text = decoder.decode(value, { stream: true });
      if (text === "") continue;
      const fresh = isAfterReturn && text.startsWith("\n") ? text.slice(1) : text;
      isAfterReturn = text.endsWith("\r");
      const complete = (rest + fresh).split(/\r\n|\n|\r/);
      rest = complete.pop();
      yield* complete;
    }
  } finally {
    // Whoever stops reading closes the connection. The run goes on without it.
    await reader.cancel();
  }
}
