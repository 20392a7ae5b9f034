"""The routes of the page. Everything is checked before it is done, and done under one lock."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from linkwise.app import actions, imports, views
from linkwise.app.events import Event
from linkwise.app.exports import EXPORTS
from linkwise.app.items import MissingImageError
from linkwise.app.requests import (
    BadRequestError,
    answer_events,
    name_of,
    parse_body,
    sample_of,
    uuid_of,
)
from linkwise.app.security import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from linkwise.app.events import Pair
    from linkwise.app.room import Room

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLL = 0.5  # seconds between looks at what other processes wrote
SWITCH = 0.001  # seconds until a thread that clusters lets a request in
MAX_MOVED = 3_000  # samples whose new cluster is sent with the answer; more are fetched
AHEAD = 20  # questions that a page can go on with while the server is away
MAX_ITEMS = 50


class Server:
    """The routes of one room."""

    def __init__(self, room: Room, port: int) -> None:
        self.room = room
        self.port = port

    def app(self, token: str, host: str = "127.0.0.1") -> Starlette:
        """Return the application, guarded."""
        get, post = self._get, self._post
        routes = [
            Route("/", self._file),
            Route("/static/{name}", self._file),
            Route("/healthz", _health),
            get("/api/state", self.state),
            get("/api/points", self.points),
            get("/api/labels", self.labels),
            self._route("/api/items", self.items, "GET", locked=False),
            self._route("/api/items/{sample:int}/media", self.media, "GET", locked=False),
            self._route("/api/find", self.find, "GET", locked=False),
            get("/api/question", self.question),
            get("/api/ahead", self.ahead),
            get("/api/many", self.many),
            get("/api/context", self.context),
            get("/api/clusters", self.clusters),
            get("/api/conflicts", self.conflicts),
            get("/api/history", self.history),
            get("/api/quality", self.quality),
            get("/api/export/{name}", self.export),
            Route("/api/events", self.events),
            post("/api/answers", self.answer),
            post("/api/flag", self.flag),
            post("/api/undo", self.undo),
            post("/api/redo", self.redo),
            post("/api/resolve", self.resolve),
            post("/api/preview", self.preview),
            post("/api/select", self.select),
            post("/api/clusters/ask", self.ask_about),
            post("/api/clusters/{number:int}", self.cluster),
            post("/api/k", self.number_of_clusters),
            post("/api/ask", self.ask_again),
            post("/api/me", self.me),
            post("/api/import", self.read_file),
        ]
        guard = Middleware(Guard, token=token, port=self.port, host=host)
        handlers = {HTTPException: _http_error, Exception: _mistake}
        return Starlette(
            routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=self._life
        )

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        """Open the room, look now and then for answers of other processes, close it."""
        sys.setswitchinterval(SWITCH)
        self.room.open()

        polling = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.to_thread(self.room.close)

    async def _poll(self) -> None:
        """Look for answers of other processes; an error is told, and the next look may succeed."""
        has_failed = False
        while True:
            await asyncio.sleep(POLL)
            try:
                await asyncio.to_thread(self.room.poll)
            except Exception as error:
                has_failed = True
                self.room.failed(f"{type(error).__name__}: {error}", "file")
            else:
                if has_failed:
                    self.room.failed("", "file")
                has_failed = False

    # Plumbing ------------------------------------------------------------------------------

    def _get(self, path: str, handler: Callable[[Request], Any]) -> Route:
        return self._route(path, handler, "GET")

    def _post(self, path: str, handler: Callable[..., Any]) -> Route:
        return self._route(path, handler, "POST")

    def _route(
        self, path: str, handler: Callable[..., Any], method: str, *, locked: bool = True
    ) -> Route:
        """Return a route; what looks only at items, which never change, takes no lock."""
        lock = self.room.lock if locked else nullcontext()

        def answered(*given: Any) -> Response:
            with lock:
                found = handler(*given)
            return found if isinstance(found, Response) else JSONResponse(found)

        async def endpoint(request: Request) -> Response:
            body = [parse_body(await request.body())] if method == "POST" else []
            return await asyncio.to_thread(answered, request, *body)

        return Route(path, _told(endpoint), methods=[method])

    def _who(self, request: Request) -> str:
        encoded = request.cookies.get(f"linkwise_name_{self.port}", "")
        try:
            return name_of(bytes.fromhex(encoded).decode()) if encoded else "me"
        except ValueError:
            return "me"

    @staticmethod
    def _session(request: Request) -> str:
        return request.headers.get("x-tab", "")[:64]

    def _reply(self, request: Request, **more: Any) -> dict[str, Any]:
        """Return the state and the question that is shown next."""
        who, session = self._who(request), self._session(request)
        check = request.headers.get("x-check") == "1"
        found = self.room.question(session, who, prefer=_prefer(request, self.room), check=check)
        return {
            "state": views.state(self.room, who),
            "question": views.question(self.room, found),
            **more,
        }

    # Looking -------------------------------------------------------------------------------

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        known = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
        if name not in known:
            raise HTTPException(404, "There is no such file.")
        content = known[name].read_bytes()
        headers = {
            "Cache-Control": "no-cache",
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=TYPES[known[name].suffix], headers=headers)

    def state(self, request: Request) -> Any:
        """Return the figures of the header."""
        return {"state": views.state(self.room, self._who(request))}

    def points(self, _: Request) -> Response:
        """Return the map: pairs of 32-bit numbers."""
        if self.room.points is None:
            raise HTTPException(404, "The map is being made.")
        headers = {"X-Rev": str(self.room.map_rev)}
        content = np.ascontiguousarray(self.room.points, "<f4").tobytes()
        return Response(content, media_type="application/octet-stream", headers=headers)

    def labels(self, _: Request) -> Response:
        """Return the clusters: 16-bit numbers."""
        labels = self.room.clustering.labels
        if labels is None:
            raise HTTPException(404, "The clusters are being found.")
        headers = {"X-Rev": str(self.room.clustering.rev)}
        content = labels.astype("<u2").tobytes()
        return Response(content, media_type="application/octet-stream", headers=headers)

    def items(self, request: Request) -> Any:
        """Return what is shown of some samples."""
        texts = request.query_params.get("ids", "").split(",")[:MAX_ITEMS]
        samples = [sample_of(_whole(text), self.room.n_samples, "ids") for text in texts]
        whole = request.query_params.get("whole") == "1"
        return {"cards": self.room.items.cards(samples, whole=whole)}

    def media(self, request: Request) -> Response:
        """Return the image of a sample."""
        sample = request.path_params["sample"]
        if not 0 <= sample < self.room.n_samples:
            raise HTTPException(404, "There is no such sample.")
        try:
            found = self.room.items.media(sample)
        except MissingImageError as error:
            raise HTTPException(404, str(error)) from error
        headers = {"Cache-Control": "private, max-age=3600"}
        return Response(found.content, media_type=found.type, headers=headers)

    def find(self, request: Request) -> Any:
        """Return samples that contain a text."""
        text = request.query_params.get("q", "")[:200]
        return {"items": [views.brief(self.room, k) for k in self.room.items.find(text)]}

    def question(self, request: Request) -> Any:
        """Return the question of this tab."""
        return self._reply(request)

    def ahead(self, request: Request) -> Any:
        """Return questions for when the server cannot be reached."""
        found = self.room.ahead(self._session(request), self._who(request), AHEAD)
        return {"questions": [views.question(self.room, one) for one in found]}

    def many(self, request: Request) -> Any:
        """Return one sample and several candidates."""
        found = actions.one_against_many(self.room, self._session(request), self._who(request))
        return {"many": found}

    def context(self, request: Request) -> Any:
        """Return neighbours of a sample and clear cases of its cluster."""
        text = request.query_params.get("id", "")
        sample = sample_of(_whole(text), self.room.n_samples, "id")
        return views.context(self.room, sample)

    def clusters(self, _: Request) -> Any:
        """Return the clusters."""
        return {"clusters": views.clusters(self.room)}

    def conflicts(self, _: Request) -> Any:
        """Return the conflicts."""
        return {"conflicts": views.conflicts(self.room)}

    def history(self, request: Request) -> Any:
        """Return the last events."""
        text = request.query_params.get("before")
        before = None if text is None else int(_whole(text) or 0)
        return {"events": views.history(self.room, before=before)}

    def quality(self, _: Request) -> Any:
        """Return how good the clusters are."""
        return views.quality(self.room)

    def export(self, request: Request) -> Response:
        """Return a file."""
        name = request.path_params["name"]
        if name not in EXPORTS:
            raise HTTPException(404, f"There is no export {name[:40]!r}.")
        if self.room.clustering.labels is None and name.startswith("labels"):
            raise HTTPException(409, "There are no clusters yet. Try again in a moment.")
        if name == "features.npy" and self.room.by_size:
            raise HTTPException(409, "Records are sparse: take features.npz.")
        make, kind = EXPORTS[name]
        content = make(self.room, safe=request.query_params.get("safe") == "1")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=kind, headers=headers)

    async def events(self, request: Request) -> Response:
        """Stream the news."""
        after = _whole(request.headers.get("last-event-id", ""))
        return StreamingResponse(self.room.feed.follow(after), media_type="text/event-stream")

    # Changing ------------------------------------------------------------------------------

    def answer(self, request: Request, body: dict[str, Any]) -> Response:
        """Record an answer, and return the next question."""
        events = answer_events(body, self._who(request), self.room.n_samples)
        return self._act(request, events)

    def _act(self, request: Request, events: list[Event]) -> JSONResponse:
        """Write an action; tell what moved, and what is asked next."""
        room = self.room
        before, n_before = room.clustering.labels, room.evidence.n_settled
        conflicts = len(room.evidence.ignored)
        is_new = room.act(events)
        moved = _moved(before, room.clustering.labels)
        more = {
            "known": not is_new,
            "moved": moved[:MAX_MOVED] if len(moved) <= MAX_MOVED else None,
            "n_moved": len(moved),
            "n_settled": room.evidence.n_settled - n_before,
            "conflict": len(room.evidence.ignored) > conflicts,
        }
        return JSONResponse(self._reply(request, **more), 201 if is_new else 200)

    def flag(self, request: Request, body: dict[str, Any]) -> Response:
        """Take a sample out of the questions, or back in."""
        sample = sample_of(body.get("item"), self.room.n_samples, "item")
        word = "good" if body.get("bad") is False else "bad"
        event = Event("flag", uuid_of(body), self._who(request), sample, relation=word)
        return self._act(request, [event])

    def undo(self, request: Request, body: dict[str, Any]) -> Any:
        """Take back the last action of this person."""
        return self._turn(request, body, "undo")

    def redo(self, request: Request, body: dict[str, Any]) -> Any:
        """Bring back the action that was taken back last."""
        return self._turn(request, body, "redo")

    def _turn(self, request: Request, body: dict[str, Any], kind: str) -> Any:
        room, uuid = self.room, uuid_of(body)
        before = room.clustering.labels
        done = [] if room.project.is_known(uuid) else room.turn(kind, self._who(request), uuid)
        pairs = [event.pair for event in done if event.b is not None]
        if kind == "undo" and len(pairs) == 1:  # the question comes back
            room.prefer(self._session(request), pairs[0])
        moved = _moved(before, room.clustering.labels)
        return self._reply(
            request,
            turned=[views.event(room, event) for event in done[:5]],
            moved=moved if len(moved) <= MAX_MOVED else None,
            n_moved=len(moved),
        )

    def resolve(self, request: Request, body: dict[str, Any]) -> Response:
        """Flip, withdraw or confirm an answer of a conflict."""
        return self._act(request, actions.resolution(self.room, body, self._who(request)))

    def preview(self, request: Request, body: dict[str, Any]) -> Any:
        """Tell what a selection would do; nothing is written."""
        who = self._who(request)
        return actions.preview(self.room, actions.selected(self.room, body, who, "preview"))

    def select(self, request: Request, body: dict[str, Any]) -> Response:
        """Answer for a selection."""
        events = actions.selected(self.room, body, self._who(request), uuid_of(body))
        if not events:
            raise BadRequestError("All of this was said already.")
        return self._act(request, events)

    def ask_about(self, request: Request, body: dict[str, Any]) -> Any:
        """Ask whether clusters are one, or mixed."""
        questions = actions.questions_about(self.room, body)
        self.room.want(self._session(request), questions)
        return self._reply(request, n_questions=len(questions))

    def cluster(self, request: Request, body: dict[str, Any]) -> Response:
        """Name or lock a cluster."""
        number = request.path_params["number"]
        events = actions.cluster_change(self.room, number, body, self._who(request))
        return self._act(request, events)

    def number_of_clusters(self, request: Request, body: dict[str, Any]) -> Response:
        """Choose the number of clusters; null lets it be found."""
        k = body.get("k")
        if k is not None:
            sample_of(k, min(self.room.n_samples, 1_000) + 1, "k")
        if k in {0, 1}:
            raise BadRequestError("There are at least two clusters.")
        event = Event("clusters", uuid_of(body), self._who(request), k or 0)
        return self._act(request, [event])

    def ask_again(self, request: Request, body: dict[str, Any]) -> Any:
        """Ask about a pair next, answered or not."""
        a, b = (sample_of(body.get(name), self.room.n_samples, name) for name in "ab")
        if a == b:
            raise BadRequestError("Choose two different items.")
        self.room.prefer(self._session(request), (min(a, b), max(a, b)), "you asked for it")
        return self._reply(request)

    def me(self, request: Request, body: dict[str, Any]) -> Response:
        """Take the name of the person at this browser."""
        name = name_of(body.get("name"))
        reply = JSONResponse({"who": name})
        cookie = f"linkwise_name_{self.port}"
        reply.set_cookie(cookie, name.encode().hex(), samesite="strict", max_age=10_000_000)
        return reply

    def read_file(self, request: Request, body: dict[str, Any]) -> Response:
        """Read pairs or labels: first told what would happen, then done."""
        try:
            kind, text, room = body.get("kind"), body.get("text"), self.room
            found = imports.read(kind, text, room.items.names, data=room.data.X)
            who = self._who(request)
            events = imports.as_events(found, who, uuid_of(body))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        if not events:
            raise BadRequestError("The file holds no pairs.")
        if body.get("dry", True):
            return JSONResponse(actions.preview(self.room, events) | {"notes": found.notes})
        return self._act(request, events)


# Helpers -----------------------------------------------------------------------------------


def _moved(before: Any, after: Any) -> list[list[int]]:
    """Return the samples in another cluster than before, with their cluster."""
    if before is None or after is None or before is after:
        return []
    changed = np.flatnonzero(before != after)
    return np.column_stack((changed, after[changed])).tolist()


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def _prefer(request: Request, room: Room) -> Pair | None:
    """Return the pair that a page shows, or showed before it was loaded again."""
    parts = request.query_params.get("prefer", "").split("-")
    numbers = [_whole(part) for part in parts]
    known = {one for one in numbers if one is not None and one < room.n_samples}
    if len(parts) != 2 or len(known) != 2:  # it may be of another project, on the same port
        return None
    a, b = sorted(known)
    return (a, b)


def _told(endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Turn what a request got wrong into an answer that says so."""

    async def telling(request: Request) -> Response:
        try:
            answer: Response = await endpoint(request)
        except BadRequestError as error:
            return JSONResponse({"error": str(error)}, 400)
        return answer

    return telling


async def _health(_: Request) -> Response:
    return JSONResponse({"ok": True})


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _mistake(_: Request, error: Exception) -> Response:
    reason = f"{type(error).__name__}: {error}"
    return Response(json.dumps({"error": reason}), 500, media_type="application/json")
