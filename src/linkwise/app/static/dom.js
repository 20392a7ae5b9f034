// Elements are built from nodes and text. Data are never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export function el(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (name === "class") node.setAttribute("class", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// What stands there already is not written again: it would be laid out and drawn anew.
export function write(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

export const number = (value) => value.toLocaleString("en");
export const percent = (share) => (share < 0.0005 && share > 0 ? "under 0.1" : (100 * share).toFixed(share < 0.1 ? 1 : 0)) + " %";
export const plural = (n, word, many = `${word}s`) => `${number(n)} ${n === 1 ? word : many}`;

export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString();
}

export function remembered(key, fallback) {
  try {
    const text = localStorage.getItem(`linkwise-${location.port}-${key}`);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(`linkwise-${location.port}-${key}`, JSON.stringify(value));
  } catch { /* private windows have no storage */ }
}
