// AG-UI's own client, driven line by line: one JSON command in, one JSON answer out.
//
// A command names an agent and what it does. Several may be under way at once, so an answer
// repeats the number of its command.
import { createInterface } from "node:readline";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const agents = new Map();

// What the client logs about a failed run is in the answers too.
console.error = console.warn = () => {};

const commands = {
  open: ({ url, threadId, messages, state, headers }) => ({
    agent: new HttpAgent({
      url,
      threadId,
      initialMessages: messages,
      initialState: state,
      headers,
    }),
    result: {},
  }),
  run: async (agent, { runId, resume }) => watch(agent, { runId, resume }),
  answer: async (agent, { runId, responses }) =>
    watch(agent, { runId, resume: buildResumeArray(agent.pendingInterrupts, responses) }),
  abort: (agent) => agent.abortRun(),
  forget: (agent) => {
    agent.pendingInterrupts = [];
  },
};

// Run, and return all that an application can see of it.
async function watch(agent, parameters) {
  const seen = { events: [], outcome: null, error: null, thrown: null };
  try {
    await agent.runAgent(parameters, {
      onEvent: ({ event }) => void seen.events.push(event),
      onRunFinishedEvent: ({ outcome }) => void (seen.outcome = outcome),
      onRunErrorEvent: ({ event }) => void (seen.error = event),
    });
  } catch (error) {
    seen.thrown = { message: error.message, status: error.status, payload: error.payload };
  }
  return { ...seen, pending: agent.pendingInterrupts, state: agent.state, messages: agent.messages };
}

async function execute({ number, agent: name, does, ...rest }) {
  let result;
  try {
    if (does === "open") agents.set(name, commands.open(rest).agent);
    else result = await commands[does](agents.get(name), rest);
  } catch (error) {
    result = { refused: error.message };
  }
  process.stdout.write(JSON.stringify({ number, result }) + "\n");
}

createInterface({ input: process.stdin }).on("line", (line) => void execute(JSON.parse(line)));
