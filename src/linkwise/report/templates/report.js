(() => {
"use strict";

const problem = document.getElementById("problem");
window.addEventListener("error", (event) => {
  problem.textContent = `The map could not be drawn: ${event.message}`;
  problem.hidden = false;
});

// Data ---------------------------------------------------------------------------------------

const data = JSON.parse(document.getElementById("map-data").textContent);

function decoded(text, Numbers) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Numbers(bytes.buffer);
}

const LAST = 65535;
const labels = decoded(data.labels, { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[data.labelBytes]);
const rows = data.rows && decoded(data.rows, Uint32Array);
const views = data.views.map((view) => ({ ...view, xy: decoded(view.xy, Uint16Array), grid: null }));
const n = labels.length;
const paths = Array.from(document.querySelectorAll(".defs path"), (path) => new Path2D(path.getAttribute("d")));

// Points are visited in steps of the golden ratio, so that no cluster is drawn over all others.
function stepThrough(size) {
  const divisor = (a, b) => (b ? divisor(b, a % b) : a);
  let step = Math.max(1, Math.round(size * 0.6180339887));
  while (divisor(step, size) !== 1) step++;
  return step;
}
const step = stepThrough(n);

// State --------------------------------------------------------------------------------------

const canvas = document.getElementById("points");
const overlay = document.getElementById("pointer");
const tip = document.getElementById("tip");
const darkPage = window.matchMedia("(prefers-color-scheme: dark)");
const shown = data.clusters.map(() => true);
const links = { must: true, cannot: true, broken: true, ring: true };
let view = views[0];
let zoom = 1;
let centre = { x: view.width / 2, y: view.height / 2 };
let size = { width: 0, height: 0, unit: 1, ratio: 1 };
let printing = false;
let queued = false;

const MARGIN = 18;
const MANY = 20000; // beyond, points are squares of one or two pixels: shapes could not be seen
const radius = n <= 300 ? 5.5 : n <= 1500 ? 4.5 : n <= 5000 ? 3.4 : n <= MANY ? 2.4 : n <= 50000 ? 1 : 0.75;

const isDark = () => darkPage.matches && !printing;
const screenX = (i) => size.width / 2 + ((view.xy[2 * i] / LAST) * view.width - centre.x) * size.unit * zoom;
const screenY = (i) => size.height / 2 + ((view.xy[2 * i + 1] / LAST) * view.height - centre.y) * size.unit * zoom;
// Zoomed in there is room for larger points.
const pointRadius = () => Math.min(6, radius * Math.sqrt(zoom));

function resize() {
  const width = canvas.parentElement.clientWidth;
  const shape = Math.min(1.1, Math.max(width < 520 ? 0.8 : 0.45, view.height / view.width));
  const height = Math.round(Math.min(width * shape, 640));
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const unit = Math.min((width - 2 * MARGIN) / view.width, (height - 2 * MARGIN) / view.height);
  size = { width, height, unit, ratio };
  for (const layer of [canvas, overlay]) {
    layer.width = Math.round(width * ratio);
    layer.height = Math.round(height * ratio);
    layer.style.aspectRatio = `${width} / ${height}`;
  }
  draw();
}

// Drawing ------------------------------------------------------------------------------------

function context(layer) {
  const pen = layer.getContext("2d");
  pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  return pen;
}

function colours() {
  return data.clusters.map((cluster) => (isDark() ? cluster.dark : cluster.light));
}

// Each shape is drawn once and then copied.
function sprites(r) {
  const side = Math.ceil((2 * r + 3) * size.ratio);
  return colours().map((colour, c) => {
    const sprite = document.createElement("canvas");
    sprite.width = sprite.height = side;
    const pen = sprite.getContext("2d");
    const scale = (r / 5.2) * size.ratio;
    pen.setTransform(scale, 0, 0, scale, side / 2, side / 2);
    const path = paths[data.clusters[c].shape];
    pen.fillStyle = colour;
    pen.fill(path);
    pen.strokeStyle = isDark() ? "rgba(0,0,0,.55)" : "rgba(0,0,0,.32)";
    pen.lineWidth = 4 / r;
    pen.stroke(path);
    return sprite;
  });
}

function drawPoints(pen) {
  const r = pointRadius();
  const few = r >= 2;
  const images = few ? sprites(r) : null;
  const side = few ? images[0].width / size.ratio : 2 * r;
  const fills = colours();
  let drawn = 0;
  let last = -1;
  pen.globalAlpha = few ? 0.92 : 0.8;
  for (let j = 0, i = 0; j < n; j++, i = (i + step) % n) {
    const c = labels[i];
    if (!shown[c]) continue;
    const x = screenX(i), y = screenY(i);
    if (x < -8 || y < -8 || x > size.width + 8 || y > size.height + 8) continue;
    if (few) {
      pen.drawImage(images[c], x - side / 2, y - side / 2, side, side);
    } else {
      if (c !== last) pen.fillStyle = fills[(last = c)];
      pen.fillRect(x - r, y - r, side, side);
    }
    drawn++;
  }
  pen.globalAlpha = 1;
  return drawn;
}

function drawLinks(pen) {
  const style = getComputedStyle(document.documentElement);
  const kept = style.getPropertyValue("--link"), violated = style.getPropertyValue("--violated");
  const faint = data.pairs.length / 4 > 100 ? 0.4 : 0.75;
  for (let p = 0; p < data.pairs.length; p += 4) {
    const [a, b, must, broken] = data.pairs.slice(p, p + 4);
    if (!links[must ? "must" : "cannot"] || (broken && !links.broken)) continue;
    if (!shown[labels[a]] || !shown[labels[b]]) continue;
    pen.beginPath();
    pen.setLineDash(must ? [] : [6, 5]);
    pen.moveTo(screenX(a), screenY(a));
    pen.lineTo(screenX(b), screenY(b));
    pen.strokeStyle = broken ? violated : kept;
    pen.lineWidth = broken ? 2.4 : 1.2;
    pen.globalAlpha = broken ? 1 : faint;
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  if (!links.ring) return;
  pen.strokeStyle = kept;
  pen.lineWidth = 1.4;
  for (const i of data.ringed) {
    if (shown[labels[i]]) ring(pen, i, pointRadius() + 2.5);
  }
}

function ring(pen, i, r) {
  pen.beginPath();
  pen.arc(screenX(i), screenY(i), r, 0, 2 * Math.PI);
  pen.stroke();
}

function draw() {
  const started = performance.now();
  const pen = context(canvas);
  canvas.dataset.drawn = drawPoints(pen);
  drawLinks(pen);
  canvas.dataset.milliseconds = (performance.now() - started).toFixed(1);
  context(overlay);
}

function drawSoon() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; draw(); });
}

// Pointing -----------------------------------------------------------------------------------

const CELLS = 64; // a side; a cell of the coarse grid lists the points in it
function grid() {
  if (view.grid) return view.grid;
  const cell = (i) => (view.xy[2 * i + 1] >> 10) * CELLS + (view.xy[2 * i] >> 10);
  const first = new Uint32Array(CELLS * CELLS + 1);
  for (let i = 0; i < n; i++) first[cell(i) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) first[c + 1] += first[c];
  const next = first.slice(), order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[next[cell(i)]++] = i;
  return (view.grid = { first, order });
}

function nearest(x, y, reach) {
  const { first, order } = grid();
  const scale = size.unit * zoom;
  const column = (px) => (((px - size.width / 2) / scale + centre.x) / view.width) * CELLS;
  const row = (py) => (((py - size.height / 2) / scale + centre.y) / view.height) * CELLS;
  const clip = (cell) => Math.min(CELLS - 1, Math.max(0, Math.floor(cell)));
  let best = -1, least = reach * reach;
  for (let r = clip(row(y - reach)); r <= clip(row(y + reach)); r++) {
    for (let c = clip(column(x - reach)); c <= clip(column(x + reach)); c++) {
      for (let p = first[r * CELLS + c]; p < first[r * CELLS + c + 1]; p++) {
        const i = order[p];
        const distance = (screenX(i) - x) ** 2 + (screenY(i) - y) ** 2;
        if (distance <= least && shown[labels[i]]) { least = distance; best = i; }
      }
    }
  }
  return best;
}

function nameOf(i) {
  const row = rows ? rows[i] : i;
  return data.ids ? data.ids[i] : `row ${row}`;
}

function point(i) {
  const pen = context(overlay);
  tip.hidden = i < 0;
  if (i < 0) return;
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.lineWidth = 2;
  ring(pen, i, pointRadius() + 4);
  const strong = document.createElement("b"), line = document.createElement("bdi");
  strong.dir = "auto";
  strong.textContent = nameOf(i);
  line.textContent = `cluster ${data.clusters[labels[i]].name}`;
  tip.replaceChildren(strong, line, valuesOf(i));
  const x = screenX(i), y = screenY(i);
  const top = y > tip.offsetHeight + 16 ? y - tip.offsetHeight - 12 : y + 14;
  tip.style.left = `${Math.max(4, Math.min(x + 12, size.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(top, size.height - tip.offsetHeight - 4))}px`;
}

function valueOf(column, i) {
  const value = column.values[i];
  const known = column.texts ? column.texts[value] : value;
  return typeof known === "number" ? known.toLocaleString("en", { maximumSignificantDigits: 5 }) : known || "–";
}

function valuesOf(i) {
  const list = document.createElement("dl");
  for (const column of data.values) {
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = column.name;
    value.textContent = valueOf(column, i);
    value.dir = "auto";
    list.append(term, value);
  }
  return list;
}

// Members ------------------------------------------------------------------------------------

// Quoted where CSV needs it. A text that a spreadsheet would take for a formula gets an apostrophe.
function cell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+$/.test(text) ? `'${text}` : text;
  return /[",\n\r]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function members(cluster) {
  const lines = [data.ids ? "row,id,cluster" : "row,cluster"];
  for (let i = 0; i < n; i++) {
    if (cluster !== "all" && labels[i] !== Number(cluster)) continue;
    const row = String(rows ? rows[i] : i);
    const parts = data.ids ? [row, data.ids[i]] : [row];
    lines.push([...parts, data.clusters[labels[i]].name].map(cell).join(","));
  }
  return lines.join("\n") + "\n";
}

function download(cluster) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", members(cluster)], { type: "text/csv" }));
  link.download = cluster === "all" ? "clusters.csv" : `cluster-${cluster}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Moving -------------------------------------------------------------------------------------

function setZoom(wanted, x = size.width / 2, y = size.height / 2) {
  const next = Math.min(64, Math.max(1, wanted));
  const before = size.unit * zoom, after = size.unit * next;
  // What is under the pointer stays there.
  centre.x += (x - size.width / 2) * (1 / before - 1 / after);
  centre.y += (y - size.height / 2) * (1 / before - 1 / after);
  zoom = next;
  if (zoom === 1) centre = { x: view.width / 2, y: view.height / 2 };
  keepInside();
}

function keepInside() {
  centre.x = Math.min(view.width, Math.max(0, centre.x));
  centre.y = Math.min(view.height, Math.max(0, centre.y));
  canvas.classList.toggle("zoomed", zoom > 1);
  tip.hidden = true;
  drawSoon();
}

function moveBy(dx, dy) {
  if (zoom === 1) return;
  centre.x -= dx / (size.unit * zoom);
  centre.y -= dy / (size.unit * zoom);
  keepInside();
}

let grabbed = null;
canvas.addEventListener("pointerdown", (event) => {
  if (zoom > 1) { grabbed = { x: event.offsetX, y: event.offsetY }; canvas.setPointerCapture(event.pointerId); }
  point(nearest(event.offsetX, event.offsetY, event.pointerType === "mouse" ? 12 : 24));
});
canvas.addEventListener("pointermove", (event) => {
  if (grabbed) {
    moveBy(event.offsetX - grabbed.x, event.offsetY - grabbed.y);
    grabbed = { x: event.offsetX, y: event.offsetY };
  } else if (event.pointerType === "mouse") {
    point(nearest(event.offsetX, event.offsetY, 12));
  }
});
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { grabbed = null; });
canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") point(-1); });
canvas.addEventListener("dblclick", (event) => setZoom(zoom * 2, event.offsetX, event.offsetY));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return; // the plain wheel scrolls the page
  event.preventDefault();
  setZoom(zoom * Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const actions = {
    "+": () => setZoom(zoom * 1.5), "=": () => setZoom(zoom * 1.5), "-": () => setZoom(zoom / 1.5), "0": () => setZoom(1),
    ArrowLeft: () => moveBy(60, 0), ArrowRight: () => moveBy(-60, 0), ArrowUp: () => moveBy(0, 60), ArrowDown: () => moveBy(0, -60),
  };
  if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith("Arrow") && zoom === 1) return;
  event.preventDefault();
  actions[event.key]();
});

// Buttons ------------------------------------------------------------------------------------

function onButtons(kind, act) {
  for (const button of document.querySelectorAll(`button[data-${kind}]`)) {
    button.addEventListener("click", () => act(button, button.dataset[kind]));
  }
}

function toggle(button) {
  const on = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", on);
  return on;
}

onButtons("cluster", (button, cluster) => { shown[cluster] = toggle(button); drawSoon(); });
onButtons("link", (button, kind) => { links[kind] = toggle(button); drawSoon(); });
onButtons("all", (_, value) => {
  shown.fill(value === "true");
  for (const button of document.querySelectorAll("button[data-cluster]")) button.setAttribute("aria-pressed", value);
  drawSoon();
});
onButtons("members", (_, cluster) => download(cluster));
onButtons("zoom", (_, way) => setZoom({ in: zoom * 1.6, out: zoom / 1.6, reset: 1 }[way]));
onButtons("view", (button, number) => {
  for (const other of document.querySelectorAll("button[data-view]")) other.setAttribute("aria-pressed", other === button);
  for (const text of document.querySelectorAll("[data-about]")) text.hidden = text.dataset.about !== number;
  view = views[number];
  zoom = 1;
  centre = { x: view.width / 2, y: view.height / 2 };
  canvas.classList.remove("zoomed");
  tip.hidden = true;
  resize();
});

darkPage.addEventListener("change", draw);
for (const [name, value] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(name, () => { printing = value; draw(); });
}

const fit = () => { if (canvas.parentElement.clientWidth !== size.width) resize(); };
window.addEventListener("resize", fit);
// Scroll bars come and go without a resize of the window. In the next frame, as resizing within
// the notification would be an error of its own.
new ResizeObserver(() => requestAnimationFrame(fit)).observe(canvas.parentElement);
resize();
})();
