// How a cluster looks: a colour, a shape and a number. Never the colour alone.

import { svg } from "./dom.js";

const LIGHT = ["#1b6ec2", "#c2410c", "#0f7b5f", "#9d3c9d", "#7a5c00", "#00717f", "#b3245a", "#4b5563"];
const DARK = ["#6cb2ff", "#ff9a62", "#4fd1a5", "#e08be0", "#e0b84a", "#4fd0e0", "#ff85ad", "#b8c1cc"];
// Seven rows of seven dots each
const MASKS = [
  ["..###..", ".#####.", "#######", "#######", "#######", ".#####.", "..###.."],
  ["#######", "#######", "#######", "#######", "#######", "#######", "#######"],
  ["...#...", "..###..", "..###..", ".#####.", ".#####.", "#######", "#######"],
  ["...#...", "..###..", ".#####.", "#######", ".#####.", "..###..", "...#..."],
  ["#######", "#######", ".#####.", ".#####.", "..###..", "..###..", "...#..."],
  ["..###..", "..###..", "#######", "#######", "#######", "..###..", "..###.."],
  ["##...##", "###.###", ".#####.", "..###..", ".#####.", "###.###", "##...##"],
  ["#######", "##...##", "#.....#", "#.....#", "#.....#", "##...##", "#######"],
];
const PATHS = [
  "M1 6a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z", "M1.5 1.5h9v9h-9Z", "M6 .6L11.4 10.6H.6Z", "M6 0L11 6 6 12 1 6Z",
  "M6 11.4L.6 1.4H11.4Z", "M4 .5h4v3.5h3.5v4H8v3.5H4V8H.5V4H4Z",
  "M3 .5L6 3.5 9 .5 11.5 3 8.5 6 11.5 9 9 11.5 6 8.5 3 11.5 .5 9 3.5 6 .5 3Z",
  "M1 1h10v10H1ZM3.2 6a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0Z",
];
export const SHAPE_NAMES = ["disc", "square", "triangle", "diamond", "triangle down", "plus", "cross", "ring"];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
export const colour = (cluster) => (isDark() ? DARK : LIGHT)[cluster % 8];
export const shape = (cluster) => (cluster + Math.floor(cluster / 8)) % 8;
export const shapeName = (cluster) => SHAPE_NAMES[shape(cluster)];

// Clusters by size, each size with the look of a cluster number
export const SIZES = [
  { from: 1, look: 7, name: "one item" }, { from: 2, look: 0, name: "2" }, { from: 3, look: 1, name: "3 – 4" },
  { from: 5, look: 2, name: "5 – 9" }, { from: 10, look: 3, name: "10 and more" },
];
export const sizeOf = (count) => SIZES.findLast((one) => count >= one.from) ?? SIZES[0];

export function swatch(cluster) {
  const path = svg("path", { d: PATHS[shape(cluster)], "fill-rule": "evenodd", fill: colour(cluster) });
  return svg("svg", { class: "swatch", viewBox: "0 0 12 12", "aria-hidden": "true" }, path);
}

// Dots of a shape in a square of 2 r + 1, as offsets (dx, dy)
export function stamp(which, radius) {
  const side = 2 * radius + 1;
  const found = [];
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const inMask = MASKS[which][Math.floor(((y + 0.5) * 7) / side)][Math.floor(((x + 0.5) * 7) / side)] === "#";
      if (side < 4 || inMask) found.push([x - radius, y - radius]);
    }
  }
  return found;
}

export function packed(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return (255 << 24) | (b << 16) | (g << 8) | r; // little-endian RGBA
}
