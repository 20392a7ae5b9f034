// The four tabs: clusters, conflicts, history, quality.

import { get } from "./api.js";
import { brief } from "./cards.js";
import { $, ago, el, number, percent, plural, replace, svg, write } from "./dom.js";
import { ClusterList } from "./clusters.js";
import { SIZES, sizeOf, swatch } from "./looks.js";
import { quiet, told } from "./page.js";

const TABS = ["clusters", "conflicts", "history", "quality"];

export class Panels {
  constructor(map) {
    this.map = map;
    this.actions = {}; // rename, lock, merge, mixed, resolve, again, setK
    this.current = "clusters";
    this.clusters = [];
    this.list = new ClusterList(this);
    this.legend = ""; // what it shows
    this.total = 0; // clusters, of which the largest are listed
    this.bySize = false; // many small clusters
    TABS.forEach((name, k) => {
      const tab = $(`tab-${name}`);
      tab.addEventListener("click", () => this.open(name).catch(told));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = TABS[(k + step + TABS.length) % TABS.length];
        this.open(next).catch(told);
        $(`tab-${next}`).focus();
      });
    });
  }

  open(name) {
    if (this.current === "conflicts" && name !== "conflicts") this.map.setLinks([]);
    if (name !== this.current) this.empty();
    this.current = name;
    for (const one of TABS) {
      const tab = $(`tab-${one}`);
      tab.setAttribute("aria-selected", String(one === name));
      tab.tabIndex = one === name ? 0 : -1;
    }
    $("body").setAttribute("aria-labelledby", `tab-${name}`);
    return this.refresh();
  }

  // What the last tab showed is not of the next one.
  empty() {
    const waiting = el("p", { class: "empty" });
    replace($("body"), waiting);
    setTimeout(() => write(waiting, "Loading…"), 200);
  }

  async refresh() {
    const { clusters } = await get("/api/clusters");
    await quiet();
    this.clusters = clusters;
    this.drawLegend();
    const name = this.current;
    if (name === "clusters") { this.list.fill(); return; }
    if ($("body").contains(document.activeElement) && document.activeElement.matches("input, select")) return;
    const made = await this[name]();
    await quiet();
    if (name === this.current) replace($("body"), made);
  }

  recolour() {
    this.legend = "";
    this.list.clear();
    if (this.clusters.length) this.refresh().catch(told);
  }

  name(id) {
    const known = this.clusters.find((one) => one.id === id);
    return known?.name ? `c${id} “${known.name}”` : `c${id}`;
  }

  // The cluster that an item is in now
  cluster(index) {
    const { labels } = this.map;
    return labels ? this.name(labels[index]) : null;
  }

  drawLegend() {
    const shown = this.bySize ? this.sizeLegend() : this.clusters.slice(0, 40).map((one) => [one.id, `${this.name(one.id)} `, number(one.size)]);
    if (this.legend === JSON.stringify(shown)) return;
    this.legend = JSON.stringify(shown);
    replace($("legend"), shown.map(([look, name, count]) => el("li", {}, swatch(look), name, el("span", { class: "small", text: count }))));
  }

  // How many clusters there are of each size
  sizeLegend() {
    const counts = new Map(SIZES.map((size) => [size, 0]));
    for (const count of this.map.sizes ?? []) if (count) counts.set(sizeOf(count), counts.get(sizeOf(count)) + 1);
    return [...counts].filter(([, count]) => count).map(([size, count]) => [size.look, `${size.name} `, plural(count, "cluster")]);
  }

  look(one) { return this.bySize ? sizeOf(one.size).look : one.id; }

  // Conflicts ---------------------------------------------------------------------------------------

  async conflicts() {
    const { conflicts } = await get("/api/conflicts");
    this.map.setLinks(conflicts.flatMap((one) => (one.links ?? []).map(({ a, b, relation }) => ({ a: a.index, b: b.index, relation }))));
    if (!conflicts.length) return el("p", { class: "empty", text: "No conflicts. Your answers fit together." });
    return conflicts.map((one) => this[`conflict_${one.kind}`](one));
  }

  conflict_contradiction(conflict) {
    const [claim, ...chain] = conflict.links;
    const ordered = [...conflict.links].sort((x, y) => Number(y.least) - Number(x.least));
    const fewest = conflict.links.filter((link) => link.fewest);
    return el("article", { class: "conflict" },
      el("h3", { text: "These answers cannot all be right" }),
      el("p", {}, `You said ${this.sentence(claim)}. But you also said: `,
        `${chain.map((link) => this.sentence(link)).join("; ")}. One of these is wrong. `,
        el("span", { class: "note", text: `currently ignored: #${conflict.ignored}` })),
      fewest.length && fewest.length < conflict.links.length
        ? el("div", { class: "row" }, el("button", { type: "button", text: `Fewest changes: withdraw ${fewest.map((link) => `#${link.seq}`).join(", ")}`,
          onclick: async () => { for (const link of fewest) await this.actions.resolve(link, "withdraw"); } }))
        : null,
      el("div", { class: "chain" }, ordered.map((link) => this.link(link))));
  }

  sentence({ a, b, relation, seq }) {
    return relation === "same" ? `${a.id} is the same as ${b.id} (#${seq})` : `${a.id} and ${b.id} differ (#${seq})`;
  }

  link(link) {
    const act = (action) => () => this.actions.resolve(link, action);
    return el("div", { class: link.least ? "link least" : "link" },
      el("div", {}, link.least ? el("span", { class: "note strong-note", text: "least supported" }) : null,
        el("span", { class: "note", text: `#${link.seq}` })),
      el("p", { class: "said" }, ...brief(link.a), el("span", { class: `word-${link.relation}`, text: link.relation === "same" ? "  same as  " : "  different from  " }), ...brief(link.b)),
      el("p", { class: "small", text: `${link.who}, ${ago(link.at)}` }),
      el("div", { class: "row" },
        el("button", { type: "button", onclick: act("flip"), text: "Flip" }),
        el("button", { type: "button", onclick: act("withdraw"), text: "Withdraw" }),
        el("button", { type: "button", onclick: act("sure"), text: "I’m sure" }),
        el("button", { type: "button", onclick: () => this.actions.again(link.a.index, link.b.index), text: "Look again" })));
  }

  conflict_disagreement(conflict) {
    const [link] = conflict.links;
    return el("article", { class: "conflict" },
      el("h3", { text: "People disagree" }),
      el("p", {}, ...brief(link.a), " and ", ...brief(link.b), ": ",
        conflict.votes.map((vote) => `${vote.who} says ${vote.relation}`).join(", "), ". The pair is left out until this is decided."),
      el("div", { class: "row" },
        ["same", "different"].map((relation) => el("button", { type: "button", text: `It is ${relation}`,
          onclick: () => this.actions.resolve(link, "sure", relation) })),
        el("button", { type: "button", text: "Withdraw both", onclick: () => this.actions.resolve(link, "withdraw") })));
  }

  conflict_clusters(conflict) {
    return el("article", { class: "conflict" },
      el("h3", { text: `${conflict.k} clusters are too few` }),
      el("p", { text: `Your answers keep ${conflict.needed} items apart from each other:` }),
      el("ul", { class: "examples" }, conflict.groups.map((item) => el("li", {}, ...brief(item)))),
      el("div", { class: "row" }, el("button", { type: "button", class: "strong", text: `Use ${conflict.needed} clusters`, onclick: () => this.actions.setK(conflict.needed) })));
  }

  // History -----------------------------------------------------------------------------------------

  async history() {
    const list = el("ul", { class: "events" });
    const more = el("button", { type: "button", text: "Older" });
    let before = null;
    const load = async () => {
      const { events } = await get(`/api/history${before === null ? "" : `?before=${before}`}`);
      list.append(...events.map((event) => this.event(event)));
      before = events.length ? events.at(-1).seq : before;
      more.hidden = events.length < 60;
      if (before === null) list.append(el("li", { class: "empty", text: "Nothing was answered yet." }));
    };
    more.addEventListener("click", load);
    await load();
    return [list, more];
  }

  event(event) {
    const again = event.a && event.b
      ? el("button", { type: "button", text: "Look again", onclick: () => this.actions.again(event.a.index, event.b.index) })
      : null;
    return el("li", { class: event.counts ? "" : "undone" }, this.told(event),
      el("span", { class: "meta" }, el("span", { class: "small", text: `#${event.seq} · ${event.who} · ${ago(event.at)}${event.ignored ? " · ignored" : ""}${fate(event)}` }), again));
  }

  told(event) {
    const words = { same: " same as ", different: " different from ", unsure: " not sure about ", withdrawn: " withdrawn, with " };
    if (event.a && event.b) {
      const word = event.kind === "later" ? " later, with " : words[event.relation];
      const prefix = { import: "Imported: ", resolve: "Changed: " }[event.kind] ?? "";
      return el("span", {}, prefix, ...brief(event.a), el("b", { class: `word-${event.relation}`, text: word }), ...brief(event.b));
    }
    if (event.kind === "flag") return el("span", {}, event.relation === "bad" ? "Bad item: " : "Good again: ", ...brief(event.a));
    if (event.kind === "rename") return `Named c${event.cluster}: ${event.note || "(no name)"}`;
    if (event.kind === "lock") return event.note ? `c${event.cluster} is ${event.note}` : `c${event.cluster} is open again`;
    if (event.kind === "clusters") return event.cluster ? `${event.cluster} clusters wanted` : "Number of clusters: found";
    return event.kind === "undo" ? `Undone: #${event.target}` : `Redone: #${event.target}`;
  }

  // Quality -----------------------------------------------------------------------------------------

  async quality() {
    const found = await get("/api/quality");
    const { stop } = found;
    return [
      el("div", { class: "block" }, el("h3", { text: "When to stop" }), el("p", { text: stop.advice }),
        el("p", { class: "small", text: stopFigures(stop) })),
      el("div", { class: "block" }, el("h3", { text: "Items that changed cluster" }),
        found.moved.length > 1 ? sparkline(found.moved, "share of items that changed cluster, for each clustering") : null,
        el("p", { class: "small", text: found.moved.length > 1 ? `Share at each new clustering, the last: ${percent(found.moved.at(-1))}.` : "After the first answers a curve shows here." })),
      found.ari.some((one) => one !== null)
        ? el("div", { class: "block" }, el("h3", { text: "Agreement with the truth" }), sparkline(found.ari.map((one) => one ?? 0), "adjusted Rand index over time", 1),
          el("p", { class: "small", text: `Adjusted Rand index, 1 is perfect: from ${found.ari.find((one) => one !== null).toFixed(2)} to ${found.ari.at(-1).toFixed(2)}${onSome(found.n_truth, this.map.n)}.` }))
        : null,
      found.suspects.length
        ? el("div", { class: "block" }, el("h3", { text: "Worth a second look" }),
          el("p", { class: "small", text: "These answers do not fit what the other answers and the data suggest." }),
          el("div", { class: "chain" }, found.suspects.map((link) => el("div", { class: "link" },
            el("p", { class: "said" }, ...brief(link.a), el("span", { class: `word-${link.relation}`, text: link.relation === "same" ? "  same as  " : "  different from  " }), ...brief(link.b)),
            el("p", { class: "small", text: `#${link.seq}, wrong with probability ${percent(link.probability)}` }),
            el("div", { class: "row" }, el("button", { type: "button", text: "Ask me again", onclick: () => this.actions.again(link.a.index, link.b.index) }))))))
        : null,
      el("div", { class: "block" }, el("h3", { text: "People" }), this.people(found)),
    ];
  }

  people({ people, agreement }) {
    if (!people.length) return el("p", { class: "small", text: "Nobody has answered yet." });
    const rows = people.map((one) => el("tr", {}, el("td", { text: one.name }), el("td", { text: number(one.answers) }),
      el("td", { text: one.checks ? `${one.differ} of ${one.checks}` : "–" })));
    return [
      el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, ["name", "answers", "repeats that differ"].map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, rows)),
      agreement.map((one) => el("p", { class: "small", text: `${one.people.join(" and ")} agree on ${one.agree} of ${plural(one.pairs, "pair")}${one.kappa === null ? "" : `, kappa ${one.kappa.toFixed(2)}`}.` })),
    ];
  }
}

// What became of an event that does not count any more
function fate({ counts, replaced }) {
  if (replaced) return " · replaced later";
  return counts ? "" : " · undone";
}

// Where the truth of some items only is known
export const onSome = (known, n) => (known < n ? ` on ${number(known)} of ${number(n)} items` : "");

export function stopFigures({ moved, still, close }) {
  const parts = [];
  if (moved !== null) parts.push(`The last 15 answers moved ${percent(moved)} of the items.`);
  if (still !== null) parts.push(`About ${percent(still)} may still change.`);
  if (close !== null) parts.push(`${plural(close, "close call")} left.`);
  return parts.join(" ");
}

function sparkline(values, label, top = Math.max(0.02, ...values)) {
  const points = values.map((value, k) => `${((k / Math.max(1, values.length - 1)) * 300).toFixed(1)} ${(52 - 46 * Math.max(0, Math.min(1, value / top))).toFixed(1)}`);
  return svg("svg", { class: "spark", viewBox: "0 0 300 56", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { class: "area", d: `M0 56L${points.join("L")}L300 56Z` }), svg("path", { d: `M${points.join("L")}` }));
}
