// The question: two items, one item against many, or the end.

import { letter, pairView } from "./cards.js";
import { $, el, plural, replace, write } from "./dom.js";
import { options, page } from "./page.js";

const WAITING = "Finding the first clusters. Questions come in a moment…";
const AWAY = "No more questions until the server is back. Your answers are kept in this browser.";
const KEPT = "linkwise-question"; // where a page that is loaded again goes on

// The pair that is shown, or was before the page was loaded again
export const preferred = () => {
  const known = sessionStorage.getItem(KEPT);
  return known ? `?prefer=${known}` : "";
};

function enter(mode, title, why) {
  document.body.dataset.mode = mode;
  $("mode-pair").setAttribute("aria-pressed", String(mode === "pair"));
  $("mode-many").setAttribute("aria-pressed", String(mode === "many"));
  write($("question-title"), title);
  write($("why"), why);
  $("answers").hidden = mode === "many";
}

function change(question) {
  if (question?.id !== page.question?.id) page.endChoice();
  page.question = question;
}

// Two items -------------------------------------------------------------------------------------

// `panels` knows the names of clusters, if these are to be seen.
export function showQuestion(question, panels) {
  change(question);
  page.many = null;
  $("context").hidden = true;
  for (const button of document.querySelectorAll(".answers [data-action], .why [data-action]")) {
    if (!["undo", "redo"].includes(button.dataset.action) && button.disabled !== !question) button.disabled = !question;
  }
  if (!question) { showEnd(); return; }
  enter("pair", "Do these two belong together?", `Why this one: ${question.why}.`);
  sessionStorage.setItem(KEPT, question.id);
  $("question").dataset.pair = question.id;
  drawCards(panels);
  page.shownAt = performance.now();
}

export function drawCards(panels, all = false) {
  const view = pairView(page.question, { ...options, all, redraw: () => drawCards(panels, true) });
  replace($("cards"), view, options.blind ? null : opinion(panels));
}

// What the clustering says, if the person wants to see it before answering
function opinion(panels) {
  const { a, b } = page.question;
  const [one, other] = [panels.cluster(a), panels.cluster(b)];
  if (one === null) return null;
  return el("p", { class: "small", text: one === other ? `Now both in ${one}.` : `Now A in ${one}, B in ${other}.` });
}

// No question -----------------------------------------------------------------------------------

function showEnd() {
  sessionStorage.removeItem(KEPT);
  delete $("question").dataset.pair;
  if (page.state && (page.state.doing || !page.state.clusters)) {
    enter("pair", "Do these two belong together?", "");
    replace($("cards"), el("p", { class: "waiting", text: WAITING }));
    return;
  }
  enter("pair", "Nothing is left to ask", "");
  replace($("cards"), el("div", { class: "finish" },
    el("h3", { text: "Everything follows from your answers" }),
    el("p", { text: `${plural(page.state.answers, "answer")} settled ${plural(page.state.settled, "pair")}.` }),
    el("p", {}, el("button", { type: "button", class: "strong", "data-action": "export", text: "Export the clusters" }))));
}

export function showNothingKept() {
  change(null);
  replace($("cards"), el("p", { class: "waiting", text: AWAY }));
}

// One against many --------------------------------------------------------------------------------

export function showMany(many) {
  page.many = { ...many, same: new Set() };
  change(null);
  enter("many", "Which of these belong with A?", "Digits choose, Enter gives all answers at once. What is not chosen is different.");
  drawMany();
}

export function drawMany() {
  const { cards: [first, ...others], same } = page.many;
  replace($("cards"),
    el("article", { class: "card" }, el("div", { class: "card-head" }, letter("A"), el("span", { class: "item-id", text: first.id })), ...glimpse(first)),
    el("div", { class: "many" }, others.map((card, k) =>
      el("button", { type: "button", class: "card", "aria-pressed": String(same.has(k)), "data-action": "choose", value: k },
        el("div", { class: "card-head" }, el("kbd", { text: k + 1 }), " ", el("span", { class: "item-id", text: card.id })),
        ...glimpse(card), el("p", { class: "state", text: same.has(k) ? "✓ same as A" : "different" })))),
    el("div", { class: "row" },
      el("button", { type: "button", class: "strong", id: "submit-many", "data-action": "submit" }, "Answer all ", el("kbd", { text: "Enter" })),
      el("button", { type: "button", "data-action": "pair", text: "Back to pairs" })));
}

// An item in a few lines
export function glimpse(card) {
  if (card.media) return [el("img", { class: "thumb", src: card.media, alt: `image of ${card.id}` })];
  if (card.text !== undefined) return [el("p", { class: "brief", text: card.text })];
  const fields = card.fields.length ? card.fields.map(([name, value]) => `${name}: ${value || "(empty)"}`) : (card.features ?? []).slice(0, 6).map((name, k) => `${name}: ${card.values[k]}`);
  return [el("p", { class: "brief", text: fields.slice(0, 8).join("\n") })];
}
