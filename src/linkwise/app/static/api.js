// Talking to the server. What cannot be sent now is kept and sent later, once.

import { remember, remembered } from "./dom.js";

export const TAB = tab();
const headers = { "Content-Type": "application/json", "X-Tab": TAB };

function tab() {
  try {
    const known = sessionStorage.getItem("linkwise-tab");
    if (known) return known;
    const made = crypto.randomUUID();
    sessionStorage.setItem("linkwise-tab", made);
    return made;
  } catch {
    return crypto.randomUUID();
  }
}

export class Refused extends Error {
  constructor(reason, code) {
    super(reason);
    this.code = code;
  }
}
export class Away extends Error {}

let check = remembered("check", false);
export const checking = () => check;
export function setChecking(on) {
  check = on;
  remember("check", on);
}

// A reply that breaks off is as good as none.
async function call(path, options, read) {
  let reply;
  try {
    reply = await fetch(path, { ...options, headers: { ...headers, "X-Check": check ? "1" : "0" } });
    if (reply.ok) return await read(reply);
  } catch {
    throw new Away("The server cannot be reached.");
  }
  let reason = `${reply.status} ${reply.statusText}`;
  try {
    reason = (await reply.json()).error ?? reason;
  } catch { /* no JSON */ }
  throw new Refused(reason, reply.status);
}

const asJson = (reply) => reply.json();
export const get = (path) => call(path, {}, asJson);
// Plain numbers, and which state of them; null while there are none
export async function numbers(path) {
  try {
    return await call(path, {}, async (reply) => (
      { values: await reply.arrayBuffer(), rev: Number(reply.headers.get("X-Rev")) }
    ));
  } catch (error) {
    if (error instanceof Refused && error.code === 404) return null;
    throw error;
  }
}
export const post = (path, body) =>
  call(path, { method: "POST", body: JSON.stringify({ uuid: crypto.randomUUID(), ...body }) }, asJson);

// Answers that wait for the server -------------------------------------------------------------

const queue = () => remembered("queue", []);
export const waiting = () => queue().length;

export function keep(path, body) {
  remember("queue", [...queue(), { path, body }]);
}

// `preferred` names the question on the screen, which the replies leave there.
export async function sendWaiting(preferred) {
  let last = null;
  while (queue().length) {
    const [first] = queue();
    try {
      last = await post(first.path + preferred, first.body); // with its own uuid: a second time changes nothing
    } catch (error) {
      // Only what the server understood and will never take is let go.
      if (error instanceof Away || error.code !== 400) throw error;
    }
    // Read again: answers may have been added, or sent by another tab, while this one was on its way.
    remember("queue", queue().filter((one) => one.body.uuid !== first.body.uuid));
  }
  return last;
}

// News; "lost" is told whether the browser will try again
export function follow({ open, lost, ...kinds }) {
  const source = new EventSource("/api/events");
  source.onopen = open;
  source.onerror = () => lost(source.readyState !== EventSource.CLOSED);
  for (const [kind, handle] of Object.entries(kinds)) {
    source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  }
}
