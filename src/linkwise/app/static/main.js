// The page: one question at a time, and everything that follows from the answer.

import { Away, Refused, TAB, bytes, checking, follow, get, keep, post, sendWaiting, setChecking, waiting } from "./api.js";
import { brief, letter, pairView, picture } from "./cards.js";
import { $, el, number, plural, remember, remembered, replace } from "./dom.js";
import { Keys } from "./keys.js";
import { ItemMap } from "./map.js";
import { Panels, stopFigures } from "./panels.js";

const page = { state: null, question: null, ahead: [], shownAt: 0, busy: false, drawing: null, many: null, all: false, away: false };
const options = remembered("options", { marks: true, wordMarks: false, blind: true });

// Saying ----------------------------------------------------------------------------------------

function say(text) { $("live").textContent = text; }

function warn(text) {
  $("banner").hidden = !text;
  $("banner").textContent = text ?? "";
}

const trouble = (reason) => `The clusters could not be worked out: ${reason}. Your answers are kept; answering goes on.`;

function told(error) {
  if (error instanceof Away) {
    page.away = true;
    warn(`The server cannot be reached. ${waiting() ? `${plural(waiting(), "answer")} kept in this browser; ` : ""}you can go on, and they are sent when it is back.`);
  } else if (error instanceof Refused) say(error.message);
  else throw error;
}

// State -----------------------------------------------------------------------------------------

// The question first: the map, which takes longer to draw, follows in the next frame.
function apply(reply, then = () => {}) {
  if (reply.state) showState(reply.state);
  if (reply.question !== undefined && !page.many) showQuestion(reply.question);
  requestAnimationFrame(() => {
    if (reply.moved?.length) map.move(reply.moved);
    else if (reply.moved === null) fetchLabels();
    then();
  });
  page.away = false;
  if (reply.state) warn(reply.state.error ? trouble(reply.state.error) : null);
}

function showState(state) {
  page.state = state;
  $("title").textContent = state.title;
  document.title = `${state.title} – linkwise`;
  $("n-answers").textContent = number(state.answers);
  $("n-settled").textContent = number(state.settled);
  $("n-clusters").textContent = state.clusters ? number(state.clusters) : "–";
  panels.total = state.clusters;
  panels.bySize = map.bySize = state.by_size;
  $("n-conflicts").textContent = number(state.conflicts);
  $("conflict-figure").classList.toggle("alert", state.conflicts > 0);
  $("badge").textContent = state.conflicts;
  $("badge").hidden = !state.conflicts;
  $("truth-figure").hidden = state.ari === null;
  if (state.ari !== null) {
    const from = state.start_ari === null || state.start_ari === state.ari ? "" : `${state.start_ari.toFixed(2)} → `;
    $("n-ari").textContent = from + state.ari.toFixed(2);
  }
  $("open-name").textContent = state.who;
  $("undo").disabled = !state.undo;
  $("redo").disabled = !state.redo;
  $("doing").textContent = state.doing ? `${state.doing}…` : "";
  $("map-note").textContent = state.map.name === "graph" ? "near means similar" : "main axes of the data";
  $("advice").textContent = state.stop.advice;
  $("stop-figures").textContent = stopFigures(state.stop);
  $("stop").classList.toggle("reached", state.stop.reached);
  $("saved").classList.toggle("waiting", waiting() > 0);
  $("saved").textContent = waiting() ? `${waiting()} waiting` : "saved";
}

let mapRev = -1, labelRev = -1;

async function fetchLabels() {
  try {
    map.setLabels(await bytes("/api/labels"));
  } catch (error) {
    if (!(error instanceof Refused)) told(error);
  }
}

async function refresh() {
  try {
    const { state } = await get("/api/state");
    if (page.drawing) { page.drawing.due = true; return; } // its reply tells more, with the next question
    const isNew = state.rev !== labelRev;
    showState(state);
    if (state.map.rev !== mapRev && state.map.rev > 0) {
      mapRev = state.map.rev;
      map.setPoints(await bytes("/api/points"));
    }
    if (isNew && state.clusters) {
      labelRev = state.rev;
      await fetchLabels();
      page.shown = state.rev;
      panelsSoon();
    }
    if (!page.question && !page.many && !page.busy) await ask();
    warn(state.error ? trouble(state.error) : null);
  } catch (error) {
    told(error);
  }
}

// After an answer there are news of the clusters, too: once is enough for both.
let panelsDue = null;
function panelsSoon() {
  panelsDue ??= setTimeout(() => { panelsDue = null; panels.refresh().catch(told); }, 40);
}

let refreshing = null;
function refreshSoon() {
  if (page.drawing) { page.drawing.due = true; return; } // the answer first
  if (refreshing) { refreshing.again = true; return; }
  refreshing = { again: false };
  refresh().finally(() => {
    const { again } = refreshing;
    refreshing = null;
    if (again) refreshSoon();
  });
}

// Questions -------------------------------------------------------------------------------------

const preferred = () => {
  const known = sessionStorage.getItem("linkwise-question");
  return known ? `?prefer=${known}` : "";
};

async function ask() {
  apply(await get(`/api/question${preferred()}`));
}

async function fetchAhead() {
  try {
    page.ahead = (await get("/api/ahead")).questions;
  } catch { /* the next time */ }
}

function showQuestion(question) {
  page.question = question;
  page.many = null;
  document.body.dataset.mode = "pair";
  $("mode-pair").setAttribute("aria-pressed", "true");
  $("mode-many").setAttribute("aria-pressed", "false");
  $("question-title").textContent = "Do these two belong together?";
  $("context").hidden = true;
  $("answers").hidden = false;
  for (const button of document.querySelectorAll("[data-action]")) {
    if (!["undo", "redo"].includes(button.dataset.action)) button.disabled = !question;
  }
  if (!question) { showEnd(); return; }
  sessionStorage.setItem("linkwise-question", question.id);
  $("why").textContent = `Why this one: ${question.why}.`;
  $("question").dataset.pair = question.id;
  drawCards();
  map.setPair(question.a, question.b);
  page.shownAt = performance.now();
}

function drawCards() {
  const { question } = page;
  const redraw = () => { page.all = true; drawCards(); };
  const view = pairView(question, { ...options, all: page.all, redraw });
  replace($("cards"), view, options.blind ? null : opinion());
}

// What the clustering says, if the person wants to see it before answering
function opinion() {
  if (!map.labels) return null;
  const [a, b] = [map.labels[page.question.a], map.labels[page.question.b]];
  return el("p", { class: "small", text: a === b ? `Now both in ${panels.name(a)}.` : `Now A in ${panels.name(a)}, B in ${panels.name(b)}.` });
}

function showEnd() {
  sessionStorage.removeItem("linkwise-question");
  map.setPair(null);
  $("why").textContent = "";
  delete $("question").dataset.pair;
  if (page.state && (page.state.doing || !page.state.clusters)) {
    replace($("cards"), el("p", { class: "waiting", text: "Finding the first clusters. Questions come in a moment…" }));
    return;
  }
  $("question-title").textContent = "Nothing is left to ask";
  replace($("cards"), el("div", { class: "finish" },
    el("h3", { text: "Everything follows from your answers" }),
    el("p", { text: `${plural(page.state.answers, "answer")} settled ${plural(page.state.settled, "pair")}.` }),
    el("p", {}, el("button", { type: "button", class: "strong", onclick: openExport, text: "Export the clusters" }))));
}

const SAID = { same: "Same.", different: "Different.", unsure: "Not sure.", later: "Later." };

async function answer(relation) {
  const { question } = page;
  if (!question || page.busy) return;
  const pressedAt = performance.now();
  page.busy = true;
  page.drawing = { due: false };
  map.endFlash();
  press(relation);
  const body = {
    uuid: crypto.randomUUID(), a: question.a, b: question.b, relation, check: question.check,
    ms: Math.round(performance.now() - page.shownAt),
  };
  try {
    if (waiting()) await sendWaiting();
    const reply = await post("/api/answers", body);
    const before = page.state.conflicts;
    apply(reply, () => painted(pressedAt, drawn));
    const conflict = reply.state.conflicts > before ? " This contradicts earlier answers: see Conflicts." : "";
    say(`${SAID[relation]} ${effect(reply)}${conflict} Undo with Z.`);
    if (page.ahead.length < 12) fetchAhead();
    page.ahead = page.ahead.filter((one) => one.id !== question.id);
  } catch (error) {
    drawn();
    if (error instanceof Away) goOn(body);
    told(error);
  } finally {
    page.busy = false;
  }
}

// Everything else that has changed is fetched when the answer and the next question are on the screen.
function drawn() {
  const due = page.drawing?.due;
  page.drawing = null;
  if (due) refreshSoon();
  panelsSoon();
}

function effect(reply) {
  const moved = reply.n_moved ? `Moved ${plural(reply.n_moved, "item")}.` : "";
  const settled = reply.n_settled > 0 ? `Settled ${plural(reply.n_settled, "pair")}.` : "";
  return `${moved} ${settled}`.trim() || "Saved.";
}

// The server is away: keep the answer here, and ask something that was fetched before.
function goOn(body) {
  keep("/api/answers", body);
  page.ahead = page.ahead.filter((one) => one.id !== `${body.a}-${body.b}`);
  const next = page.ahead.shift();
  if (next) showQuestion(next);
  else {
    page.question = null;
    replace($("cards"), el("p", { class: "waiting", text: "No more questions until the server is back. Your answers are kept in this browser." }));
  }
  showState(page.state);
}

async function comeBack() {
  try {
    const reply = waiting() ? await sendWaiting() : null;
    if (reply) apply(reply);
    warn(null);
    if (page.away || reply) {
      page.away = false;
      mapRev = labelRev = -1;
      await ask();
      refreshSoon();
    }
  } catch (error) {
    told(error);
  }
}

// From the key to the frame after everything is drawn; read by the measurements
function painted(from, then) {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.latency = (performance.now() - from).toFixed(1);
    then();
  }));
}

function press(action) {
  const button = document.querySelector(`[data-action="${action}"]`);
  button?.classList.add("pressed");
  setTimeout(() => button?.classList.remove("pressed"), 140);
}

async function turn(kind) {
  if (page.busy) return;
  page.busy = true;
  try {
    const reply = await post(`/api/${kind}`, {});
    apply(reply);
    say(reply.turned.length ? `${kind === "undo" ? "Took back" : "Done again"}: ${describe(reply.turned)}.` : `Nothing to ${kind}.`);
    panels.refresh().catch(told);
  } catch (error) {
    told(error);
  } finally {
    page.busy = false;
  }
}

function describe(events) {
  const [first] = events;
  if (first.a && first.b) return `${first.a.id} and ${first.b.id}, ${first.relation ?? "later"}${events.length > 1 ? " and more" : ""}`;
  return first.kind;
}

async function bad() {
  const { question } = page;
  if (!question) return;
  say("Which one is bad? Press A or B; Escape leaves it.");
  const choose = (which) => {
    keys.waiting = null;
    if (which) act("/api/flag", { item: question[which], bad: true }, `Item ${which.toUpperCase()} is left out of the questions and marked in the export.`);
    else say("");
    $("bad-choice")?.remove();
  };
  keys.waiting = { keys: ["a", "b"], then: choose };
  $("bad-choice")?.remove();
  $("answers").append(el("div", { class: "row", id: "bad-choice" },
    el("button", { type: "button", onclick: () => choose("a"), text: "A is bad" }),
    el("button", { type: "button", onclick: () => choose("b"), text: "B is bad" }),
    el("button", { type: "button", onclick: () => choose(null), text: "Cancel" })));
}

async function act(path, body, words) {
  try {
    const reply = await post(path, body);
    apply(reply);
    say(words ?? effect(reply));
    await panels.refresh();
    return reply;
  } catch (error) {
    told(error);
    return null;
  }
}

// Context ---------------------------------------------------------------------------------------

async function context() {
  const box = $("context");
  if (!box.hidden || !page.question) { box.hidden = true; return; }
  const pair = [page.question.a, page.question.b];
  const found = await Promise.all(pair.map((index) => get(`/api/context?id=${index}`)));
  // A and B are in full view above.
  const others = (items, most) => items.filter((item) => !pair.includes(item.index)).slice(0, most);
  const list = (items) => el("ul", { class: "examples" }, items.map((item) => el("li", {}, ...brief(item))));
  replace(box, el("div", { class: "two" }, found.map((one, k) => el("div", {},
    el("p", { class: "small" }, letter("AB"[k]), "nearest items"), list(others(one.near, 3)),
    el("p", { class: "small", text: "clear cases of its cluster now" }), list(others(one.clear, 2))))));
  box.hidden = false;
}

// One against many --------------------------------------------------------------------------------

async function openMany() {
  const { many } = await get("/api/many");
  if (!many || !many.others.length) { say("There is nothing to compare now."); return; }
  page.many = { ...many, same: new Set() };
  page.question = null;
  document.body.dataset.mode = "many";
  $("mode-pair").setAttribute("aria-pressed", "false");
  $("mode-many").setAttribute("aria-pressed", "true");
  $("question-title").textContent = "Which of these belong with A?";
  $("why").textContent = "Digits choose, Enter gives all answers at once. What is not chosen is different.";
  $("answers").hidden = true;
  drawMany();
}

function drawMany() {
  const { cards, same } = page.many;
  const [first, ...others] = cards;
  replace($("cards"),
    el("article", { class: "card" }, el("div", { class: "card-head" }, letter("A"), el("span", { class: "item-id", text: first.id })), ...glimpse(first)),
    el("div", { class: "many" }, others.map((card, k) => {
      const button = el("button", { type: "button", class: "card", "aria-pressed": String(same.has(k)), onclick: () => toggle(k) },
        el("div", { class: "card-head" }, el("kbd", { text: k + 1 }), " ", el("span", { class: "item-id", text: card.id })),
        ...glimpse(card), el("p", { class: "state", text: same.has(k) ? "✓ same as A" : "different" }));
      return button;
    })),
    el("div", { class: "row" },
      el("button", { type: "button", class: "strong", id: "submit-many", onclick: submitMany }, "Answer all ", el("kbd", { text: "Enter" })),
      el("button", { type: "button", onclick: leaveMany, text: "Back to pairs" })));
}

function glimpse(card) {
  if (card.media) return [el("img", { class: "thumb", src: card.media, alt: `image of ${card.id}` })];
  if (card.text !== undefined) return [el("p", { class: "brief", text: card.text })];
  const fields = card.fields.length ? card.fields.map(([name, value]) => `${name}: ${value}`) : (card.features ?? []).slice(0, 6).map((name, k) => `${name}: ${card.values[k]}`);
  return [el("p", { class: "brief", text: fields.slice(0, 8).join("\n") })];
}

function toggle(k) {
  const { same } = page.many;
  if (k >= page.many.others.length) return;
  if (same.has(k)) same.delete(k);
  else same.add(k);
  drawMany();
  say(`${page.many.cards[k + 1].id}: ${same.has(k) ? "same as A" : "different"}.`);
}

async function submitMany() {
  const { a, others, same } = page.many;
  const answers = others.map((b, k) => ({ a, b, relation: same.has(k) ? "same" : "different" }));
  if (await act("/api/answers", { answers })) await openMany();
}

async function leaveMany() {
  page.many = null;
  await ask();
}

// Map -------------------------------------------------------------------------------------------

let hovered = null;
const cache = new Map();

async function hover(index, x, y) {
  if (index === hovered) return;
  hovered = index;
  const tip = $("tip");
  if (index === null || index === undefined) { tip.hidden = true; return; }
  if (!cache.has(index)) {
    try {
      if (cache.size > 500) cache.clear();
      cache.set(index, (await get(`/api/items?ids=${index}`)).cards[0]);
    } catch { return; }
  }
  if (hovered !== index) return;
  const card = cache.get(index);
  const label = map.labels?.[index];
  replace(tip, el("b", { text: card.id }), label === undefined ? null : el("span", { class: "small", text: `  ${panels.name(label)}` }),
    el("div", { class: "brief" }, ...glimpse(card)));
  tip.hidden = false;
  const { width, height } = $("canvas-box").getBoundingClientRect();
  tip.style.left = `${Math.min(x + 14, width - 270)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, height - 110))}px`;
}

async function chosen(index) {
  if (index === null) return;
  const card = (await get(`/api/items?ids=${index}`)).cards[0];
  dialog(card.id, glimpse(card), card.media ? picture(card) : null, compareButtons(index));
}

function compareButtons(index) {
  if (!page.question) return null;
  const { a, b } = page.question;
  return el("div", { class: "row" }, [["A", a], ["B", b]].filter(([, other]) => other !== index).map(([name, other]) =>
    el("button", { type: "button", text: `Compare with ${name}`, onclick: () => { $("dialog").close(); again(other, index); } })));
}

async function selected(samples) {
  const box = $("selection");
  const close = () => { box.hidden = true; map.clearLasso(); };
  if (samples.length < 2) { close(); say("The selection has fewer than two items."); return; }
  if (samples.length > 5000) { close(); say(`The selection has ${number(samples.length)} items; 5,000 are the most.`); return; }
  const same = { samples, relation: "same" };
  let preview;
  try {
    preview = await post("/api/preview", same);
  } catch (error) { told(error); close(); return; }
  const others = el("select", { "aria-label": "cluster that these are not in" }, panels.clusters.map((one) => el("option", { value: one.id, text: panels.name(one.id) })));
  const note = el("p", { class: "small", text: consequence(preview) });
  const give = async (body) => { if (await act("/api/select", body)) close(); };
  const different = () => {
    const cluster = panels.clusters.find((one) => one.id === Number(others.value));
    return { samples, relation: "different", other: cluster.examples[0].index };
  };
  others.addEventListener("change", async () => { note.textContent = consequence(await post("/api/preview", different())); });
  replace(box, el("p", {}, el("b", { text: plural(samples.length, "item") }), " selected"), note,
    el("div", { class: "row" },
      el("button", { type: "button", class: "strong", onclick: () => give(same), text: "All the same" }),
      el("button", { type: "button", onclick: () => give(different()), text: "All different from" }), others,
      el("button", { type: "button", onclick: close, text: "Cancel" })));
  box.hidden = false;
  say(`${plural(samples.length, "item")} selected. ${consequence(preview)}`);
}

function consequence({ answers, moved, settled, conflicts }) {
  const warning = conflicts ? ` It would contradict ${plural(conflicts, "answer")}.` : "";
  return `“All the same” gives ${plural(answers, "answer")}, moves ${plural(moved, "item")} at once and settles ${plural(settled, "pair")}.${warning}`;
}

// Dialogs ---------------------------------------------------------------------------------------

function dialog(title, ...content) {
  $("dialog-title").textContent = title;
  replace($("dialog-body"), content.flat());
  if (!$("dialog").open) $("dialog").showModal();
}

const FILES = [
  ["labels.csv", "One row an item: cluster, name, confidence"], ["constraints.csv", "Your answers as pairs; linkwise cluster -c reads them"],
  ["inferred.csv", "Pairs that follow from them"], ["ignored.csv", "Answers that contradict others"], ["audit.jsonl", "Every event, in order"],
  ["labels.npy", "The clusters as an array"], ["reproduce.py", "A script that makes the same labels"], ["features.npy", "What was clustered, for the script"], ["features.npz", "What was clustered, for the script"],
  ["answers.csv", "Answers by position, for the script"], ["project.sqlite", "A copy of the whole project"],
];

function openExport() {
  const safe = el("input", { type: "checkbox", onchange: () => draw() });
  const list = el("div", { class: "files" });
  const files = FILES.filter(([name]) => name !== (page.state.by_size ? "features.npy" : "features.npz"));
  const draw = () => replace(list, files.map(([name, about]) =>
    el("a", { href: `/api/export/${name}${safe.checked ? "?safe=1" : ""}`, download: name }, el("b", { text: name }), ` – ${about}`)));
  draw();
  dialog("Export", el("p", { text: page.state.stop.advice }), list,
    el("label", { class: "check" }, safe, "Safe for spreadsheets: cells that look like formulas get an apostrophe"),
    el("h3", { text: "Import" }), importForm());
}

function importForm() {
  const kind = el("select", { "aria-label": "What the file holds" }, el("option", { value: "pairs", text: "pairs: i, j, link" }), el("option", { value: "labels", text: "labels: id, label" }));
  const file = el("input", { type: "file", accept: ".csv,.txt,.jsonl", "aria-label": "File to import" });
  const note = el("p", { class: "small", role: "status" });
  const confirm = el("button", { type: "button", class: "strong", hidden: true, text: "Import" });
  let text = "";
  const look = async () => {
    if (!file.files.length) return;
    text = await file.files[0].text();
    try {
      const found = await post("/api/import", { kind: kind.value, text, dry: true });
      note.textContent = `${plural(found.answers, "pair")}; settles ${plural(found.settled, "pair")}, ${plural(found.conflicts, "conflict")}. ${found.notes.join(" ")}`;
      confirm.hidden = false;
    } catch (error) {
      note.textContent = error.message;
      confirm.hidden = true;
    }
  };
  file.addEventListener("change", look);
  kind.addEventListener("change", look);
  confirm.addEventListener("click", async () => {
    if (await act("/api/import", { kind: kind.value, text, dry: false })) { $("dialog").close(); say("Imported."); }
  });
  return el("div", { class: "files" }, kind, file, note, confirm);
}

function openFind() {
  const input = el("input", { type: "search", "aria-label": "Text to look for", placeholder: "an id, or any text of an item" });
  const list = el("ul", { class: "found" });
  let timer = null, first = null;
  const show = (items) => replace(list, items.map((item) => el("li", {}, el("span", {}, ...brief(item)),
    first === null
      ? el("button", { type: "button", text: "Choose", onclick: () => { first = item; say(`${item.id} chosen. Choose another.`); show(items.filter((one) => one.index !== item.index)); input.value = ""; input.focus(); note.textContent = `${item.id} is chosen. Now find the item to compare it with.`; } })
      : el("button", { type: "button", class: "strong", text: "Compare", onclick: () => { $("dialog").close(); again(first.index, item.index); } }))));
  const note = el("p", { class: "small", text: "Find two items to say whether they belong together." });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const { items } = await get(`/api/find?q=${encodeURIComponent(input.value)}`);
      show(first ? items.filter((item) => item.index !== first.index) : items);
    }, 150);
  });
  dialog("Find an item", note, input, list);
  input.focus();
}

function openName() {
  const input = el("input", { type: "text", maxlength: "40", value: page.state?.who ?? "", "aria-label": "Your name" });
  const save = async () => {
    try {
      await post("/api/me", { name: input.value });
      $("dialog").close();
      await ask();
      say(`Hello, ${input.value}.`);
    } catch (error) { told(error); }
  };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") save(); });
  dialog("Who answers here?", el("p", { class: "small", text: "The name stands beside your answers in the history and the export. There are no accounts." }),
    input, el("div", { class: "row" }, el("button", { type: "button", class: "strong", onclick: save, text: "Save" })));
  input.select();
}

function openHelp() {
  const box = (name, text, changed) => {
    const input = el("input", { type: "checkbox", checked: options[name], onchange: () => {
      options[name] = input.checked;
      remember("options", options);
      changed?.();
    } });
    return el("label", { class: "check" }, input, text);
  };
  const redraw = () => page.question && drawCards();
  const check = el("input", { type: "checkbox", checked: checking(), onchange: () => setChecking(check.checked) });
  const theme = el("select", { "aria-label": "Theme", onchange: () => { remember("theme", theme.value); applyTheme(); } },
    [["", "Theme of the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, text]) => el("option", { value, text, selected: remembered("theme", "") === value })));
  const k = el("input", { type: "number", min: "2", value: page.state?.k ?? "", placeholder: "found", "aria-label": "Number of clusters", onchange: () => act("/api/k", { k: k.value ? Number(k.value) : null }) });
  dialog("Keys and settings", keys.table(),
    box("marks", "Mark differences in fields", redraw), box("wordMarks", "Mark differences in texts", redraw),
    box("blind", "Hide the clusters of A and B until I have answered", redraw),
    el("label", { class: "check" }, check, "Check me: one question in twelve repeats an earlier one"),
    el("label", {}, "Number of clusters (empty: found)", k), theme,
    el("p", { class: "small", text: "Not sure: nothing is concluded, and the pair is not asked again soon. Later: it comes back after ten answers. Bad item: never asked about again. Shift and drag on the map selects." }));
}

function applyTheme() {
  const theme = remembered("theme", "");
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  map?.draw();
  if (page.state) panels.refresh().catch(told);
}

// Everything together ---------------------------------------------------------------------------

async function again(a, b) {
  page.many = null;
  try {
    apply(await post("/api/ask", { a, b }));
    $("question").focus();
  } catch (error) { told(error); }
}

const map = new ItemMap({ hover, chosen, selected });
const panels = new Panels({
  rename: (id, name) => act(`/api/clusters/${id}`, { name }, "Renamed."),
  lock: (id, lock) => act(`/api/clusters/${id}`, { lock }, lock ? `c${id} is ${lock}.` : `c${id} is open again.`),
  merge: async (a, b) => { const reply = await act("/api/clusters/ask", { action: "merge", clusters: [a, b] }, "These questions decide whether the two are one."); if (reply) $("question").focus(); },
  mixed: async (id) => { const reply = await act("/api/clusters/ask", { action: "mixed", clusters: [id] }, "The next questions look into this cluster."); if (reply) $("question").focus(); },
  resolve: (link, action, relation) => act("/api/resolve", { a: link.a.index, b: link.b.index, action, relation }),
  again, point: (links) => map.setLinks(links), sizes: () => map.sizes ?? [], highlight: (cluster) => map.setHighlight(cluster),
  setK: (k) => act("/api/k", { k }, `${k} clusters from now on.`),
});

const commands = {
  undo: () => turn("undo"), redo: () => turn("redo"), bad, context, find: openFind, help: openHelp, export: openExport,
  many: () => (page.many ? leaveMany() : openMany()),
  conflict: () => panels.open("conflicts").then(() => $("body").querySelector("button")?.focus()),
};

async function perform(action, event) {
  try {
    if (action in SAID) { if (!page.many) await answer(action); }
    else if (action in commands) await commands[action]();
    else if (page.many && /^[1-9]$/.test(event.key)) toggle(Number(event.key) - 1);
    else if (page.many && event.key === "Enter") await submitMany();
    else if (event.key === "Escape") { $("selection").hidden = true; map.clearLasso(); }
  } catch (error) { told(error); }
}

const keys = new Keys(perform);
for (const button of document.querySelectorAll("[data-action]")) {
  button.addEventListener("click", (event) => {
    if (event.detail) button.blur(); // of a mouse: the next Space must not press it again
    perform(button.dataset.action, event);
  });
}
$("open-export").addEventListener("click", openExport);
$("open-find").addEventListener("click", openFind);
$("open-name").addEventListener("click", openName);
$("open-help").addEventListener("click", openHelp);
$("dialog-close").addEventListener("click", () => $("dialog").close());
$("mode-pair").addEventListener("click", () => page.many && leaveMany().catch(told));
$("mode-many").addEventListener("click", () => !page.many && openMany().catch(told));
$("map-in").addEventListener("click", () => map.zoom(1.4));
$("map-out").addEventListener("click", () => map.zoom(1 / 1.4));
$("map-fit").addEventListener("click", () => map.fit());
$("map-select").addEventListener("click", () => {
  map.selecting = !map.selecting;
  $("map-select").setAttribute("aria-pressed", String(map.selecting));
  $("overlay").classList.toggle("selecting", map.selecting);
  say(map.selecting ? "Draw around items on the map." : "");
});
$("map-links").addEventListener("click", async () => {
  const on = $("map-links").getAttribute("aria-pressed") !== "true";
  $("map-links").setAttribute("aria-pressed", String(on));
  const events = on ? (await get("/api/history")).events : [];
  map.setLinks(events.filter((one) => one.counts && ["same", "different"].includes(one.relation) && one.b).map((one) => ({ a: one.a.index, b: one.b.index, relation: one.relation })));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
applyTheme();

follow({
  rev: refreshSoon, map: refreshSoon,
  progress: ({ doing }) => { $("doing").textContent = doing ? `${doing}…` : ""; if (!doing && !page.question && !page.many) refreshSoon(); },
  failure: ({ reason }) => warn(reason ? trouble(reason) : null),
  open: comeBack,
  lost: () => { page.away = true; },
});
globalThis.linkwise = { map, page, again, tab: TAB }; // for measurements

try {
  if (waiting()) await sendWaiting();
  refreshSoon(); // the map comes at the same time as the question
  await ask();
  fetchAhead();
} catch (error) { told(error); }
