"""Feed: news for open pages. Pages that were away a moment get what they missed."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEPT = 200  # news for those who come back
BEAT = 15.0  # seconds between signs of life, so that a lost connection is noticed


class News(NamedTuple):
    """One message."""

    number: int
    kind: str
    data: dict[str, Any]

    def encoded(self) -> str:
        """Return it as a server-sent event."""
        return f"id: {self.number}\nevent: {self.kind}\ndata: {json.dumps(self.data)}\n\n"


class Feed:
    """Messages from any thread to all open pages."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._news: deque[News] = deque(maxlen=KEPT)
        self._number = 0
        self._readers: dict[asyncio.Queue[News | None], asyncio.AbstractEventLoop] = {}
        self._closed = False

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Tell everybody."""
        with self._lock:
            self._number += 1
            news = News(self._number, kind, data)
            self._news.append(news)
            self._send(news)

    def _send(self, news: News | None) -> None:
        for queue, loop in list(self._readers.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, news)

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._closed = True
            self._send(None)

    async def follow(self, after: int | None = None) -> AsyncIterator[str]:
        """Yield events as they come; first those after a number that a page has seen."""
        queue: asyncio.Queue[News | None] = asyncio.Queue()
        with self._lock:
            missed = [] if after is None else [one for one in self._news if one.number > after]
            if self._closed:
                return
            self._readers[queue] = asyncio.get_running_loop()
        try:
            yield "retry: 1000\n\n"
            for one in missed:
                yield one.encoded()
            while True:
                try:
                    news = await asyncio.wait_for(queue.get(), BEAT)
                except TimeoutError:
                    yield ": here\n\n"
                    continue
                if news is None:
                    return
                yield news.encoded()
        finally:
            with self._lock:
                self._readers.pop(queue, None)
