// The figures above and around the question.

import { waiting } from "./api.js";
import { $, number, write } from "./dom.js";
import { onSome, stopFigures } from "./panels.js";

// First of all: whether an answer contradicts others.
export function showConflicts({ conflicts }) {
  showCount("conflicts", conflicts, "conflict");
  $("conflict-figure").classList.toggle("alert", conflicts > 0);
  write($("badge"), conflicts);
  $("badge").hidden = !conflicts;
}

export function showFigures(state) {
  showConflicts(state);
  if (document.title !== `${state.title} – linkwise`) document.title = `${state.title} – linkwise`;
  write($("title"), state.title);
  showCount("answers", state.answers, "answer");
  showCount("settled", state.settled, "pair settled", "pairs settled");
  showCount("clusters", state.clusters || "–", "cluster");
  $("truth-figure").hidden = state.ari === null;
  if (state.ari !== null) write($("n-ari"), gain(state));
  write($("open-name"), state.who);
  $("undo").disabled = !state.undo;
  $("redo").disabled = !state.redo;
  showDoing(state);
  write($("map-note"), state.map.name === "graph" ? "near means similar" : "along the main axes");
  write($("advice"), state.stop.advice);
  write($("stop-figures"), stopFigures(state.stop));
  $("stop").classList.toggle("reached", state.stop.reached);
  $("saved").classList.toggle("waiting", waiting() > 0);
  write($("saved"), waiting() ? `${waiting()} waiting` : "saved");
}

function showCount(name, n, word, many = `${word}s`) {
  write($(`n-${name}`), number(n));
  write($(`n-${name}`).previousElementSibling, n === 1 ? word : many);
}

export const showDoing = ({ doing }) => write($("doing"), doing ? `${doing}…` : "");

function gain({ start_ari: start, ari, n, n_truth: known }) {
  const from = start === null || start === ari ? "" : `${start.toFixed(2)} → `;
  return from + ari.toFixed(2) + onSome(known, n);
}
