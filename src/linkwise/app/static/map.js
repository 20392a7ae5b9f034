// The map: all items on one canvas, the pair and everything that moves on a second one.

import { $ } from "./dom.js";
import { colour, isDark, packed, shape, sizeOf, stamp } from "./looks.js";
import { options } from "./page.js";

const GRID = 64; // cells a side, for finding the item under the pointer
const MORPH = 450; // ms
const FLASH = 900; // ms
const SMOOTH_UP_TO = 30000; // items that are moved smoothly
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class ItemMap {
  constructor() {
    this.handlers = {}; // hover(index, x, y), selected(indices), chosen(index)
    this.box = $("canvas-box");
    this.base = $("points");
    this.top = $("overlay");
    this.xy = null;
    this.labels = null;
    this.bySize = false; // many small clusters, which look like their size
    this.looks = null; // what each item looks like: its cluster's number, or that of a size
    this.pair = null;
    this.links = [];
    this.flash = [];
    this.lasso = null;
    this.selecting = false;
    this.highlight = null; // a cluster that is pointed at
    this.ink = {}; // colours of the theme, by name
    this.view = { scale: 1, x: 0, y: 0 };
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.listen();
  }

  get n() { return this.xy ? this.xy.length / 2 : 0; }

  setPoints(buffer) {
    const next = new Float32Array(buffer);
    const before = this.xy;
    if (!before || before.length !== next.length || this.n > SMOOTH_UP_TO || still()) {
      this.xy = next;
      this.indexed();
      this.draw();
      return;
    }
    const start = performance.now();
    const from = before.slice();
    const step = (now) => {
      const t = Math.min(1, (now - start) / MORPH);
      const ease = t * t * (3 - 2 * t);
      if (t === 1) this.xy = next;
      else {
        this.xy = new Float32Array(next.length);
        for (let k = 0; k < next.length; k++) this.xy[k] = from[k] + (next[k] - from[k]) * ease;
      }
      this.draw();
      if (t < 1) requestAnimationFrame(step);
      else this.indexed();
    };
    requestAnimationFrame(step);
  }

  setLabels(buffer) {
    const next = new Uint16Array(buffer);
    const changed = [];
    if (this.labels?.length === next.length) {
      for (let k = 0; k < next.length; k++) if (next[k] !== this.labels[k]) changed.push(k);
      if (!changed.length) return;
    }
    this.labels = next;
    this.relook();
    this.flashed(changed);
    this.draw();
  }

  relook() {
    this.looks = this.labels;
    if (!this.bySize) return;
    this.sizes = new Uint32Array(65536);
    for (const label of this.labels) this.sizes[label]++;
    this.looks = this.labels.map((label) => sizeOf(this.sizes[label]).look);
  }

  // Some items moved to other clusters
  move(changes) {
    if (!this.labels) return;
    for (const [index, label] of changes) this.labels[index] = label;
    this.relook();
    this.flashed(changes.map((change) => change[0]));
    this.draw();
  }

  // What moved is ringed for a moment, in two steps: each is drawn without a GPU in the worst case.
  flashed(indices) {
    if (!indices.length || still()) return;
    this.flash = indices.slice(0, 300);
    clearTimeout(this.fading);
    this.fading = setTimeout(() => { this.flash = []; this.drawTop(); }, FLASH);
  }

  endFlash() {
    clearTimeout(this.fading);
    this.flash = [];
  }

  setPair(question) { this.pair = question && [question.a, question.b]; this.drawTop(); }
  setLinks(links) { this.links = links; this.drawTop(); }
  setHighlight(cluster) { this.highlight = cluster; this.draw(); }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "pane", "accent", "same", "different"]) this.ink[name] = style.getPropertyValue(`--${name}`);
    this.draw();
  }

  // Drawing ---------------------------------------------------------------------------------------

  resize() {
    const { width, height } = this.box.getBoundingClientRect();
    this.ratio = Math.min(2, devicePixelRatio || 1);
    for (const canvas of [this.base, this.top]) {
      canvas.width = Math.max(1, Math.round(width * this.ratio));
      canvas.height = Math.max(1, Math.round(height * this.ratio));
    }
    this.image = null;
    this.draw();
  }

  // From the unit square to pixels of the canvas
  frame() {
    const { scale, x, y } = this.view;
    const { width, height } = this.base;
    const side = Math.min(width, height) * 0.96 * 1.6;
    const wide = Math.min(width * 0.96, side) * scale, high = Math.min(height * 0.96, side) * scale;
    return {
      wide, high,
      left: width / 2 - wide / 2 + x * this.ratio * scale,
      top: height / 2 - high / 2 + y * this.ratio * scale,
    };
  }

  place(index) {
    const { wide, high, left, top } = this.frame();
    return [left + this.xy[2 * index] * wide, top + this.xy[2 * index + 1] * high];
  }

  // The same in the units of the page, for tests and the pointer
  at(index) { return this.place(index).map((value) => value / this.ratio); }

  radius() {
    const n = this.n;
    const base = n <= 600 ? 4 : n <= 3000 ? 3 : n <= 20000 ? 2 : 1;
    return Math.round(base * this.ratio * Math.min(1.6, Math.max(1, this.view.scale ** 0.25)));
  }

  draw() {
    if (!this.xy || !this.ratio) return;
    const started = performance.now();
    const { width, height } = this.base;
    const context = this.base.getContext("2d");
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    this.drawPoints(width, height);
    context.putImageData(this.image, 0, 0);
    this.drawTop();
    this.lastDraw = performance.now() - started;
  }

  // A hundred thousand items are drawn in a frame: everything that is looked up is in arrays.
  drawPoints(width, height) {
    const radius = this.radius();
    const grey = packed(isDark() ? "#3a4452" : "#cfd5dd");
    const { wide, high, left, top } = this.frame();
    const { xy, n, pixels, labels, looks, highlight } = this;
    const dotsOf = (number) => Int32Array.from(stamp(number, radius), ([x, y]) => y * width + x);
    const dots = [], ink = [];
    const plain = dotsOf(0);
    for (let k = 0; k < n; k++) {
      const column = Math.round(left + xy[2 * k] * wide), row = Math.round(top + xy[2 * k + 1] * high);
      if (column < radius || row < radius || column >= width - radius || row >= height - radius) continue;
      let mark = plain, paint = grey;
      if (labels) {
        const look = looks[k];
        if (dots[look] === undefined) {
          dots[look] = dotsOf(shape(look));
          ink[look] = packed(colour(look));
        }
        mark = dots[look];
        if (highlight === null || highlight === labels[k]) paint = ink[look];
      }
      const at = row * width + column;
      for (let d = 0; d < mark.length; d++) pixels[at + mark[d]] = paint;
    }
  }

  drawTop() {
    if (!this.xy || !this.ratio) return;
    const context = this.top.getContext("2d");
    context.clearRect(0, 0, this.top.width, this.top.height);
    for (const link of this.links) this.drawLink(context, link);
    context.strokeStyle = this.ink.ink;
    context.lineWidth = 1.5 * this.ratio;
    for (const index of this.flash) {
      const [x, y] = this.place(index);
      context.beginPath();
      context.arc(x, y, 5 + this.radius(), 0, 2 * Math.PI);
      context.stroke();
    }
    if (this.pair) this.drawPair(context, this.ink);
    if (this.lasso && this.lasso.length > 1) {
      context.strokeStyle = context.fillStyle = this.ink.accent;
      context.lineWidth = 1.5 * this.ratio;
      context.beginPath();
      this.lasso.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      context.globalAlpha = 0.12;
      context.fill();
      context.globalAlpha = 1;
      context.stroke();
    }
  }

  drawPair(context, { ink, pane }) {
    const [a, b] = this.pair.map((index) => this.place(index));
    const size = 9 * this.ratio;
    context.strokeStyle = ink;
    context.lineWidth = 1.5 * this.ratio;
    context.setLineDash([2 * this.ratio, 3 * this.ratio]);
    context.beginPath();
    context.moveTo(...a);
    context.lineTo(...b);
    context.stroke();
    context.setLineDash([]);
    [[a, "A"], [b, "B"]].forEach(([[x, y], name]) => {
      if (options.blind) this.drawUnknown(context, x, y);
      context.lineWidth = 5 * this.ratio;
      context.strokeStyle = pane;
      ring();
      context.lineWidth = 2 * this.ratio;
      context.strokeStyle = ink;
      ring();
      const tx = x + (name === "A" ? -1 : 1) * 17 * this.ratio;
      const ty = y - 12 * this.ratio;
      context.fillStyle = ink;
      context.beginPath();
      context.arc(tx, ty, 9 * this.ratio, 0, 2 * Math.PI);
      context.fill();
      context.fillStyle = pane;
      context.font = `700 ${11 * this.ratio}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(name, tx, ty + 0.5 * this.ratio);
      function ring() {
        context.beginPath();
        if (name === "A") context.arc(x, y, size, 0, 2 * Math.PI);
        else context.rect(x - size, y - size, 2 * size, 2 * size);
        context.stroke();
      }
    });
  }

  // An item whose cluster is not to be seen before the answer
  drawUnknown(context, x, y) {
    const disc = (radius, paint, alpha) => {
      context.globalAlpha = alpha;
      context.fillStyle = paint;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    };
    disc(1.5 * this.radius() + this.ratio, this.ink.pane, 1);
    disc(this.radius(), this.ink.ink, 0.5);
    context.globalAlpha = 1;
  }

  // Must-links are solid; cannot-links are dashed with a bar across.
  drawLink(context, { a, b, relation }) {
    const [ax, ay] = this.place(a), [bx, by] = this.place(b);
    const same = relation === "same";
    context.strokeStyle = this.ink[same ? "same" : "different"];
    context.lineWidth = 1.5 * this.ratio;
    context.setLineDash(same ? [] : [5 * this.ratio, 4 * this.ratio]);
    context.beginPath();
    context.moveTo(ax, ay);
    context.lineTo(bx, by);
    context.stroke();
    context.setLineDash([]);
    if (same) return;
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const [nx, ny] = [(-(by - ay) / length) * 6 * this.ratio, ((bx - ax) / length) * 6 * this.ratio];
    const [mx, my] = [(ax + bx) / 2, (ay + by) / 2];
    context.beginPath();
    context.moveTo(mx - nx, my - ny);
    context.lineTo(mx + nx, my + ny);
    context.stroke();
  }

  // Pointer ---------------------------------------------------------------------------------------

  indexed() {
    this.cells = Array.from({ length: GRID * GRID }, () => []);
    for (let k = 0; k < this.n; k++) this.cells[this.cell(this.xy[2 * k], this.xy[2 * k + 1])].push(k);
  }

  cell(x, y) {
    const inside = (value) => Math.min(GRID - 1, Math.max(0, Math.floor(value * GRID)));
    return inside(y) * GRID + inside(x);
  }

  nearest(px, py, reach = 12) {
    if (!this.cells) return null;
    const { wide, high, left, top } = this.frame();
    const ux = (px * this.ratio - left) / wide, uy = (py * this.ratio - top) / high;
    const span = Math.ceil(((reach * this.ratio) / Math.min(wide, high)) * GRID);
    const column = Math.floor(ux * GRID), row = Math.floor(uy * GRID);
    let best = null, least = reach;
    for (let r = row - span; r <= row + span; r++) {
      for (let c = column - span; c <= column + span; c++) {
        if (r < 0 || c < 0 || r >= GRID || c >= GRID) continue;
        for (const k of this.cells[r * GRID + c]) {
          const [kx, ky] = this.at(k);
          const far = Math.hypot(kx - px, ky - py);
          if (far < least) [best, least] = [k, far];
        }
      }
    }
    return best;
  }

  listen() {
    const top = this.top;
    const where = (event) => {
      const box = top.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let from = null, moved = false;
    top.addEventListener("pointerdown", (event) => {
      top.setPointerCapture(event.pointerId);
      from = where(event);
      moved = false;
      if (this.selecting || event.shiftKey) this.lasso = [from.map((value) => value * this.ratio)];
    });
    top.addEventListener("pointermove", (event) => {
      const here = where(event);
      if (!from) {
        this.handlers.hover(this.nearest(...here), ...here);
        return;
      }
      moved = moved || Math.hypot(here[0] - from[0], here[1] - from[1]) > 3;
      if (this.lasso) {
        this.lasso.push(here.map((value) => value * this.ratio));
        this.drawTop();
      } else if (moved) {
        this.view.x += (here[0] - from[0]) / this.view.scale;
        this.view.y += (here[1] - from[1]) / this.view.scale;
        from = here;
        this.draw();
      }
    });
    top.addEventListener("pointerup", (event) => {
      if (this.lasso && this.lasso.length > 3) this.handlers.selected(this.inside(this.lasso));
      else if (!moved && from) this.handlers.chosen(this.nearest(...where(event)));
      if (this.lasso && this.lasso.length <= 3) this.lasso = null;
      from = null;
      this.drawTop();
    });
    top.addEventListener("pointerleave", () => this.handlers.hover(null));
    top.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0015), ...where(event));
    }, { passive: false });
  }

  zoom(factor, px = this.base.width / this.ratio / 2, py = this.base.height / this.ratio / 2) {
    const { view } = this;
    const next = Math.min(40, Math.max(0.5, view.scale * factor));
    const cx = this.base.width / this.ratio / 2, cy = this.base.height / this.ratio / 2;
    view.x += (px - cx) / next - (px - cx) / view.scale;
    view.y += (py - cy) / next - (py - cy) / view.scale;
    view.scale = next;
    this.draw();
  }

  fit() { this.view = { scale: 1, x: 0, y: 0 }; this.draw(); }

  clearLasso() { this.lasso = null; this.drawTop(); }

  inside(polygon) {
    const found = [];
    for (let k = 0; k < this.n; k++) {
      const [x, y] = this.place(k);
      let within = false;
      for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
        const [xi, yi] = polygon[i], [xj, yj] = polygon[j];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
      }
      if (within) found.push(k);
    }
    return found;
  }
}
