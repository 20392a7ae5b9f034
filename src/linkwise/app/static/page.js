// What the page knows, for all its parts; everything on it follows from this and from the map's points and labels.

import { $, remember, remembered, plural, write } from "./dom.js";
import { Away, Refused, waiting } from "./api.js";

export const page = {
  state: null, // figures, as the server told them last
  question: null, // the pair that is asked, or
  many: null, // one item and others
  ahead: [], // questions for when the server is away
  endChoice: () => {}, // what is being chosen about the question goes with it
  away: false,
  busy: false, // an answer is on its way
  drawing: null, // until an answer and the next question are on the screen: a promise of that
  shownAt: 0,
  shown: -1, // revision of the clusters on the map
};
export const options = remembered("options", { marks: true, wordMarks: false, blind: true });
export const keepOptions = () => remember("options", options);

// Everything that can wait does, while an answer is on its way or the next question is being drawn.
export const quiet = async () => { while (page.drawing) await page.drawing; };

// After the next frame: what changes then is drawn in a frame of its own.
export const afterFrame = (then) => requestAnimationFrame(() => setTimeout(then));

export function say(text) { $("live").textContent = text; }

export function warn(text) {
  $("banner").hidden = !text;
  write($("banner"), text ?? "");
}

export const trouble = (reason) => `The clusters could not be worked out: ${reason}. Your answers are kept; answering goes on.`;

const ANEW = "linkwise was started anew, and this tab is not let in any more. Open the address that it printed in the terminal; your answers are kept.";

export function told(error) {
  if (error instanceof Away) {
    page.away = true;
    warn(`The server cannot be reached. ${waiting() ? `${plural(waiting(), "answer")} kept in this browser; ` : ""}you can go on, and they are sent when it is back.`);
  } else if (error instanceof Refused && error.code === 401) warn(ANEW);
  else if (error instanceof Refused) say(error.message);
  else throw error;
}
