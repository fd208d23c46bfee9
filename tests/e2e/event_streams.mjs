// A list of [text of an event stream, size of the pieces it comes in] in; out come, for each, the
// events as our reader gives them and as AG-UI's own client tells them.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";
import { events } from "../../docs/examples/events.mjs";

function pieces(text, size) {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start(stream) {
      for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
      stream.close();
    },
  });
}

async function ours(text, size) {
  const seen = [];
  for await (const event of events(pieces(text, size))) seen.push(event);
  return seen;
}

async function theirs(text, size) {
  const seen = [];
  const headers = { "content-type": "text/event-stream" };
  const fetch = async () => new Response(pieces(text, size), { headers });
  const agent = new HttpAgent({ url: "http://no.where/agent", threadId: "thread-1", fetch });
  await agent.runAgent({ runId: "run-1" }, { onEvent: ({ event }) => void seen.push(event) });
  return seen;
}

const readers = { ours, theirs };
const { reader, streams } = JSON.parse(readFileSync(0, "utf-8"));
const read = await Promise.all(streams.map(([text, size]) => readers[reader](text, size)));
process.stdout.write(JSON.stringify(read));
