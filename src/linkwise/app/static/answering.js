// What a person does about a question, and everything else that is written.

import { Away, get, keep, post, sendWaiting, waiting } from "./api.js";
import { $, el, plural } from "./dom.js";
import { showFigures } from "./header.js";
import { apply, panelsSoon } from "./news.js";
import { page, say, told } from "./page.js";
import { map, panels } from "./parts.js";
import { preferred, showNothingKept, showQuestion } from "./question.js";

export const SAID = { same: "Same.", different: "Different.", unsure: "Not sure.", later: "Later." };
const AHEAD = 12; // questions that are kept for when the server is away

// One thing at a time: what comes while an answer is on its way is dropped.
async function alone(work) {
  if (page.busy) return;
  page.busy = true;
  try {
    await work();
  } finally {
    page.busy = false;
  }
}

// Answers -----------------------------------------------------------------------------------------

export async function answer(relation) {
  if (!page.question) return;
  await alone(() => {
    const drawn = beginDrawing();
    press(relation);
    return send(said(relation), drawn);
  });
}

const said = (relation) => ({
  uuid: crypto.randomUUID(), a: page.question.a, b: page.question.b, relation, check: page.question.check,
  ms: Math.round(performance.now() - page.shownAt),
});

async function send(body, drawn) {
  try {
    if (waiting()) await sendWaiting(preferred());
    const before = page.state?.conflicts ?? 0;
    const reply = await post("/api/answers", body); // it is on the disk when this returns
    apply(reply, () => painted(drawn));
    leaveOut(body);
    const conflict = reply.state.conflicts > before ? " This contradicts earlier answers: see Conflicts." : "";
    say(`${SAID[body.relation]} ${effect(reply)}${conflict} Undo with Z.`);
  } catch (error) {
    drawn();
    if (error instanceof Away) goOn(body);
    told(error);
  }
}

// Until `drawn` is called, nothing else is fetched or drawn.
function beginDrawing() {
  const pressedAt = performance.now();
  map.endFlash();
  let end;
  page.drawing = new Promise((resolve) => { end = resolve; });
  return (isPainted) => {
    if (isPainted) document.documentElement.dataset.latency = (performance.now() - pressedAt).toFixed(1);
    page.drawing = null;
    end();
    panelsSoon();
    fetchAhead();
  };
}

// The second frame after a change: the first one is on the screen. Read by the measurements.
function painted(drawn) {
  requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)));
}

function press(action) {
  const button = document.querySelector(`[data-action="${action}"]`);
  button.classList.add("pressed");
  setTimeout(() => button.classList.remove("pressed"), 140);
}

function effect({ n_moved, n_settled }) {
  const moved = n_moved ? `Moved ${plural(n_moved, "item")}.` : "";
  const settled = n_settled > 0 ? `Settled ${plural(n_settled, "pair")}.` : "";
  return `${moved} ${settled}`.trim() || "Saved.";
}

// Without the server ------------------------------------------------------------------------------

const leaveOut = ({ a, b }) => { page.ahead = page.ahead.filter((one) => one.a !== a || one.b !== b); };

export async function fetchAhead() {
  if (page.ahead.length >= AHEAD || page.away) return;
  try {
    page.ahead = (await get("/api/ahead")).questions;
  } catch { /* the next time */ }
}

// Keep an answer here, and ask something that was fetched before.
function goOn(body) {
  keep("/api/answers", body);
  leaveOut(body);
  const next = page.ahead.shift();
  if (next) {
    showQuestion(next, panels);
    map.setPair(next);
  } else showNothingKept();
  if (page.state) showFigures(page.state);
}

// Other actions -----------------------------------------------------------------------------------

export async function act(path, body, words) {
  try {
    const reply = await post(path, body);
    apply(reply);
    say(words ?? effect(reply));
    panelsSoon();
    return reply;
  } catch (error) {
    told(error);
    return null;
  }
}

export const turn = (kind) => alone(async () => {
  const reply = await act(`/api/${kind}`, {}, "");
  if (reply) say(reply.turned.length ? `${kind === "undo" ? "Took back" : "Done again"}: ${describe(reply.turned)}.` : `Nothing to ${kind}.`);
});

function describe(events) {
  const [first] = events;
  if (first.a && first.b) return `${first.a.id} and ${first.b.id}, ${first.relation ?? "later"}${events.length > 1 ? " and more" : ""}`;
  return first.kind;
}

// Ask about two items next, whatever was said about them.
export async function again(a, b) {
  page.many = null;
  if (await act("/api/ask", { a, b }, "")) $("question").focus();
}

// `keys` waits for A or B.
export function bad(keys) {
  const { question } = page;
  if (!question) return;
  say("Which one is bad? Press A or B; Escape leaves it.");
  page.endChoice();
  page.endChoice = () => {
    keys.waiting = null;
    $("bad-choice")?.remove();
  };
  const choose = (which) => {
    page.endChoice();
    if (which) act("/api/flag", { item: question[which], bad: true }, `Item ${which.toUpperCase()} is left out of the questions and marked in the export.`);
    else say("");
  };
  keys.waiting = { keys: ["a", "b"], then: choose };
  $("answers").append(el("div", { class: "row", id: "bad-choice" },
    el("button", { type: "button", onclick: () => choose("a"), text: "A is bad" }),
    el("button", { type: "button", onclick: () => choose("b"), text: "B is bad" }),
    el("button", { type: "button", onclick: () => choose(null), text: "Cancel" })));
}
