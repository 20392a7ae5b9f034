// One item against many, and what stands near the two of a question.

import { get } from "./api.js";
import { act } from "./answering.js";
import { brief, letter } from "./cards.js";
import { $, el, replace } from "./dom.js";
import { ask } from "./news.js";
import { options, page, say } from "./page.js";
import { map } from "./parts.js";
import { drawMany, showMany } from "./question.js";

export async function openMany() {
  const { many } = await get("/api/many");
  if (many?.others.length) {
    showMany(many);
    map.setPair(null);
  } else say("There is nothing to compare now.");
}

export function toggle(k) {
  const { same, others, cards } = page.many;
  if (k >= others.length) return;
  if (same.has(k)) same.delete(k);
  else same.add(k);
  drawMany();
  say(`${cards[k + 1].id}: ${same.has(k) ? "same as A" : "different"}.`);
}

export async function submitMany() {
  const { a, others, same } = page.many;
  const answers = others.map((b, k) => ({ a, b, relation: same.has(k) ? "same" : "different" }));
  if (await act("/api/answers", { answers })) await openMany();
}

export async function leaveMany() {
  page.many = null;
  await ask();
}

// Context -----------------------------------------------------------------------------------------

export async function context() {
  const box = $("context");
  if (!box.hidden || !page.question) { box.hidden = true; return; }
  const pair = [page.question.a, page.question.b];
  const found = await Promise.all(pair.map((index) => get(`/api/context?id=${index}`)));
  // A and B are in full view above.
  const others = (items, most) => items.filter((item) => !pair.includes(item.index)).slice(0, most);
  const list = (items) => el("ul", { class: "examples" }, items.map((item) => el("li", {}, ...brief(item))));
  replace(box, el("div", { class: "two" }, found.map((one, k) => el("div", {},
    el("p", { class: "small" }, letter("AB"[k]), "nearest items"), list(others(one.near, 3)),
    options.blind ? null : el("p", { class: "small", text: "clear cases of its cluster now" }),
    options.blind ? null : list(others(one.clear, 2))))));
  box.hidden = false;
}
