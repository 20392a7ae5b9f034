// What the server tells: replies to what was sent, and news of everything else.

import { follow, get, numbers, sendWaiting, waiting } from "./api.js";
import { showConflicts, showDoing, showFigures } from "./header.js";
import { page, afterFrame, quiet, told, trouble, warn } from "./page.js";
import { map, panels } from "./parts.js";
import { preferred, showQuestion } from "./question.js";

// A reply with the next question. That is drawn first, in a frame of its own; the rest follows.
export function apply(reply, then = () => {}) {
  page.away = false;
  take(reply.state);
  showConflicts(reply.state);
  const isAsked = reply.question !== undefined && !page.many;
  if (isAsked) showQuestion(reply.question, panels);
  afterFrame(() => {
    try {
      if (isAsked) map.setPair(page.question);
      showState();
      if (reply.moved) move(reply);
    } finally {
      then(); // whatever went wrong: others wait for it
    }
  });
}

// Another server counts its revisions anew: what the map shows is none of these.
function take(state) {
  if (page.state && page.state.opened !== state.opened) mapRev = page.shown = -1;
  page.state = state;
}

const isOld = (state) => page.state?.opened === state.opened && state.rev < page.state.rev;

// Some items moved. If the map showed the clusters before that, it shows those of now.
function move({ moved, state }) {
  map.move(moved);
  if (page.shown === state.rev - 1) page.shown = state.rev;
}

function showState() {
  const { state } = page;
  showFigures(state);
  panels.total = state.clusters;
  panels.bySize = map.bySize = state.by_size;
  warn(state.error ? trouble(state.error) : null);
}

export async function ask() {
  apply(await get(`/api/question${preferred()}`));
}

// What has changed ------------------------------------------------------------------------------

const PAUSE = 40; // ms; what is told in the meantime is fetched with it
let mapRev = -1; // where the items are on the map
let placing = null; // it is being fetched

function fetchPoints() {
  placing ??= place().finally(() => { placing = null; });
  return placing;
}

async function place() {
  const found = await numbers("/api/points");
  await quiet();
  if (!found) return;
  mapRev = found.rev;
  map.setPoints(found.values);
}

async function fetchLabels() {
  const found = await numbers("/api/labels");
  await quiet();
  if (!found || found.rev < page.shown) return;
  page.shown = found.rev;
  map.setLabels(found.values);
}

async function refresh() {
  await quiet();
  const { state } = await get("/api/state");
  await quiet(); // an answer tells newer figures
  if (isOld(state)) { setTimeout(refreshSoon, PAUSE); return; }
  take(state);
  showState();
  await placing;
  if (state.map.rev > mapRev) await fetchPoints();
  if (state.clusters && state.rev > page.shown) await fetchLabels();
  panelsSoon();
  if (!page.question && !page.many && !page.busy) await ask();
}

let refreshing = null;
export function refreshSoon() {
  if (refreshing) { refreshing.again = true; return; }
  refreshing = { again: false };
  refresh().catch(told).finally(() => {
    const { again } = refreshing;
    refreshing = null;
    if (again) refreshSoon();
  });
}

// After an answer there are news of the clusters, too: once is enough for both.
let panelsDue = null;
export function panelsSoon() {
  panelsDue ??= setTimeout(async () => {
    await quiet();
    panelsDue = null;
    panels.refresh().catch(told);
  }, PAUSE);
}

// Connection --------------------------------------------------------------------------------------

// Everything at once: the map comes at the same time as the question.
export async function begin() {
  fetchPoints().catch(told);
  refreshSoon();
  if (waiting()) await sendWaiting(preferred());
  await ask();
}

async function comeBack() {
  refreshSoon(); // what was told before the connection was there
  if (!page.away && !waiting()) return;
  page.away = false;
  warn(null);
  await begin();
}

// The browser comes back to a server by itself, but not to one that refuses it: then the reason is told.
function leave(isComingBack) {
  page.away = true;
  if (!isComingBack) get("/api/state").catch(told);
}

export function listen() {
  follow({
    rev: refreshSoon, map: refreshSoon,
    progress: ({ doing }) => { showDoing({ doing }); if (!doing && !page.question && !page.many) refreshSoon(); },
    failure: ({ reason }) => warn(reason ? trouble(reason) : null),
    open: () => comeBack().catch(told),
    lost: leave,
  });
}
