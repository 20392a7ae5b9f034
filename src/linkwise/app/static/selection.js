// The pointer on the map: one item, or a line around many.

import { get, post } from "./api.js";
import { act, again } from "./answering.js";
import { picture } from "./cards.js";
import { dialog } from "./dialogs.js";
import { $, el, number, plural, replace } from "./dom.js";
import { options, page, say, told } from "./page.js";
import { map, panels } from "./parts.js";
import { glimpse } from "./question.js";

let hovered = null;
const cache = new Map();

export async function hover(index, x, y) {
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
  const isAsked = page.question && [page.question.a, page.question.b].includes(index);
  const cluster = options.blind && isAsked ? null : panels.cluster(index);
  replace(tip, el("b", { text: card.id }), cluster === null ? null : el("span", { class: "small", text: `  ${cluster}` }),
    el("div", { class: "brief" }, ...glimpse(card)));
  tip.hidden = false;
  const { width, height } = $("canvas-box").getBoundingClientRect();
  tip.style.left = `${Math.min(x + 14, width - 270)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, height - 110))}px`;
}

export async function chosen(index) {
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

export async function selected(samples) {
  const box = $("selection");
  $("tip").hidden = true;
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
