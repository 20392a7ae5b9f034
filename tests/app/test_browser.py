"""The page in a real browser: Chromium, driven by Playwright, against a real server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

IS_REQUIRED = os.environ.get("LINKWISE_BROWSER") == "required"  # in CI they must not be skipped
if not IS_REQUIRED:
    pytest.importorskip("starlette", reason="the annotation page needs linkwise[app]")
    pytest.importorskip("playwright", reason="tests in a browser need the package playwright")

from playwright.sync_api import sync_playwright

from linkwise.app.items import Items
from rooms import TOKEN, Running, StubSolver, blobs, make_room

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "google-chrome")) if path), None)
if CHROMIUM is None and IS_REQUIRED:
    raise RuntimeError("There is no browser: install the Debian package chromium.")
AXE = os.environ.get("LINKWISE_AXE", "")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no browser: install the Debian package chromium"
)
WIDE = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


PATIENCE = 60  # seconds; only a test that fails waits so long


def until(page, condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        page.wait_for_timeout(20)


def holds(page, expression, seconds=PATIENCE):
    """Wait until an expression holds; Playwright's own wait is stopped by the page's policy."""
    until(page, lambda: page.evaluate(expression), seconds)


class Page:
    """A page with what it logged; closed after the test."""

    def __init__(self, browser, server, **settings):
        self.context = browser.new_context(viewport=WIDE, **settings)
        self.context.set_default_timeout(1_000 * PATIENCE)
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._log)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{server.address}/?token={TOKEN}")
        self.page.wait_for_selector("[data-pair]")
        self.room = server.room
        self.until(lambda: server.room.clustering.method != "k-means, for the moment")
        self.holds("linkwise.map.labels && linkwise.map.xy && true")

    def _log(self, message):
        if message.type in {"error", "warning"} and "net::ERR" not in message.text:
            self.errors.append(message.text)

    def __getattr__(self, name):
        return getattr(self.page, name)

    @property
    def pair(self):
        return self.page.get_attribute("#question", "data-pair")

    def text(self, selector):
        return self.page.inner_text(selector)

    def press(self, key):
        """Answer by a key, and wait for the next question."""
        before, done = self.pair, len(self.room.project.ledger.events)
        self.page.keyboard.press(key)
        self.until(lambda: len(self.room.project.ledger.events) > done)
        self.holds("!linkwise.page.busy")
        return before

    def until(self, condition, seconds=PATIENCE):
        until(self.page, condition, seconds)

    def holds(self, expression):
        holds(self.page, expression)

    def ask(self, a, b):
        """Have a pair asked, as by finding both items."""
        self.page.evaluate(
            """async ([a, b]) => {
              const { post } = await import("/static/api.js");
              await post("/api/ask", { a, b });
            }""",
            [a, b],
        )
        self.page.evaluate("sessionStorage.removeItem('linkwise-question')")
        self.page.reload()
        self.page.wait_for_selector(f"[data-pair='{min(a, b)}-{max(a, b)}']")
        self.holds("!!linkwise.map.labels")


@pytest.fixture
def room(tmp_path):
    return make_room(tmp_path)


@pytest.fixture
def server(room):
    with Running(room) as running:
        yield running


@pytest.fixture
def page(browser, server):
    opened = Page(browser, server)
    yield opened
    opened.context.close()


def answers(room):
    db = sqlite3.connect(room.project.path)
    found = db.execute("select a, b, relation from event where kind = 'answer'").fetchall()
    db.close()
    return found


# 1
def test_opening_asks_nothing_of_other_hosts(page, server):
    assert page.text("#question-title") == "Do these two belong together?"
    assert all(url.startswith(server.address) for url in page.requests)
    assert page.errors == []
    assert "token" not in page.url
    static = Path(sys.modules["linkwise.app.server"].STATIC)
    assert sum(path.stat().st_size for path in static.iterdir()) < 300_000


# 2
def test_an_answer_is_on_the_disk_before_the_next_question_shows(page, room):
    seen = []

    def held(route):
        reply = route.fetch()
        seen.append(([f"{a}-{b}" for a, b, _ in answers(room)], page.pair))
        route.fulfill(response=reply)

    page.page.route("**/api/answers", held)
    before = page.press("y")
    page.until(lambda: page.pair != before)
    assert seen == [([before], before)]  # on the disk, and the same pair is still shown
    assert page.pair != before
    page.until(lambda: page.text("#n-answers") == "1")  # in the frame after the question
    assert page.text("#live").startswith("Same.")


def test_nothing_else_is_fetched_or_shown_before_the_next_question(page, room):
    page.page.wait_for_timeout(500)  # what opening the page fetches
    seen = []

    def held(route):
        reply = route.fetch()  # others are told of the answer now, and this page, too
        known = len(page.requests)
        page.page.wait_for_timeout(300)
        seen.append((page.requests[known:], page.text("#n-answers")))
        route.fulfill(response=reply)

    page.page.route("**/api/answers", held)
    before = page.press("y")
    page.until(lambda: page.pair != before)
    assert seen == [([], "0")]
    known = len(page.requests)
    page.until(lambda: any("/api/clusters" in url for url in page.requests[known:]))


def test_the_question_is_drawn_before_everything_else(page):
    page.evaluate(
        """() => {
          globalThis.order = [];
          const note = (name) => () => order.push(name);
          const see = (id, told, options) => new MutationObserver(told)
            .observe(document.getElementById(id), options);
          const pair = { attributeFilter: ["data-pair"] };
          see("question", note("question"), pair);
          see("question", () => requestAnimationFrame(note("frame")), pair);
          see("n-answers", note("figures"), { childList: true });
          const { map } = linkwise, ring = map.setPair.bind(map);
          map.setPair = (question) => { order.push("map"); ring(question); };
        }"""
    )
    page.press("y")
    page.holds("order.length > 3")
    assert page.evaluate("order") == ["question", "frame", "map", "figures"]


def test_what_has_not_changed_is_not_drawn_again(page, room):
    page.page.wait_for_timeout(500)  # what opening the page draws
    page.evaluate(
        """() => {
          globalThis.drawn = [];
          new MutationObserver((changes) => drawn.push(...changes.map(({ target }) => target.id)))
            .observe(document.body, { childList: true, characterData: true, subtree: true });
          linkwise.map.draw = () => drawn.push("map");
        }"""
    )
    known = len(page.requests)
    room.feed.publish("rev", {"rev": -1})
    page.until(lambda: any("/api/clusters" in url for url in page.requests[known:]))
    page.page.wait_for_timeout(300)
    assert page.evaluate("drawn") == []


# 3
def test_keys_mean_one_answer_each(page, room):
    page.press("Y")
    assert len(answers(room)) == 1
    page.page.keyboard.down("n")
    for _ in range(5):
        page.page.keyboard.down("n")  # held: the browser repeats it
    page.page.keyboard.up("n")
    page.until(lambda: len(answers(room)) > 1)
    page.wait_for_timeout(300)
    assert len(answers(room)) == 2
    page.keyboard.press("/")
    page.page.keyboard.type("yyy")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+y")
    page.keyboard.press("Alt+y")
    page.wait_for_timeout(200)
    assert len(answers(room)) == 2


# 4
def test_what_follows_is_not_asked(page, room):
    for a, b in [(0, 1), (1, 2)]:
        page.ask(a, b)
        page.press("y")
    page.until(lambda: page.text("#n-settled") == "3")  # drawn in the frame after the question
    for _ in range(50):
        assert page.pair != "0-2"
        page.press("u")


def contradiction(page):
    for a, b, key in [(0, 1, "y"), (1, 2, "y"), (0, 2, "n")]:
        page.ask(a, b)
        page.press(key)


# 5, 6
def test_a_conflict_is_shown_as_the_own_answers_and_resolved(page, room):
    contradiction(page)
    page.wait_for_selector("#badge:not([hidden])")
    assert page.text("#badge") == "1"
    assert page.pair is not None
    page.keyboard.press("g")
    page.wait_for_selector(".conflict")
    words = re.sub(r"\s+", " ", page.text(".conflict"))
    assert "You said item 0 and item 2 differ (#3)" in words
    assert "item 0 is the same as item 1 (#1); item 1 is the same as item 2 (#2)" in words
    assert "currently ignored: #3" in words
    assert page.locator(".conflict .link").count() == 3
    link = page.locator(".conflict .link", has_text="#2")
    link.get_by_role("button", name="Flip").click()
    page.wait_for_selector("#badge", state="hidden")
    labels = room.clustering.labels
    assert labels[0] == labels[1] != labels[2]
    page.click("#tab-history")
    page.wait_for_selector(".events li")
    assert page.locator(".events li").count() == 4


# 7
def test_thirty_answers_are_undone_and_redone(page, room):
    start = room.clustering.labels.tolist()
    for number in range(30):
        page.press("ynu"[number % 3])
    after = (dict(room.evidence.accepted), room.clustering.labels.tolist())
    for _ in range(30):
        page.press("z")
    assert room.evidence.accepted == {}
    assert room.clustering.labels.tolist() == start
    for _ in range(30):
        page.press("Shift+Z")
    assert (dict(room.evidence.accepted), room.clustering.labels.tolist()) == after
    page.until(lambda: page.text("#n-answers") == "30")


def test_what_fails_to_be_drawn_ends_the_drawing(page, room):
    page.evaluate("() => { linkwise.map.setPair = () => { throw new Error('on purpose'); }; }")
    page.press("y")
    page.holds("linkwise.page.drawing === null")
    page.press("n")
    assert len(answers(room)) == 2
    assert any("on purpose" in error for error in page.errors)


def test_a_bad_item_is_one_of_the_question_that_is_shown(page, room):
    page.keyboard.press("x")
    page.wait_for_selector("#bad-choice")
    before = page.pair
    page.click(".answers [data-action='same']")
    page.until(lambda: page.pair != before)
    assert page.locator("#bad-choice").count() == 0
    page.press("n")  # no longer asks for A or B
    page.keyboard.press("x")
    page.wait_for_selector("#bad-choice")
    a = int(page.pair.split("-")[0])
    page.click("#bad-choice button")
    page.until(lambda: room.project.ledger.facts.flagged)
    assert room.project.ledger.facts.flagged == {a}


# 8
def serve(folder, port):
    command = [sys.executable, "-m", "linkwise", "serve", str(folder / "data.csv"), "-k", "3"]
    started = subprocess.Popen(
        [*command, "--no-browser", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    for line in started.stdout:
        if found := re.search(r"http://\S+", line):
            return started, found[0]
    raise AssertionError("the server did not start")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL, which Windows lacks")
def test_a_killed_server_loses_nothing_and_the_page_goes_on(browser, tmp_path):
    X, _ = blobs()
    table = "\n".join(f"r{k},{a:.3f},{b:.3f}" for k, (a, b) in enumerate(X[:, :2]))
    (tmp_path / "data.csv").write_text(f"id,x,y\n{table}\n")
    process, address = serve(tmp_path, 0)
    context = browser.new_context(viewport=WIDE)
    context.set_default_timeout(1_000 * PATIENCE)
    page = context.new_page()
    again = None
    try:
        page.goto(address)
        page.wait_for_selector("[data-pair]")
        for number in range(3):
            page.keyboard.press("y")
            holds(page, f"document.getElementById('n-answers').textContent === '{number + 1}'")
        holds(page, "linkwise.page.ahead.length > 3")
        shown = page.get_attribute("#question", "data-pair")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        page.keyboard.press("n")  # kept in the browser
        page.wait_for_selector("#banner:not([hidden])")
        assert page.get_attribute("#question", "data-pair") != shown
        port = int(address.split(":")[2].split("/")[0])
        again, second = serve(tmp_path, port)
        page.goto(second)  # a new token; the same browser
        holds(page, "document.getElementById('n-answers').textContent === '4'")
        page.wait_for_selector("[data-pair]")
        before = page.get_attribute("#question", "data-pair")
        page.reload()
        page.wait_for_selector("[data-pair]")
        assert page.get_attribute("#question", "data-pair") == before
    finally:
        context.close()
        for one in (process, again):
            if one is not None:
                one.kill()
                one.wait(timeout=10)
                one.stdout.close()
    db = sqlite3.connect(tmp_path / "data.linkwise")
    assert db.execute("select count(*), count(distinct uuid) from event").fetchone() == (4, 4)
    assert db.execute("select relation from event order by seq desc").fetchone() == ("different",)
    db.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL, which Windows lacks")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_tab_that_is_open_comes_back_after_a_restart(browser, tmp_path, is_kept):
    X, _ = blobs()
    np.savetxt(tmp_path / "data.csv", X, delimiter=",", header="a,b,c,d", comments="")
    process, address = serve(tmp_path, 0)
    context = browser.new_context(viewport=WIDE)
    context.set_default_timeout(1_000 * PATIENCE)
    page = context.new_page()
    again = None
    try:
        page.goto(address)
        page.wait_for_selector("[data-pair]")
        holds(page, "linkwise.page.ahead.length > 3")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        page.keyboard.press("n")  # kept in the browser
        page.wait_for_selector("#banner:not([hidden])")
        if not is_kept:
            (tmp_path / "data.linkwise-token").unlink()
        again, second = serve(tmp_path, int(address.split(":")[2].split("/")[0]))
        assert (second == address) == is_kept
        if is_kept:
            holds(page, "document.getElementById('n-answers').textContent === '1'")
            page.wait_for_selector("#banner", state="hidden")
        else:
            holds(page, "document.getElementById('banner').textContent.includes('started anew')")
            assert "Open the address" in page.inner_text("#banner")
            page.goto(second)
            holds(page, "document.getElementById('n-answers').textContent === '1'")
    finally:
        context.close()
        for one in (process, again):
            if one is not None:
                one.kill()
                one.wait(timeout=10)
                one.stdout.close()


class Restarting:
    """A page whose server is killed and started anew; what it asks for can be held back."""

    def __init__(self, browser, folder):
        X, _ = blobs()
        np.savetxt(folder / "data.csv", X, delimiter=",", header="a,b,c,d", comments="")
        self.folder = folder
        self.process, self.address = serve(folder, 0)
        self.context = browser.new_context(viewport=WIDE)
        self.context.set_default_timeout(1_000 * PATIENCE)
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(self.address)
        self.page.wait_for_selector("[data-pair]")
        holds(self.page, "linkwise.page.ahead.length > 3 && linkwise.page.shown > 0")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
        self.kill()

    @property
    def pair(self):
        return self.page.get_attribute("#question", "data-pair")

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=10)
        self.process.stdout.close()

    def start(self):
        port = int(self.address.split(":")[2].split("/")[0])
        self.process, _ = serve(self.folder, port)
        self.requests.clear()

    def has_asked(self, *paths):
        return all(any(path in url for url in self.requests) for path in paths)

    def n_answers(self):
        db = sqlite3.connect(self.folder / "data.linkwise")
        (found,) = db.execute("select count(*) from event where kind = 'answer'").fetchone()
        db.close()
        return found


def test_an_answer_is_kept_while_the_page_comes_back(browser, tmp_path):
    with Restarting(browser, tmp_path) as tab:
        held, is_held = [], True
        tab.kill()
        holds(tab.page, "linkwise.page.away")
        for path in ("**/api/question*", "**/api/state"):
            tab.page.route(path, lambda route: held.append(route) if is_held else route.continue_())
        tab.start()
        until(tab.page, lambda: tab.has_asked("/api/question", "/api/state"))
        tab.page.keyboard.press("n")
        until(tab.page, lambda: tab.n_answers() == 1)
        is_held = False
        for route in held:
            route.continue_()
        holds(tab.page, "document.getElementById('n-answers').textContent === '1'")
        assert tab.errors == []


def test_the_map_is_that_of_the_new_server_whoever_speaks_first(browser, tmp_path):
    with Restarting(browser, tmp_path) as tab:
        for number in range(3):
            tab.page.keyboard.press("u")
            until(tab.page, lambda n=number: tab.n_answers() == n + 1)
            holds(tab.page, "!linkwise.page.busy && !linkwise.page.drawing")
        tab.kill()
        tab.page.keyboard.press("n")  # kept in the browser
        holds(tab.page, "linkwise.page.away && !linkwise.page.busy")
        is_held = True
        tab.page.route(
            "**/api/events", lambda route: route.abort() if is_held else route.continue_()
        )
        tab.start()
        tab.page.keyboard.press("n")  # the news are not there yet
        until(tab.page, lambda: tab.n_answers() == 5)
        holds(tab.page, "!linkwise.page.busy && !linkwise.page.drawing")
        is_held = False
        until(tab.page, lambda: tab.has_asked("/api/points", "/api/labels"))
        holds(tab.page, "linkwise.page.shown === linkwise.page.state.rev")
        assert tab.errors == []


def test_the_question_stays_when_the_server_comes_back(browser, tmp_path):
    with Restarting(browser, tmp_path) as tab:
        tab.page.evaluate("linkwise.page.ahead.reverse() && null")  # no server asks this first
        tab.kill()
        for _ in range(2):
            shown = tab.pair
            tab.page.keyboard.press("u")
            until(tab.page, lambda before=shown: tab.pair != before)
            holds(tab.page, "!linkwise.page.busy")
        shown = tab.pair
        tab.start()
        until(tab.page, lambda: tab.n_answers() == 2)
        holds(tab.page, "document.getElementById('n-answers').textContent === '2'")
        holds(tab.page, "!linkwise.page.away && !linkwise.page.drawing")
        tab.page.wait_for_timeout(300)  # all that it asks for
        assert tab.pair == shown
        assert tab.errors == []


# 9
def test_two_people_see_different_questions_and_each_others_answers(browser, server, page):
    other = Page(browser, server)
    assert other.pair != page.pair
    page.press("y")
    other.until(lambda: other.text("#n-answers") == "1")
    for _ in range(5):
        page.press("u"), other.press("u")
        assert other.pair != page.pair
    other.context.close()


HOSTILE = [
    "<img src=x onerror=window.__xss=1>",
    "</script><script>window.__xss=1</script>",
    "\"quotes' & \\back\\slash `tick` ${1}",
    "\u202eright to left\u202c \u05d0\u05d1",
    "😀 👩‍👩‍👧 e\u0301",
    "{{constructor.constructor('window.__xss=1')()}}",
    "javascript:window.__xss=1",
    "nul\x00and\x07bell",
]


# 10
def test_values_are_shown_literally_whatever_they_are(browser, tmp_path):
    names = [f"{HOSTILE[k % 8]} {k}" for k in range(60)]
    long = "x<b>" * 262_144
    columns = {
        "<b>column</b>": [HOSTILE[(k + 1) % 8] for k in range(60)],
        "long": [long if k % 2 else "short" for k in range(60)],
        "none": [None] * 60,
    }
    room = make_room(tmp_path, items=Items(names, "row", columns), names=names)
    with Running(room) as server:
        page = Page(browser, server)
        page.evaluate(
            "addEventListener('securitypolicyviolation', (e) => { window.__csp = e.blockedURI; })"
        )
        page.ask(0, 1)
        cells = page.locator(".pair tbody td").all_inner_texts()
        assert cells[0] == HOSTILE[1]
        assert cells[1] == HOSTILE[2].replace("\u202e", "\u202e")
        assert page.locator(".pair tbody th").first.inner_text().strip().endswith("<b>column</b>")
        assert page.locator(".none").count() == 2
        assert page.locator(".pair button", has_text="more letters").count() == 1
        page.press("y")
        for tab in ("clusters", "conflicts", "history", "quality"):
            page.click(f"#tab-{tab}")
            page.wait_for_timeout(80)
        page.click("#tab-history")
        page.wait_for_selector(".events li")
        assert "<img src=x onerror=window.__xss=1> 0" in page.text(".events")
        x, y = page.evaluate("linkwise.map.at(7)")
        box = page.locator("#overlay").bounding_box()
        page.page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_selector("#tip:not([hidden])")
        page.keyboard.press("Control+e")
        page.wait_for_selector("dialog[open] .files a")
        assert page.evaluate("[window.__xss, window.__csp]") == [None, None]
        assert page.errors == []
        page.context.close()


NEAR = """(k) => [...Array(60).keys()].filter((i) => {
  const [[ax, ay], [bx, by]] = [linkwise.map.at(i), linkwise.map.at(k)];
  return Math.hypot(ax - bx, ay - by) < 12;
})"""


# 11
def test_colours_follow_an_answer_and_stay_otherwise(browser, tmp_path):
    room = make_room(tmp_path, solver=StubSolver(blobs()[1], 3, shift=True))
    with Running(room) as server:
        page = Page(browser, server)
        page.page.emulate_media(reduced_motion="reduce")
        colours = """(indices) => indices.map((index) => {
          const canvas = document.getElementById("points");
          const [x, y] = linkwise.map.place(index).map(Math.round);
          return canvas.getContext("2d").getImageData(x, y, 1, 1).data.join();
        })"""
        labels = room.clustering.labels.copy()
        page.until(lambda: page.evaluate("Array.from(linkwise.map.labels)") == labels.tolist())
        every = list(range(60))
        before = page.evaluate(colours, every)
        a, b = int(np.flatnonzero(labels == 0)[0]), int(np.flatnonzero(labels == 1)[0])
        page.ask(a, b)
        page.press("y")
        page.wait_for_timeout(600)  # the solver has numbered its clusters anew by then
        after = page.evaluate(colours, every)
        moved = [k for k in every if room.clustering.labels[k] != labels[k]]
        assert len(moved) == 1
        near = page.evaluate(NEAR, moved[0])
        assert before[moved[0]] != after[moved[0]] or len(near) > 1
        assert [k for k in every if before[k] != after[k] and k not in near] == []
        page.context.close()


# 12
def test_files_are_exported_and_read_again(browser, page, room, tmp_path):
    for a, b, key in [(0, 1, "y"), (1, 2, "y"), (3, 4, "n")]:
        page.ask(a, b)
        page.press(key)
    files = {}
    page.keyboard.press("Control+e")
    for name in ("labels.csv", "constraints.csv", "audit.jsonl", "labels.npy", "project.sqlite"):
        with page.page.expect_download() as download:
            page.locator(f"dialog a[download='{name}']").click()
        files[name] = tmp_path / name
        download.value.save_as(files[name])
        assert files[name].stat().st_size > 0
    rows = files["labels.csv"].read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == list(room.items.names)
    (tmp_path / "second").mkdir()
    other = make_room(tmp_path / "second")
    with Running(other) as second:
        importing = Page(browser, second)
        importing.keyboard.press("Control+e")
        importing.page.set_input_files("dialog input[type=file]", files["constraints.csv"])
        importing.get_by_role("button", name="Import", exact=True).click()
        importing.until(lambda: len(other.evidence.accepted) == 3)
        relations = [
            (other.evidence.relation(a, b), room.evidence.relation(a, b))
            for a in range(5)
            for b in range(a)
        ]
        assert all(one == two for one, two in relations)
        importing.context.close()


def test_a_truth_of_some_items_says_of_how_many(browser, tmp_path):
    truth = blobs(30, 3)[1]
    truth[8:] = -1
    room = make_room(tmp_path, n=30, truth=truth)
    with Running(room) as server:
        page = Page(browser, server)
        page.until(lambda: page.text("#n-ari").endswith(" on 8 of 30 items"))
        page.click("#tab-quality")
        page.until(lambda: "on 8 of 30 items." in page.text("#body"))
        page.context.close()


def test_the_history_says_what_was_replaced_or_undone(page):
    contradiction(page)
    page.keyboard.press("g")
    link = page.locator(".conflict .link", has_text="#2")
    link.get_by_role("button", name="Withdraw").click()
    page.wait_for_selector("#badge", state="hidden")
    page.press("y")
    page.press("z")
    page.click("#tab-history")
    page.until(lambda: page.text(".events").count("replaced later") == 1)
    assert page.text(".events").count("· undone") == 1


# 13
def test_the_end_is_told(browser, tmp_path):
    room = make_room(tmp_path, n=6, k=2)
    truth = blobs(6, 2)[1]
    with Running(room) as server:
        page = Page(browser, server)
        while (pair := page.pair) is not None:
            a, b = map(int, pair.split("-"))
            page.press("y" if truth[a] == truth[b] else "n")
        page.wait_for_selector(".finish")
        assert page.text("#question-title") == "Nothing is left to ask"
        page.get_by_role("button", name="Export the clusters").click()
        assert page.locator("dialog[open] a[download='labels.csv']").count() == 1
        assert page.errors == []
        page.context.close()


# 14
def test_a_failing_solver_is_told_and_answers_go_on(browser, tmp_path, capsys):
    solver = StubSolver(blobs()[1], 3)
    room = make_room(tmp_path, solver=solver)
    with Running(room) as server:
        page = Page(browser, server)
        solver.broken = True
        page.press("y")
        page.wait_for_selector("#banner:not([hidden])")
        assert "broken on purpose" in page.text("#banner")
        page.press("n")
        assert len(answers(room)) == 2
        solver.broken = False
        page.press("y")
        page.wait_for_selector("#banner", state="hidden")
        page.context.close()


# 15
def test_other_pages_cannot_drive_the_server(browser, page, server, room, tmp_path):
    evil = tmp_path / "evil.html"
    evil.write_text("<p>another site</p>")
    tab = page.context.new_page()
    tab.goto(evil.as_uri())
    attack = """async (address) => {
      const body = JSON.stringify({ uuid: "12345678-1", a: 0, b: 1, relation: "same" });
      const types = ["text/plain", "application/json"];
      for (const type of types) {
        const mode = type === "text/plain" ? "no-cors" : "cors";
        const headers = { "Content-Type": type };
        const options = { method: "POST", body, mode, credentials: "include", headers };
        await fetch(`${address}/api/answers`, options).catch(() => {});
      }
    }"""
    tab.evaluate(attack, server.address)
    assert answers(room) == []
    codes = page.evaluate(
        """async () => {
          const send = (path, options) => fetch(path, options).then((reply) => reply.status);
          const body = JSON.stringify({ uuid: "12345678-2", a: 0, b: 1, relation: "same" });
          const method = "POST";
          const typed = (type) => ({ "Content-Type": type });
          const [plain, json] = [typed("text/plain"), typed("application/json")];
          return [
            await send("/api/answers", { method, body, headers: plain }),
            await send("/api/answers", { method, body, credentials: "omit", headers: json }),
            await send("/api/items/..%2f..%2fetc/media", {}),
          ];
        }"""
    )
    assert codes == [415, 401, 404]
    assert answers(room) == []


@pytest.mark.parametrize("width", [1200, 1280, 1440])
def test_all_tabs_are_in_sight_while_a_conflict_shows(page, width):
    contradiction(page)
    page.page.set_viewport_size({"width": width, "height": 800})
    clipped = page.evaluate(
        """() => {
          const pane = document.querySelector(".panel").getBoundingClientRect();
          const tabs = [...document.querySelectorAll("[role=tab]")];
          const places = tabs.map((tab) => tab.getBoundingClientRect());
          return [
            places.filter((box) => box.right > pane.right || box.left < pane.left).length,
            new Set(places.map((box) => box.top)).size,
          ];
        }"""
    )
    assert clipped == [0, 1]  # none outside, all on one line


def test_dates_and_money_are_compared_as_what_they_are(browser, tmp_path):
    names = [str(k) for k in range(60)]
    day = [f"{2000 + k % 20}-{1 + k % 12:02}-05" for k in range(60)]
    paid = [f"${1_000 + 37 * k:,}.00" for k in range(60)]
    day[:4] = ["2001-03-05", "2001-03-06", "2019-03-05", "2001-03-05"]
    paid[:4] = ["$1,000.00", "$1,001.00", "$9,000.00", "1000 USD"]
    items = Items(names, "row", {"day": day, "paid": paid})
    with Running(make_room(tmp_path, items=items, names=names)) as server:
        page = Page(browser, server)
        seen = {}
        for pair in [(0, 1), (0, 2), (0, 3)]:
            page.ask(*pair)
            seen[pair] = [
                [row.get_attribute("class"), *row.locator("mark").all_inner_texts()]
                for row in page.locator(".pair tbody tr").all()
            ]
        page.context.close()
    assert seen[0, 1] == [["close"], ["close"]]
    assert seen[0, 2] == [["differs", "2001", "2019"], ["differs", "$1,000.00", "$9,000.00"]]
    assert seen[0, 3] == [["equal"], ["close"]]


def test_similar_values_are_marked_by_letters_and_others_by_words(page):
    marked = """async ([left, right]) => {
      const { differences } = await import("/static/cards.js");
      const texts = (side) => side.filter((one) => one.text).map((one) => one.text);
      return differences(left, right).map(texts);
    }"""
    assert page.evaluate(marked, ["Jon Smith", "John Smith"]) == [[], ["h"]]
    assert page.evaluate(marked, ["Paul Braun", "Paul Müller"]) == [["Braun"], ["Müller"]]
    assert page.evaluate(marked, ["Tina Richter", "Anna Fischer"]) == [
        ["Tina", "Richter"],
        ["Anna", "Fischer"],
    ]


# 16
def test_everything_by_keyboard_and_at_any_size(browser, server, page, room):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "question"
    for key in ("y", "n", "u", " "):
        page.press(key)
    page.keyboard.press("c")
    page.wait_for_selector("#context:not([hidden])")
    page.keyboard.press("x")
    page.press("a")
    page.keyboard.press("m")
    page.wait_for_selector("#submit-many")
    room.feed.publish("rev", {"rev": -1})  # news do not take the mode away
    page.wait_for_timeout(400)
    page.keyboard.press("1")
    page.wait_for_selector(".many [aria-pressed=true]")
    page.press("Enter")
    page.keyboard.press("m")
    page.wait_for_selector("[data-pair]")
    page.locator("#tab-clusters").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-conflicts"
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] .key-table")
    page.keyboard.press("Escape")
    for width in (720, 390, 320):  # 720 is a screen of 1440 at 200 %
        page.page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} px wider than the window at {width}"
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, a")].filter((node) => {
          const box = node.getBoundingClientRect();
          const counts = box.width > 0 && !node.matches(".skip, input[type=checkbox]");
          return counts && (box.height < 24 || box.width < 24);
        }).map((node) => node.textContent)"""
    )
    assert small == []


def test_the_context_shows_others_than_the_two(page):
    page.keyboard.press("c")
    page.wait_for_selector("#context:not([hidden]) li")
    shown = page.locator("#context li b").all_text_contents()
    ids = page.locator("#cards .item-id").all_text_contents()
    assert len(shown) > 4
    assert len(ids) == 2
    assert not {*ids} & {*shown}


PAINTED = """() => {  // the colours over the two points of the question
  const { map } = linkwise, context = map.top.getContext("2d");
  return map.pair.map((k) => [...context.getImageData(...map.place(k).map(Math.round), 1, 1).data]);
}"""


def test_the_clusters_of_the_two_are_hidden_until_the_answer(page):
    a, b = page.evaluate(PAINTED)
    assert a == b
    assert a[3] == 255  # what is below does not shine through
    page.keyboard.press("c")
    page.wait_for_selector("#context:not([hidden]) li")
    assert "clear cases" not in page.text("#context")
    page.keyboard.press("?")
    page.get_by_label("Hide the clusters of A and B").uncheck()
    assert page.locator("#context").is_hidden()
    page.keyboard.press("Escape")
    page.holds(
        "!document.querySelector('dialog[open]') && !document.activeElement.closest('dialog')"
    )
    assert [one[3] for one in page.evaluate(PAINTED)] != [255, 255]
    page.keyboard.press("c")
    page.wait_for_selector("#context:not([hidden]) li")
    assert "clear cases" in page.text("#context")


def test_enter_takes_the_item_that_is_found(page):
    page.keyboard.press("/")
    for name in ("item 3", "item 17"):
        page.get_by_label("Text to look for").fill(name)
        page.keyboard.press("Enter")
        page.holds("!document.querySelector('dialog[open] input')?.value")
    page.until(lambda: page.pair == "3-17")


def test_a_key_is_changed_by_pressing_another(page, room):
    page.keyboard.press("?")
    later = page.locator("[aria-label='Key for Later']")
    assert later.input_value() == "Space"
    same = page.locator("[aria-label='Key for Same']")
    same.focus()
    page.keyboard.press("n")  # taken
    assert same.input_value() == "Y"
    page.keyboard.press("q")
    assert same.input_value() == "Q"
    page.keyboard.press("Backspace")
    assert same.input_value() == "Q"
    page.keyboard.press("Escape")
    page.holds("!document.querySelector('dialog[open]')")  # Chromium closes it a moment later
    before = len(room.project.ledger.facts.answers)
    page.press("q")
    assert len(room.project.ledger.facts.answers) == before + 1


def test_nothing_moves_by_itself_with_reduced_motion(page):
    flash = "linkwise.map.flashed([0, 1]), linkwise.map.flash.length"
    shift = """() => {
      const { map } = linkwise, next = map.xy.map((value) => 1 - value);
      map.setPoints(next.buffer);
      return map.xy[0] === next[0];
    }"""
    assert page.evaluate(flash) == 2
    assert not page.evaluate(shift)  # it takes its time
    page.wait_for_timeout(1_000)
    page.page.emulate_media(reduced_motion="reduce")
    page.evaluate("linkwise.map.flash = []")
    assert page.evaluate(flash) == 0
    assert page.evaluate(shift)


def test_clusters_differ_in_shape_or_in_colour_for_all_eyes(page):
    looks = page.evaluate(
        """async () => {
          const { colour, shape } = await import("/static/looks.js");
          return [...Array(24).keys()].map((c) => [shape(c), colour(c)]);
        }"""
    )
    # Deuteranopia, by Viénot, Brettel & Mollon (1999), in linear RGB
    M = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    rgb = np.array([[int(hex_[at : at + 2], 16) for at in (1, 3, 5)] for _, hex_ in looks]) / 255
    seen = rgb**2.2 @ M.T
    for i, j in zip(*np.triu_indices(len(looks), 1), strict=True):
        assert looks[i][0] != looks[j][0] or np.abs(seen[i] - seen[j]).max() > 0.05
    contrast = [(1.05) / (0.05 + one**2.2 @ [0.2126, 0.7152, 0.0722]) for one in rgb]
    assert min(contrast) > 3


@pytest.mark.skipif(
    not AXE and not IS_REQUIRED,
    reason="axe-core is not there: npm pack axe-core, and LINKWISE_AXE=axe.min.js",
)
def test_axe_finds_nothing_serious(browser, server, page):
    contradiction(page)
    source = Path(AXE).read_text(encoding="utf-8")
    serious = []
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        for tab in ("clusters", "conflicts", "history", "quality"):
            page.click(f"#tab-{tab}")
            page.wait_for_timeout(150)
            session = page.context.new_cdp_session(page.page)
            # Past the content security policy, which forbids scripts from elsewhere
            session.send("Runtime.evaluate", {"expression": source})
            found = session.send(
                "Runtime.evaluate",
                {"expression": "axe.run()", "awaitPromise": True, "returnByValue": True},
            )["result"]["value"]
            serious += [
                (scheme, tab, one["id"], one["nodes"][0]["html"][:120])
                for one in found["violations"]
                if one["impact"] in {"serious", "critical"}
            ]
    assert serious == []


# 17
def test_images_are_shown_or_replaced(browser, tmp_path):
    from linkwise.app.items import _png

    folder = tmp_path / "images"
    folder.mkdir()
    picture = _png(np.arange(64.0).reshape(8, 8))
    (folder / "good.png").write_bytes(picture)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0" + b"\x00" * 40)
    (folder / "drawing.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' onload='window.__xss=1'/>"
    )
    files = ["good.png", "broken.jpg", "drawing.svg", "missing.png"] * 15
    names = [str(k) for k in range(60)]
    items = Items(names, "image", {"file": files}, image="file", root=folder)
    room = make_room(tmp_path, items=items, names=names)
    with Running(room) as server:
        page = Page(browser, server)
        for pair, shown in [((0, 4), 2), ((0, 1), 1), ((0, 2), 1), ((0, 3), 1)]:
            page.ask(*pair)
            page.holds(
                f"document.querySelectorAll('.card img').length === {shown} &&"
                f"document.querySelectorAll('.no-image').length === {2 - shown}"
            )
        assert page.evaluate("document.querySelector('.card img').naturalWidth") == 8
        assert page.evaluate("window.__xss") is None
        page.context.close()


def test_texts_series_and_points_are_shown_as_what_they_are(browser, tmp_path):
    X, _ = blobs()
    names = [str(k) for k in range(60)]
    kinds = {
        "text": Items(
            names, "text", {"t": [f"a text number {k}\n" * 30 for k in range(60)]}, text="t"
        ),
        "series": Items(names, "series", {"who": names}, np.cumsum(np.tile(X, 10), axis=1)),
        "point": Items(names, "point", {}, X, list("abcd")),
    }
    wanted = {"text": ".card .text.clamped", "series": ".chart path.b", "point": ".bars .bar-value"}
    for kind, items in kinds.items():
        (tmp_path / kind).mkdir()
        room = make_room(tmp_path / kind, items=items, names=names)
        with Running(room) as server:
            page = Page(browser, server)
            assert page.locator(wanted[kind]).count() > 0
            assert page.errors == []
            page.context.close()


def test_a_lasso_is_previewed_before_it_counts(page, room):
    page.click("#map-select")
    box = page.locator("#overlay").bounding_box()
    corners = [
        (4, 4),
        (box["width"] - 4, 4),
        (box["width"] - 4, box["height"] - 4),
        (4, box["height"] - 4),
    ]
    page.page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.page.mouse.down()
    for x, y in corners:
        page.page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
    page.page.mouse.up()
    page.wait_for_selector("#selection:not([hidden])")
    assert "60 items selected" in page.text("#selection")
    assert room.project.ledger.events == []
    page.get_by_role("button", name="All the same").click()
    page.until(lambda: room.evidence.n_settled == 60 * 59 // 2)


def test_many_small_clusters_are_shown_by_size(browser, tmp_path):
    labels = np.repeat(np.arange(30), 2)  # of two items, but one of three and one of one
    labels[2] = 0
    room = make_room(tmp_path, solver=StubSolver(labels, 30), by_size=True)
    with Running(room) as server:
        page = Page(browser, server)
        page.holds("document.querySelectorAll('#legend li').length === 3")
        legend = [text.split("\n") for text in page.locator("#legend li").all_inner_texts()]
        assert legend == [["one item", "1 cluster"], ["2", "28 clusters"], ["3 – 4", "1 cluster"]]
        looks = page.evaluate("[...linkwise.map.looks]")
        assert (looks[3], looks[4], looks[0]) == (7, 0, 1)
        assert page.locator("article.cluster").count() == 30
        assert page.locator("article.cluster .size").first.inner_text() == "3"
        assert page.errors == []
        page.context.close()


# 18, small; benchmarks/page.py has the large one
def test_the_time_from_key_to_map_is_measured(browser, tmp_path):
    room = make_room(tmp_path, n=5_000)
    with Running(room) as server:
        page = Page(browser, server)
        for _ in range(5):
            page.press("y")
            page.holds("!!document.documentElement.dataset.latency")
            latency = float(page.evaluate("document.documentElement.dataset.latency"))
            assert 0 < latency < 5_000  # a bound for a hung page, no budget
        assert len(answers(room)) == 5
        page.context.close()


def test_a_tab_never_shows_what_another_one_showed(page):
    contradiction(page)
    page.wait_for_selector(".cluster")
    page.page.route("**/api/conflicts", lambda route: None)  # the reply does not come
    page.keyboard.press("g")
    page.wait_for_selector("#tab-conflicts[aria-selected=true]")
    assert page.locator(".cluster").count() == 0
    page.holds("document.getElementById('body').innerText === 'Loading…'")
