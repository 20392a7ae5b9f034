// Export, import, finding, the name, keys and settings

import { checking, get, post, setChecking } from "./api.js";
import { act, again } from "./answering.js";
import { brief } from "./cards.js";
import { $, el, plural, remember, remembered, replace } from "./dom.js";
import { ask } from "./news.js";
import { keepOptions, options, page, say, told } from "./page.js";
import { map, panels } from "./parts.js";
import { drawCards } from "./question.js";

export function dialog(title, ...content) {
  $("dialog-title").textContent = title;
  replace($("dialog-body"), content.flat());
  if (!$("dialog").open) $("dialog").showModal();
}

const FILES = [
  ["labels.csv", "One row an item: cluster, name, confidence"], ["constraints.csv", "Your answers as pairs; linkwise cluster -c reads them"],
  ["inferred.csv", "Pairs that follow from them"], ["ignored.csv", "Answers that contradict others"], ["audit.jsonl", "Every event, in order"],
  ["labels.npy", "The clusters as an array"], ["reproduce.py", "A script that finds the same clusters; their numbers may differ"], ["features.npy", "What was clustered, for the script"], ["features.npz", "What was clustered, for the script"],
  ["answers.csv", "Answers by position, for the script"], ["project.sqlite", "A copy of the whole project"],
];

export function openExport() {
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

export function openFind() {
  const input = el("input", { type: "search", "aria-label": "Text to look for", placeholder: "an id, or any text of an item" });
  const note = el("p", { class: "small", text: "Find two items to say whether they belong together." });
  const list = el("ul", { class: "found" });
  let timer = null, first = null, items = [];
  const choose = (item) => {
    first = item;
    note.textContent = `${item.id} is chosen. Now find the item to compare it with.`;
    say(`${item.id} chosen. Choose another.`);
    input.value = "";
    input.focus();
    show();
  };
  const compare = (item) => {
    $("dialog").close();
    again(first.index, item.index);
  };
  const button = (item) => (first === null
    ? el("button", { type: "button", text: "Choose", onclick: () => choose(item) })
    : el("button", { type: "button", class: "strong", text: "Compare", onclick: () => compare(item) }));
  const show = () => replace(list, items.filter((item) => item.index !== first?.index)
    .map((item) => el("li", {}, el("span", {}, ...brief(item)), button(item))));
  const look = async () => {
    items = (await get(`/api/find?q=${encodeURIComponent(input.value)}`)).items;
    show();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => look().catch(told), 150);
  });
  // Enter takes the first one that is listed, of what is written now.
  const takeFirst = async () => {
    clearTimeout(timer);
    await look();
    const [item] = items.filter(({ index }) => index !== first?.index);
    if (item) (first === null ? choose : compare)(item);
  };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") takeFirst().catch(told); });
  dialog("Find an item", note, input, list);
  input.focus();
}

export function openName() {
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

export function openHelp(keys) {
  const box = (name, text, changed) => {
    const input = el("input", { type: "checkbox", checked: options[name], onchange: () => {
      options[name] = input.checked;
      keepOptions();
      changed?.();
    } });
    return el("label", { class: "check" }, input, text);
  };
  const redraw = () => page.question && drawCards(panels);
  const rethink = () => { redraw(); $("context").hidden = true; map.drawTop(); };
  const check = el("input", { type: "checkbox", checked: checking(), onchange: () => setChecking(check.checked) });
  const theme = el("select", { "aria-label": "Theme", onchange: () => { remember("theme", theme.value); applyTheme(); } },
    [["", "Theme of the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, text]) => el("option", { value, text, selected: remembered("theme", "") === value })));
  const k = el("input", { type: "number", min: "2", value: page.state?.k ?? "", placeholder: "found", "aria-label": "Number of clusters", onchange: () => act("/api/k", { k: k.value ? Number(k.value) : null }) });
  dialog("Keys and settings", keys.table(),
    box("marks", "Mark differences in fields", redraw), box("wordMarks", "Mark differences in texts", redraw),
    box("blind", "Hide the clusters of A and B until I have answered", rethink),
    el("label", { class: "check" }, check, "Check me: one question in twelve repeats an earlier one"),
    el("label", {}, "Number of clusters (empty: found)", k), theme,
    el("p", { class: "small", text: "Not sure: nothing is concluded, and you are not asked about this pair again. Later: it comes back after ten answers. Bad item: never asked about again. Shift and drag on the map selects." }));
}

export function applyTheme() {
  const theme = remembered("theme", "");
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  map.recolour();
  panels.recolour();
}
