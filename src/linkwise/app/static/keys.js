// One key an answer. Keys can be changed, and single letters can be switched off.

import { el, remember, remembered } from "./dom.js";

export const ACTIONS = {
  same: ["Same", "y"], different: ["Different", "n"], unsure: ["Not sure", "u"], later: ["Later", " "],
  bad: ["Bad item", "x"], undo: ["Undo", "z"], context: ["Context", "c"], many: ["One to many", "m"],
  conflict: ["First conflict", "g"], find: ["Find an item", "/"], help: ["Keys and settings", "?"],
};
const FIXED = { 1: "same", 2: "different", 3: "unsure", backspace: "undo" };

export class Keys {
  constructor(perform) {
    this.perform = perform;
    this.own = remembered("keys", {});
    this.off = remembered("keys-off", false);
    this.waiting = null; // a key that is asked for, such as A or B of a bad item
    addEventListener("keydown", (event) => this.pressed(event));
    this.show();
  }

  key(action) { return this.own[action] ?? ACTIONS[action][1]; }

  pressed(event) {
    const key = event.key.toLowerCase();
    // A dialog that was closed may have the focus for a moment longer: nobody types there.
    const typing = event.target.matches?.("input, textarea, select, [contenteditable]") && !event.target.closest("dialog:not([open])");
    if (event.repeat || event.altKey || event.metaKey) return;
    if (event.ctrlKey) {
      const action = key === "z" ? (event.shiftKey ? "redo" : "undo") : key === "e" ? "export" : null;
      if (action && !typing) this.run(event, action);
      return;
    }
    if (typing || document.querySelector("dialog[open]")) return;
    if (this.waiting) {
      const waiting = this.waiting;
      if (key === "escape" || waiting.keys.includes(key)) {
        this.waiting = null;
        event.preventDefault();
        waiting.then(key === "escape" ? null : key);
      }
      return;
    }
    // Enter and Space belong to the button that has the focus.
    if (key === " " && event.target.matches?.("button, summary")) return;
    if (key === "enter" && event.target.matches?.("button, a, summary")) return;
    if (this.off) return;
    const action = key === this.key("undo") && event.shiftKey ? "redo" : this.find(key);
    if (action) this.run(event, action);
    else this.perform("key", event);
  }

  find(key) {
    const own = Object.keys(ACTIONS).find((action) => this.key(action) === key);
    return own ?? (document.body.dataset.mode === "many" ? null : FIXED[key]) ?? null;
  }

  run(event, action) {
    event.preventDefault();
    this.perform(action, event);
  }

  show() {
    for (const node of document.querySelectorAll("[data-key]")) {
      const key = this.key(node.dataset.key);
      node.textContent = shown(key);
      node.hidden = this.off;
    }
  }

  table() {
    const rows = Object.entries(ACTIONS).map(([action, [name]]) => {
      const input = el("input", { type: "text", value: shown(this.key(action)), "aria-label": `Key for ${name}`,
        onfocus: () => input.select(),
        oninput: (event) => {
          const key = event.data?.slice(-1).toLowerCase(); // nothing when a letter is deleted
          const taken = Object.keys(ACTIONS).find((other) => other !== action && this.key(other) === key);
          if (key && !taken) this.own = { ...this.own, [action]: key };
          remember("keys", this.own);
          input.value = shown(this.key(action));
          input.select();
          this.show();
        } });
      return el("tr", {}, el("td", { text: name }), el("td", {}, input), el("td", { class: "small", text: also(action) }));
    });
    const off = el("input", { type: "checkbox", checked: this.off, onchange: () => {
      this.off = off.checked;
      remember("keys-off", this.off);
      this.show();
    } });
    return [el("table", { class: "key-table" }, el("tbody", {}, rows)),
      el("label", { class: "check" }, off, "Switch single-letter keys off")];
  }
}

const shown = (key) => (key === " " ? "Space" : key.toUpperCase());

function also(action) {
  return { same: "or 1", different: "or 2", unsure: "or 3", undo: "or Backspace, Ctrl+Z; with Shift: redo" }[action] ?? "";
}

