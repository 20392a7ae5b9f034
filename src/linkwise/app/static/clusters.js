// The list of clusters. Each has a card that is made once and filled again: most of them stay as they are after an answer.

import { brief } from "./cards.js";
import { $, el, number, plural, replace, write } from "./dom.js";
import { shapeName, swatch } from "./looks.js";

const LOCKS = [["", "Open"], ["pure", "Pure (ask nothing inside)"], ["complete", "Complete (ask nothing)"]];

export class ClusterList {
  constructor(panels) {
    this.panels = panels;
    this.note = el("p", { class: "small" });
    this.empty = el("p", { class: "empty", text: "The first clusters are being found…" });
    this.clear();
  }

  // Forget the cards, as in another theme.
  clear() { this.cards = new Map(); }

  fill() {
    const { clusters, total } = this.panels;
    const nodes = clusters.map((one) => this.card(one).fill(one));
    if (!clusters.length) nodes.push(this.empty);
    if (total > clusters.length) nodes.push(this.note);
    write(this.note, `These are the ${number(clusters.length)} largest of ${plural(total, "cluster")}. The export lists all.`);
    place($("body"), nodes);
  }

  card(one) {
    const key = `${one.id} ${this.panels.look(one)}`; // of many small clusters, the look changes with the size
    if (!this.cards.has(key)) this.cards.set(key, new ClusterCard(one, this.panels));
    return this.cards.get(key);
  }
}

// A field that is being used would lose the focus if it was moved.
function place(box, nodes) {
  const before = [...box.childNodes];
  if (before.length === nodes.length && nodes.every((node, k) => node === before[k])) return;
  const used = document.activeElement;
  replace(box, nodes);
  if (box.contains(used)) used.focus({ preventScroll: true });
}

class ClusterCard {
  constructor(one, panels) {
    const { id } = one;
    const { actions, map } = panels;
    this.name = el("input", { type: "text", placeholder: "name it", maxlength: "80",
      "aria-label": `Name of cluster ${id}, ${shapeName(panels.look(one))}`, onchange: () => actions.rename(id, this.name.value) });
    this.size = el("span", { class: "size" });
    this.lock = el("select", { "aria-label": `Questions about cluster ${id}`, onchange: () => {
      this.lock.blur();
      actions.lock(id, this.lock.value);
    } }, LOCKS.map(([value, text]) => el("option", { value, text })));
    this.close = el("span", { class: "small" });
    this.shown = ""; // examples
    this.examples = el("ul");
    this.node = el("article", { class: "cluster", "data-cluster": id,
      onpointerenter: () => map.setHighlight(id), onpointerleave: () => map.setHighlight(null) },
      el("div", { class: "cluster-head" }, swatch(panels.look(one)), el("b", { text: `c${id}` }), this.name, this.size),
      this.examples,
      el("div", { class: "cluster-actions" }, this.lock, merging(id, panels),
        el("button", { type: "button", text: "Looks mixed", onclick: () => actions.mixed(id) }), this.close));
  }

  fill(one) {
    write(this.size, number(one.size));
    if (this.name !== document.activeElement && this.name.value !== one.name) this.name.value = one.name;
    if (this.lock.value !== one.lock) this.lock.value = one.lock;
    write(this.close, one.close ? plural(one.close, "close call") : "");
    if (this.shown !== JSON.stringify(one.examples)) {
      this.shown = JSON.stringify(one.examples);
      const hasPictures = Boolean(one.examples[0]?.media);
      this.examples.className = hasPictures ? "examples pictures" : "examples";
      replace(this.examples, one.examples.map((item) => el("li", {}, ...(hasPictures ? [thumb(item)] : brief(item)))));
    }
    return this.node;
  }
}

const thumb = (item) => el("img", { class: "thumb", src: `/api/items/${item.index}/media`, alt: item.id });

// The other clusters are listed when they are looked at: two hundred lists of two hundred take time.
function merging(id, panels) {
  const first = el("option", { value: "", text: "Merge…" });
  const list = () => replace(select, first, panels.clusters.filter((other) => other.id !== id)
    .map((other) => el("option", { value: other.id, text: panels.name(other.id) })));
  const select = el("select", { "aria-label": `Merge cluster ${id} with`, onpointerdown: list, onfocus: list, onchange: () => {
    const other = select.value;
    select.value = "";
    select.blur();
    if (other) panels.actions.merge(id, Number(other));
  } }, first);
  return select;
}
