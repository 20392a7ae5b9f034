// The page: one question at a time, and everything that follows from the answer. This file only puts its parts together:
//
//   page       what the page knows               question   what is asked
//   header     figures                           map        all items
//   panels     the tabs: clusters, ...           news       what the server tells: replies, and news of others
//   answering  what a person does about it       many, selection, dialogs   other ways to do so

import { TAB, get } from "./api.js";
import { SAID, act, again, answer, bad, fetchAhead, turn } from "./answering.js";
import { applyTheme, openExport, openFind, openHelp, openName } from "./dialogs.js";
import { $ } from "./dom.js";
import { Keys } from "./keys.js";
import { context, leaveMany, openMany, submitMany, toggle } from "./many.js";
import { begin, listen } from "./news.js";
import { page, say, told } from "./page.js";
import { map, panels } from "./parts.js";
import { chosen, hover, selected } from "./selection.js";

const isMany = () => page.many !== null;

const commands = {
  ...Object.fromEntries(Object.keys(SAID).map((relation) => [relation, () => !isMany() && answer(relation)])),
  undo: () => turn("undo"), redo: () => turn("redo"), bad: () => bad(keys), context,
  find: openFind, help: () => openHelp(keys), export: openExport, name: openName,
  many: () => (isMany() ? leaveMany() : openMany()), pair: () => isMany() && leaveMany(),
  choose: (event, button) => toggle(Number(button.value)), submit: submitMany,
  conflict: () => panels.open("conflicts").then(() => $("body").querySelector("button")?.focus()),
  "map-in": () => map.zoom(1.4), "map-out": () => map.zoom(1 / 1.4), "map-fit": () => map.fit(),
  "map-select": select, "map-links": showAnswers, close: () => $("dialog").close(),
  key: otherKey,
};

async function perform(action, event, button) {
  try {
    await commands[action](event, button);
  } catch (error) { told(error); }
}

function otherKey({ key }) {
  if (isMany() && /^[1-9]$/.test(key)) toggle(Number(key) - 1);
  else if (isMany() && key === "Enter") return submitMany();
  else if (key === "Escape") { $("selection").hidden = true; map.clearLasso(); }
  return null;
}

function select() {
  map.selecting = !map.selecting;
  $("map-select").setAttribute("aria-pressed", String(map.selecting));
  $("overlay").classList.toggle("selecting", map.selecting);
  say(map.selecting ? "Draw around items on the map." : "");
}

async function showAnswers() {
  const on = $("map-links").getAttribute("aria-pressed") !== "true";
  $("map-links").setAttribute("aria-pressed", String(on));
  const { events } = on ? await get("/api/history") : { events: [] };
  const said = events.filter((one) => one.counts && ["same", "different"].includes(one.relation) && one.b);
  map.setLinks(said.map(({ a, b, relation }) => ({ a: a.index, b: b.index, relation })));
}

const focusQuestion = (reply) => { if (reply) $("question").focus(); };
panels.actions = {
  again,
  rename: (id, name) => act(`/api/clusters/${id}`, { name }, "Renamed."),
  lock: (id, lock) => act(`/api/clusters/${id}`, { lock }, lock ? `c${id} is ${lock}.` : `c${id} is open again.`),
  merge: (a, b) => act("/api/clusters/ask", { action: "merge", clusters: [a, b] }, "These questions decide whether the two are one.").then(focusQuestion),
  mixed: (id) => act("/api/clusters/ask", { action: "mixed", clusters: [id] }, "The next questions look into this cluster.").then(focusQuestion),
  resolve: (link, action, relation) => act("/api/resolve", { a: link.a.index, b: link.b.index, action, relation }),
  setK: (k) => act("/api/k", { k }, `${k} clusters from now on.`),
};
map.handlers = { hover, chosen, selected };

const keys = new Keys(perform);
addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-action]");
  if (!button) return;
  if (event.detail) button.blur(); // of a mouse: the next Space must not press it again
  perform(button.dataset.action, event, button);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
applyTheme();
globalThis.linkwise = { map, page, again, tab: TAB }; // for measurements

try {
  await begin();
  fetchAhead();
} catch (error) { told(error); }
listen();
