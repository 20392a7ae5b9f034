// What is shown of two items, by their kind. Everything is text.

import { get } from "./api.js";
import { el, svg, plural } from "./dom.js";

const MAX_FIELDS = 12;
const SIMILAR = 0.7; // share of letters from which on two values are marked letter by letter, else word by word
const MAX_DIFF = 400; // letters of a value that are compared one by one

export function pairView(question, given) {
  const [a, b] = question.cards;
  const options = { ...given, dates: question.dates };
  if (a.bars) return barTable(a, b);
  if (a.series) return [seriesChart(a, b), fieldTable(a, b, options)];
  if (a.media) return [el("div", { class: "two" }, imageCard(a, "A"), imageCard(b, "B")), fieldTable(a, b, options)];
  if (a.text !== undefined) {
    return [
      el("div", { class: "two" }, textCard(a, b, "A", options), textCard(b, a, "B", options)),
      fieldTable(a, b, options),
    ];
  }
  if (!a.fields.length) return el("div", { class: "two" }, nameCard(a, "A"), nameCard(b, "B"));
  return fieldTable(a, b, { ...options, head: true });
}

export const letter = (name) =>
  el("span", { class: name === "B" ? "letter b" : "letter", "aria-hidden": "true", text: name });

const heading = (card, name) =>
  el("div", { class: "card-head" }, letter(name), el("span", { class: "item-id", text: card.id }));

// Of a node of a graph, nothing but its name is known.
const nameCard = (card, name) => el("article", { class: "card", "aria-label": `Item ${name}` }, heading(card, name));

// Rows ------------------------------------------------------------------------------------------

function fieldTable(a, b, { head = false, marks = true, all = false, dates = [], redraw } = {}) {
  if (!a.fields.length) return null;
  const values = new Map(b.fields.map((field) => [field[0], field]));
  const shown = all ? a.fields : a.fields.slice(0, MAX_FIELDS);
  const rows = shown.map(([name, left, leftCut, leftAmount]) => {
    const [, right, rightCut, rightAmount] = values.get(name) ?? [name, "", 0, null];
    const kind = left === right ? "equal" : compared(leftAmount, rightAmount);
    const isAmount = leftAmount !== null && rightAmount !== null;
    const [one, other] = kind !== "differs" || !marks ? [[left], [right]]
      : dates.includes(name) ? dateDifferences(left, right)
      : isAmount ? [[{ text: left }], [{ text: right }]] : differences(left, right);
    return el("tr", { class: kind },
      el("th", { scope: "row" }, ...breakable(name)),
      cell(one, leftCut, a.index, name), cell(other, rightCut, b.index, name));
  });
  const table = el("table", { class: "pair" },
    el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, el("span", { class: "small", text: "field" })),
      el("th", { scope: "col" }, letter("A"), el("span", { class: "item-id", text: head ? a.id : "" })),
      el("th", { scope: "col" }, letter("B"), el("span", { class: "item-id", text: head ? b.id : "" })))),
    el("tbody", {}, rows));
  const hidden = a.fields.length - shown.length;
  const more = hidden > 0 && redraw
    ? el("button", { type: "button", class: "show-all", onclick: redraw, text: `Show ${plural(hidden, "more field")}` })
    : null;
  return el("div", { class: head ? "" : "details" }, table, more);
}

// A long name may go on in the next line after a sign in it.
function breakable(name) {
  return String(name).split(/(?<=[_./-])/).flatMap((part, k) => (k ? [el("wbr"), part] : [part]));
}

// Amounts are in usual differences: below a quarter they are close, from one on they are marked.
function compared(left, right) {
  if (left === null || right === null) return "differs";
  const gap = Math.abs(left - right);
  return gap < 0.25 ? "close" : gap < 1 ? "apart" : "differs";
}

function cell(parts, cut, index, name) {
  const node = el("td");
  const text = parts.map((part) => (typeof part === "string" ? part : part.text)).join("");
  if (text === "") node.append(el("span", { class: "none", text: "(empty)" }));
  else node.append(...parts.filter((part) => part !== "" && part.text !== "").map(piece));
  if (cut) node.append(wholeButton(cut, async () => {
    const card = (await get(`/api/items?ids=${index}&whole=1`)).cards[0];
    node.textContent = card.fields.find((field) => field[0] === name)[1];
  }));
  return node;
}

const piece = (part) => (typeof part === "string" ? document.createTextNode(part) : el("mark", { text: part.text }));

const wholeButton = (cut, show) =>
  el("button", { type: "button", class: "show-all", text: `… ${plural(cut, "more letter")}`, onclick: show });

// Two texts as parts, where marked parts differ
export function differences(left, right) {
  if (left === "" || right === "" || left.length > MAX_DIFF || right.length > MAX_DIFF) {
    return [[{ text: left }], [{ text: right }]];
  }
  if (isNumber(left) && isNumber(right)) return [[{ text: left }], [{ text: right }]];
  const sides = diff([...left], [...right], "");
  const shared = sides[0].filter((part) => typeof part === "string").join("").length;
  // Letters that two different words happen to share say nothing.
  return shared < SIMILAR * Math.max(left.length, right.length) ? wordDifferences(left, right) : sides;
}

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));

// Year, month and day are marked as a whole; what is written in another way is marked all.
function dateDifferences(left, right) {
  const parts = (text) => text.match(/[A-Za-z]+|\d+|[^A-Za-z\d]+/g) ?? [];
  const [one, other] = [parts(left), parts(right)];
  if (one.length !== other.length) return [[{ text: left }], [{ text: right }]];
  const marked = (own, theirs) => own.map((part, k) => (part === theirs[k] ? part : { text: part }));
  return [marked(one, other), marked(other, one)];
}

export function wordDifferences(left, right) {
  const words = (text) => text.match(/\s+|[^\s]+/g) ?? [];
  const [one, other] = [words(left), words(right)];
  if (one.length * other.length > 4e6) return [[left], [right]];
  return diff(one, other, "");
}

// Longest common subsequence
function diff(one, other, glue) {
  const n = one.length, m = other.length;
  const length = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      length[i][j] = one[i] === other[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const sides = [[], []];
  const add = (side, text, marked) => {
    const last = sides[side].at(-1);
    if (last && last.marked === marked) last.parts.push(text);
    else sides[side].push({ marked, parts: [text] });
  };
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && one[i] === other[j]) {
      add(0, one[i++], false);
      add(1, other[j++], false);
    } else if (j >= m || (i < n && length[i + 1][j] >= length[i][j + 1])) add(0, one[i++], true);
    else add(1, other[j++], true);
  }
  return sides.map((parts) => parts.map((part) => (part.marked ? { text: part.parts.join(glue) } : part.parts.join(glue))));
}

// Texts -----------------------------------------------------------------------------------------

function textCard(card, other, name, { wordMarks }) {
  const parts = wordMarks ? wordDifferences(card.text, other.text)[0] : [card.text];
  const body = el("div", { class: "text clamped" }, card.text === "" ? el("span", { class: "none", text: "(empty)" }) : parts.map(piece));
  const box = el("article", { class: "card", "aria-label": `Item ${name}` }, heading(card, name), body);
  requestAnimationFrame(() => {
    if (body.scrollHeight <= body.clientHeight + 4 && !card.cut) body.classList.remove("clamped");
    else {
      const more = el("button", { type: "button", class: "show-all", text: card.cut ? `Show all, ${plural(card.text.length + card.cut, "letter")}` : "Show all",
        onclick: async () => {
          if (card.cut) body.textContent = (await get(`/api/items?ids=${card.index}&whole=1`)).cards[0].text;
          body.classList.remove("clamped");
          more.remove();
        } });
      box.append(more);
    }
  });
  return box;
}

// Images ----------------------------------------------------------------------------------------

export function imageCard(card, name) {
  return el("article", { class: "card", "aria-label": `Item ${name}` }, heading(card, name), picture(card));
}

export function picture(card) {
  const image = el("img", { src: card.media, alt: `image of ${card.id}`, draggable: "false" });
  const frame = el("button", { type: "button", class: "image", "aria-label": `Zoom the image of ${card.id}` }, image);
  frame.addEventListener("click", () => frame.classList.toggle("zoomed"));
  image.addEventListener("load", () => {
    if (image.naturalWidth < 120) image.classList.add("small-picture");
  });
  image.addEventListener("error", () => {
    frame.replaceWith(el("div", { class: "image no-image", text: "This image cannot be shown." }));
  });
  return frame;
}

// Series ----------------------------------------------------------------------------------------

function seriesChart(a, b) {
  const all = [...a.series, ...b.series].filter((value) => value !== null);
  const low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
  const width = 400, height = 180;
  const line = (values, style, shift = 0) => {
    let path = "", up = true;
    values.forEach((value, k) => {
      if (value === null) { up = true; return; }
      const x = (k / Math.max(1, values.length - 1)) * width;
      const y = height - 8 - ((value - low) / span) * (height - 16) + shift;
      path += `${up ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
      up = false;
    });
    return svg("path", { class: style, d: path });
  };
  const chart = (label, ...lines) => svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...lines);
  const box = el("div");
  const apart = () => box.replaceChildren(el("div", { class: "two" },
    el("article", { class: "card" }, heading(a, "A"), chart(`series A, ${low} to ${high}`, line(a.series, "a"))),
    el("article", { class: "card" }, heading(b, "B"), chart(`series B, ${low} to ${high}`, line(b.series, "b")))), button);
  const together = () => box.replaceChildren(el("article", { class: "card" },
    el("div", { class: "card-head" }, letter("A"), el("span", { class: "item-id", text: `${a.id} (solid)  ` }), letter("B"), el("span", { class: "item-id", text: `${b.id} (dashed)` })),
    chart("both series on the same axes", line(a.series, "a"), line(b.series, "b"))), button);
  let overlaid = true;
  const button = el("button", { type: "button", class: "show-all", "aria-pressed": "true", text: "Overlay", onclick: () => {
    overlaid = !overlaid;
    button.setAttribute("aria-pressed", String(overlaid));
    (overlaid ? together : apart)();
  } });
  together();
  return box;
}

// Bare points -----------------------------------------------------------------------------------

function barTable(a, b) {
  const order = a.bars.map((_, k) => k).sort((i, j) => gap(j) - gap(i)).slice(0, 8);
  function gap(k) { return Math.abs((a.bars[k] ?? 0) - (b.bars[k] ?? 0)); }
  const rows = order.map((k) => el("tr", { class: gap(k) < 0.25 ? "equal" : "differs" },
    el("th", { scope: "row" }, ...breakable(a.features[k])),
    el("td", {}, a.values[k], bar(a.bars[k])), el("td", {}, b.values[k], bar(b.bars[k]))));
  return el("table", { class: "pair bars" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "small", text: "most different" })),
      el("th", { scope: "col" }, letter("A"), el("span", { class: "item-id", text: a.id })),
      el("th", { scope: "col" }, letter("B"), el("span", { class: "item-id", text: b.id })))),
    el("tbody", {}, rows));
}

function bar(value) {
  const place = Math.max(-3, Math.min(3, value ?? 0)) / 6;
  const fill = el("span", { class: "bar-value" });
  fill.style.left = `${100 * (0.5 + Math.min(0, place))}%`;
  fill.style.width = `${Math.max(1, 100 * Math.abs(place))}%`;
  return el("span", { class: "bar-track" }, fill);
}

// A few words, for lists --------------------------------------------------------------------------

export function brief(item) {
  return [
    item.media ? el("img", { class: "thumb", src: `/api/items/${item.index}/media`, alt: "" }) : null,
    el("b", { text: item.id }), item.about ? ` ${item.about}` : "",
  ];
}
