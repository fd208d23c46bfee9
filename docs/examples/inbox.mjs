// The page of inbox.html: one conversation, and beside it all that waits for approval.
//
// The server decides everything. The page shows what it was last told, and asks again: often while
// a run is at work, seldom otherwise. So a reload, a second tab and a page that was asleep all find
// the same, and the one thing that is kept here is who you are.
//
// It reads from top to bottom: what is known, what a person can do, what is drawn.
import { el, fill } from "./elements.mjs";
import { Refusal, run as runAgent } from "./events.mjs";

const UNCHANGED = "Your answer changed nothing.";
const LOOK_EVERY = { atWork: 300, otherwise: 1500 }; // milliseconds
const at = (id) => document.getElementById(id);

// --- What is known ----------------------------------------------------------------------------

const address = new URL(location);
const threadId = address.searchParams.get("thread") ?? `thread-${crypto.randomUUID()}`;
address.searchParams.set("thread", threadId);
history.replaceState(null, "", address); // From now on a reload finds this conversation.

let runs = []; // The runs of this conversation as the server tells them, oldest first.
let earlier = { runs: [], before: null }; // Those of earlier pages, and how to ask for more.
let approvals = []; // All that waits in the tenant, by expiry.
let clockAhead = 0; // How far the clock of the server, which decides, is ahead of ours.
let trouble = ""; // Why the last question was not taken.
let asideTrouble = ""; // Why the last answer given in the list was not taken.
const streamed = new Map(); // Runs that this tab has started, by id, as their events tell them.
const refusals = new Map(); // What was refused, by interrupt id, in words.
const drafts = new Map(); // Corrections that are being written, by interrupt id.
const sending = new Set(); // Interrupt and run ids with a request of ours under way.

const actor = () => at("actor").value;
const now = () => Date.now() + clockAhead;
const isExpired = ({ expiresAt }) => expiresAt !== null && Date.parse(expiresAt) <= now();
const isLive = ({ status }) => status === "reserved" || status === "started";
const isPending = ({ status }) => status === "pending";
const allRuns = () => [...earlier.runs, ...runs, ...streamed.values()];

/** Ask the server; throw a Refusal where it refuses, and the browser's error where it is gone. */
async function ask(path, body) {
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: { "x-demo-actor": actor(), ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

const askThread = (id, before) =>
  ask(`thread?${new URLSearchParams({ threadId: id, ...(before && { before }) })}`);

/** Ask what there is now and show it. One look at a time, so that none is older than the last. */
let looking = Promise.resolve();
function look() {
  looking = looking.catch(reportError).then(lookOnce);
  return looking;
}

async function lookOnce() {
  let answers = null;
  try {
    answers = await Promise.all([askThread(threadId), ask("approvals")]);
  } catch (error) {
    const isGone = !(error instanceof Refusal);
    at("connection").textContent = isGone
      ? "The server does not answer. This page keeps trying."
      : sentence(error.message);
  }
  at("connection").hidden = answers !== null;
  if (answers) learn(...answers);
  draw();
}

function learn(thread, waiting) {
  clockAhead = Date.parse(waiting.now) - Date.now();
  approvals = waiting.approvals.map((each) => ({ ...each, status: "pending" }));
  const known = new Set(thread.runs.map(({ runId }) => runId));
  if (!earlier.runs.length) earlier.before = thread.before;
  earlier.runs = earlier.runs.filter(({ runId }) => !known.has(runId));
  // A run that is streamed here is ahead of what was asked, until its stream has ended.
  for (const [id, run] of streamed) if (run.hasEnded && known.has(id)) streamed.delete(id);
  runs = thread.runs.filter(({ runId }) => !streamed.has(runId));
  tellNews();
}

async function keepLooking() {
  for (;;) {
    if (!document.hidden) await look().catch(reportError);
    const pause = allRuns().some(isLive) ? LOOK_EVERY.atWork : LOOK_EVERY.otherwise;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Say to a screen reader what was not there before. What a reload finds again is no news. */
let told = null;
function tellNews() {
  const news = approvals.map(({ interrupt }) => [
    `open ${interrupt.id}`,
    `Approval needed: ${interrupt.message}`,
  ]);
  for (const { interrupt } of approvals.filter(isExpired))
    news.push([`expired ${interrupt.id}`, `Expired: ${interrupt.message}`]);
  for (const run of runs) {
    for (const { id, content } of run.messages) if (content) news.push([id, content]);
    for (const request of run.requests.filter((each) => !isPending(each)))
      news.push([
        `closed ${request.interrupt.id}`,
        `${request.interrupt.message} ${outcome(request)}`,
      ]);
    if (run.status === "failed") news.push([`failed ${run.runId}`, run.ending.message]);
  }
  const fresh = told ? news.filter(([key]) => !told.has(key)) : [];
  told = new Set([...(told ?? []), ...news.map(([key]) => key)]);
  if (fresh.length) announce(fresh.map(([, text]) => text).join(" "));
}

function announce(text) {
  at("announcer").textContent = text;
}

// --- What a person can do ---------------------------------------------------------------------

/** Start a run with a question, and show its events as they come. */
async function send(question) {
  const runId = `run-${crypto.randomUUID()}`;
  const message = { id: `message-${crypto.randomUUID()}`, role: "user", content: question };
  const history = allRuns().flatMap((run) => [...asked(run), ...run.messages]);
  const input = {
    threadId,
    runId,
    messages: [...history, message],
    state: {},
    tools: [],
    context: [],
    forwardedProps: {},
  };
  const run = {
    runId,
    actor: actor(),
    status: "started",
    input,
    messages: [],
    requests: [],
    ending: null,
  };
  trouble = "";
  streamed.set(runId, run);
  draw();
  try {
    for await (const event of runAgent("agent", input, { "x-demo-actor": actor() })) {
      take(run, event);
      draw();
    }
    run.hasEnded = true; // From here on the server tells it.
  } catch (error) {
    streamed.delete(runId);
    trouble =
      error instanceof Refusal
        ? sentence(error.message)
        : "The connection was lost. If the run has begun, it goes on.";
    announce(trouble);
  }
  await look();
  // What was not taken can be sent again.
  const isKnown = allRuns().some((each) => each.runId === runId);
  if (!isKnown && at("question").value === "") at("question").value = question;
}

/** Add to a run what one of its events tells. */
function take(run, event) {
  if (event.type === "TEXT_MESSAGE_START")
    run.messages.push({ id: event.messageId, role: event.role, content: "" });
  if (event.type === "TEXT_MESSAGE_CONTENT")
    for (const message of run.messages)
      if (message.id === event.messageId) message.content += event.delta;
  if (event.type === "TOOL_CALL_RESULT")
    run.messages.push({
      id: event.messageId,
      role: "tool",
      toolCallId: event.toolCallId,
      content: event.content,
    });
}

/** Answer one request. Where the server refuses, say in words what stands in its place. */
async function decide(request, decision, more = {}) {
  const { threadId: thread, runId, interrupt } = request;
  asideTrouble = "";
  await sendOnce(
    interrupt.id,
    () => ask("answer", { threadId: thread, runId, interruptId: interrupt.id, decision, ...more }),
    async (error) => {
      const words = await whyRefused(error, request);
      if (thread !== threadId) asideTrouble = `${interrupt.message} ${words}`;
      return words;
    },
  );
  // A correction that was refused can be corrected in its turn.
  if (!refusals.has(interrupt.id)) drafts.delete(interrupt.id);
  draw();
}

/** Cancel a run that is at work, or every open request of one that waits. */
const cancel = ({ runId }) =>
  sendOnce(
    runId,
    () => ask("cancel", { threadId, runId }),
    (error) =>
      error instanceof Refusal ? sentence(error.message) : "The server could not be reached.",
  );

/** Send what concerns this run or request, unless that is under way, and show what came of it. */
async function sendOnce(id, request, inWords) {
  if (sending.has(id)) return;
  sending.add(id);
  refusals.delete(id);
  draw();
  try {
    await request();
  } catch (error) {
    refusals.set(id, await inWords(error));
  }
  await look();
  if (refusals.has(id)) announce(refusals.get(id));
  sending.delete(id);
  draw();
}

/** Say why an answer was not taken, and what stands in its place, as the server tells it now. */
async function whyRefused(error, request) {
  if (!(error instanceof Refusal))
    return "The server could not be reached, so it is not known whether your answer has arrived.";
  if (error.code === "interrupt_expired")
    return `Too late: this expired at ${clock(request.expiresAt)} and can only be closed. ${UNCHANGED}`;
  const thread = await askThread(request.threadId).catch(() => ({ runs: [] }));
  const held = thread.runs.flatMap((run) => run.requests);
  const standing = held.find(({ interrupt }) => interrupt.id === request.interrupt.id);
  if (error.code !== "interrupt_decided" || !standing) return sentence(error.message);
  return standing.status === "cancelled"
    ? `Nothing is left to answer. ${outcome(standing)} ${UNCHANGED}`
    : `It is decided already. ${outcome(standing)} That stands. ${UNCHANGED}`;
}

/** Return what the server says as a sentence of its own. */
const sentence = (message) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;

async function showEarlier() {
  const page = await askThread(threadId, earlier.before).catch(() => null);
  if (!page) return; // The next look tells why.
  earlier = { runs: [...page.runs, ...earlier.runs], before: page.before };
  draw();
}

// --- What is drawn ----------------------------------------------------------------------------

function draw() {
  const shown = allRuns();
  const items = shown.map(({ runId }) => [runId, null, () => el("li", { className: "run" })]);
  if (earlier.before) items.unshift(["earlier", null, earlierView]);
  fill(at("runs"), items);
  for (const run of shown)
    fill(at("runs").querySelector(`[data-key="${CSS.escape(run.runId)}"]`), partsOf(run));
  fill(
    at("approvals"),
    approvals.map((each) => [each.interrupt.id, facts(each, each), waitingView]),
  );
  drawAsk(shown);
  at("nothing").hidden = approvals.length > 0;
  at("aside-trouble").hidden = !asideTrouble;
  at("aside-trouble").textContent = asideTrouble;
  for (const count of document.querySelectorAll("[data-count]"))
    count.textContent = approvals.length;
  document.title = approvals.length ? `(${approvals.length}) Refund desk` : "Refund desk";
  tick();
}

/** Return all that the picture of a request depends on. */
const facts = (request, { runId, threadId: thread = threadId }) => ({
  ...request,
  runId,
  threadId: thread,
  me: actor(),
  isExpired: isPending(request) && isExpired(request),
  isSending: sending.has(request.interrupt.id),
  refusal: refusals.get(request.interrupt.id),
  isCorrected: drafts.has(request.interrupt.id),
});

function drawAsk(shown) {
  const isAtWork = shown.some(isLive);
  const isWaiting = shown.some((run) => run.requests.some(isPending));
  const hadFocus = at("ask").contains(document.activeElement);
  at("hint").textContent = isWaiting
    ? "This conversation waits for an answer. Answer the request, cancel the run, or start a new conversation."
    : "Name the order, such as A-1042. Two orders make two requests.";
  for (const part of at("ask").querySelectorAll("label, textarea, button")) part.hidden = isWaiting;
  at("question").readOnly = isAtWork;
  at("send").setAttribute("aria-disabled", isAtWork);
  at("trouble").hidden = !trouble;
  at("trouble").textContent = trouble;
  // Whoever has just asked goes on with the request that came of it.
  if (isWaiting && hadFocus) document.querySelector("#runs [data-status=pending] h2")?.focus();
}

/** Return the parts of a run, from the question to how it ended. */
function partsOf(run) {
  const isSending = sending.has(run.runId);
  const refusal = refusals.get(run.runId);
  const isWaiting = run.requests.some(isPending);
  const foot = { ...run, isSending, isWaiting, mayCancel: isWaiting || isLive(run) };
  return [
    ...asked(run).map(({ content }) => [
      "question",
      { content: asText(content), actor: run.actor },
      questionView,
    ]),
    ...run.messages
      .filter(({ content }) => content)
      .map((message) => [`message ${message.id}`, message, messageView]),
    ...run.requests.map((each) => [each.interrupt.id, facts(each, run), requestView]),
    ["foot", foot, footView],
    ...(refusal ? [["refusal", refusal, refusalView]] : []),
  ];
}

const questionView = ({ content, actor }) =>
  el("p", { className: "question" }, el("span", { className: "who" }, actor), content);

const footView = (run) =>
  el("div", { className: "foot" }, statusView(run), run.mayCancel && cancelButton(run));

const refusalView = (words) => el("p", { className: "refusal" }, words);

const earlierView = () =>
  el(
    "li",
    {},
    el(
      "button",
      {
        type: "button",
        className: "plain",
        id: "earlier",
        data: { then: "conversation" },
        onclick: showEarlier,
      },
      "Show earlier runs",
    ),
  );

/** Return the question that a run was started with; one that only brings answers has none. */
const asked = ({ input }) =>
  input.resume?.length ? [] : input.messages.filter(({ role }) => role === "user").slice(-1);

const messageView = ({ role, content }) =>
  role === "tool"
    ? el("p", { className: "result" }, el("span", { className: "who" }, "Result"), content)
    : el("p", { className: "said" }, content);

function statusView(run) {
  const { isWaiting } = run;
  const isWithdrawn =
    run.requests.length > 0 && run.requests.every(({ status }) => status === "cancelled");
  const words = {
    reserved: "At work",
    started: "At work",
    succeeded: "Done",
    cancelled: "Cancelled",
    interrupted: isWaiting ? "Waits for approval" : isWithdrawn ? "Cancelled" : "Answered",
    failed: `Failed: ${run.ending?.message}`,
  }[run.status];
  return el(
    "p",
    { className: "status", data: { status: isWaiting ? "waiting" : run.status } },
    words,
  );
}

const cancelButton = (run) =>
  el(
    "button",
    {
      type: "button",
      className: "plain",
      id: `cancel-${run.runId}`,
      data: { then: "conversation" },
      aria: { disabled: run.isSending },
      onclick: () => run.isSending || cancel(run),
    },
    "Cancel run",
  );

function requestView(request) {
  const { id, message } = request.interrupt;
  return el(
    "article",
    { className: "request", data: { status: request.status }, aria: { labelledby: `title-${id}` } },
    el("h2", { id: `title-${id}`, tabIndex: -1 }, message),
    argumentsView(request),
    isPending(request) && whoMayAnswer(request),
    isPending(request) ? leftView(request) : el("p", { className: "outcome" }, outcome(request)),
    request.refusal && refusalView(request.refusal),
    request.isCorrected && isPending(request) ? correctionView(request) : buttons(request, "card"),
  );
}

function waitingView(request) {
  const { id, message } = request.interrupt;
  const isHere = request.threadId === threadId;
  const href = isHere ? `#title-${id}` : `?${new URLSearchParams({ thread: request.threadId })}`;
  return el(
    "li",
    { className: "waiting" },
    el("h3", { id: `list-title-${id}` }, el("a", { href }, message)),
    leftView(request),
    // What this conversation shows in full is not asked about twice on one page.
    ...(isHere
      ? [el("p", { className: "quiet" }, "In this conversation.")]
      : [argumentsView(request), whoMayAnswer(request), buttons(request, "list")]),
  );
}

const argumentsView = (request) =>
  el(
    "dl",
    { className: "arguments" },
    ...Object.entries(request.arguments).map(([name, value]) =>
      el("div", {}, el("dt", {}, inWords(name)), el("dd", {}, asText(value))),
    ),
  );

/** Return `orderId` as "Order id". */
const inWords = (name) =>
  name
    .replace(/[_-]+/g, " ")
    .replace(/(?<=[a-z0-9])([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^./, (letter) => letter.toUpperCase());

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function whoMayAnswer({ mayAnswer, me, isExpired }) {
  if (isExpired) return null;
  const others = mayAnswer.filter((name) => name !== me);
  const names = [...(mayAnswer.includes(me) ? ["you"] : []), ...others].join(" or ");
  return el("p", { className: "quiet" }, sentence(`${names} may answer`));
}

const leftView = ({ createdAt, expiresAt }) =>
  expiresAt === null
    ? el("p", { className: "left" }, "Open until it is answered.")
    : el(
        "div",
        { className: "left", data: { created: createdAt, expires: expiresAt } },
        el("time", { dateTime: expiresAt, title: new Date(expiresAt).toLocaleString() }),
        el("span", { className: "track", aria: { hidden: true } }, el("span", {})),
      );

function buttons(request, place) {
  if (!isPending(request)) return null;
  const { id, message } = request.interrupt;
  const button = (name, className, does) =>
    el(
      "button",
      {
        type: "button",
        className,
        id: `${place}-${name.toLowerCase()}-${id}`,
        // Where the focus goes when the button is gone.
        data: { then: place === "card" ? `title-${id}` : "waiting-title" },
        aria: { disabled: request.isSending, label: `${name}: ${message}` },
        onclick: does,
      },
      name,
    );
  if (request.isExpired)
    return el(
      "div",
      { className: "buttons" },
      button("Close", "", () => decide(request, "cancelled")),
    );
  if (!request.mayAnswer.includes(request.me)) return null;
  return el(
    "div",
    { className: "buttons" },
    button("Approve", place === "card" ? "primary" : "approve", () => decide(request, "approved")),
    button("Deny", "danger", () => decide(request, "denied")),
    place === "card" &&
      request.correctable.length > 0 &&
      button("Correct", "plain", () => openCorrection(request)),
  );
}

function openCorrection({ interrupt, arguments: given, correctable }) {
  const values = Object.fromEntries(correctable.map((name) => [name, asText(given[name])]));
  drafts.set(interrupt.id, { values, note: "" });
  draw();
  at(`correct-${interrupt.id}`).querySelector("input").focus();
}

function closeCorrection({ interrupt }) {
  drafts.delete(interrupt.id);
  draw();
  at(`card-correct-${interrupt.id}`)?.focus();
}

function sendCorrection(request) {
  const { values, note } = drafts.get(request.interrupt.id);
  // A value that was no text is written as JSON.
  const read = ([name, text]) => [
    name,
    typeof request.arguments[name] === "string" ? text : JSON.parse(text),
  ];
  try {
    const correctedArguments = {
      ...request.arguments,
      ...Object.fromEntries(Object.entries(values).map(read)),
    };
    decide(request, "denied", { correctedArguments, ...(note && { note }) });
  } catch {
    refusals.set(request.interrupt.id, "A value that is no text must be written as JSON.");
    draw();
  }
}

/** Return the form for other arguments. They are another request, so the open one is denied. */
function correctionView(request) {
  const { id } = request.interrupt;
  const draft = drafts.get(id);
  const field = (label, key, holder, more) => {
    const write = ({ target }) => void (holder[key] = target.value);
    const input = el("input", { id: `correct-${key}-${id}`, value: holder[key], ...more });
    input.addEventListener("input", write);
    return el("label", { htmlFor: input.id }, label, input);
  };
  return el(
    "form",
    {
      className: "correction",
      id: `correct-${id}`,
      onsubmit: (event) => {
        event.preventDefault();
        sendCorrection(request);
      },
      onkeydown: ({ key }) => key === "Escape" && closeCorrection(request),
    },
    el(
      "p",
      { className: "quiet" },
      "Another value is another request. This one is denied, and a new one is raised, to be approved in its turn.",
    ),
    ...request.correctable.map((name) =>
      field(inWords(name), name, draft.values, { required: true }),
    ),
    field("Why (optional)", "note", draft),
    el(
      "div",
      { className: "buttons" },
      el(
        "button",
        {
          className: "primary",
          id: `correct-send-${id}`,
          data: { then: `title-${id}` },
          aria: { disabled: request.isSending },
        },
        "Deny and ask anew",
      ),
      el(
        "button",
        {
          type: "button",
          className: "plain",
          id: `correct-back-${id}`,
          onclick: () => closeCorrection(request),
        },
        "Back",
      ),
    ),
  );
}

/** Say what was decided, such as "Approved by bob at 10:31:07." */
function outcome({ status, decidedBy, decidedAt, note, correctedArguments }) {
  const denied = correctedArguments ? "Denied and corrected" : "Denied";
  const word = { approved: "Approved", denied, cancelled: "Cancelled" }[status];
  const by = decidedBy ? ` by ${decidedBy}` : "";
  return `${word}${by} at ${clock(decidedAt)}.${note ? ` “${note}”` : ""}`;
}

const clock = (time) => new Date(time).toLocaleTimeString();

/** Show the time that is left, each second; a screen reader is only told when there is none. */
function tick() {
  for (const left of document.querySelectorAll("[data-expires]")) {
    const expires = Date.parse(left.dataset.expires);
    const rest = expires - now();
    const total = Math.max(1, expires - Date.parse(left.dataset.created));
    left.dataset.urgency = rest <= 0 ? "over" : rest < 60_000 ? "soon" : "none";
    left.querySelector("time").textContent =
      rest > 0 ? `${duration(rest)} left` : `Expired at ${clock(expires)}. It can only be closed.`;
    left.querySelector(".track span").style.width =
      `${Math.min(100, Math.max(0, (100 * rest) / total))}%`;
  }
}

function duration(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}

at("actor").value = sessionStorage.getItem("actor") ?? "alice";
at("actor").addEventListener("change", () => {
  sessionStorage.setItem("actor", actor());
  look();
});
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("question").value.trim();
  if (!question || at("send").getAttribute("aria-disabled") === "true") return;
  at("question").value = "";
  send(question);
});
at("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("ask").requestSubmit();
  }
});
document.addEventListener("visibilitychange", () => document.hidden || look());
setInterval(draw, 1000);
keepLooking();
