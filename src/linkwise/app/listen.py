"""The server on a port of this machine, until it is told to stop."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from linkwise.app.server import Server

if TYPE_CHECKING:
    from linkwise.app.room import Room


class Listening(uvicorn.Server):
    """Serves one room. Pages that follow the news are let go first, so that it stops at once."""

    def __init__(
        self, room: Room, sock: socket.socket, *, token: str, host: str = "127.0.0.1"
    ) -> None:
        self.room, self.sock = room, sock
        self.port = int(sock.getsockname()[1])
        app = Server(room, self.port).app(token, host)
        super().__init__(
            uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2, ws="none")
        )

    def listen(self) -> None:
        """Serve until `should_exit` is set, or Ctrl-C, which is how a page ends."""
        try:
            self.run(sockets=[self.sock])
        except KeyboardInterrupt:  # uvicorn raises it again, after it has stopped
            if not self.should_exit:
                raise

    async def shutdown(self, sockets: Any = None) -> None:
        """End the streams of news, then everything else."""
        self.room.feed.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a browser that comes early waits; or OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(f"nothing can listen on {host}:{port} ({error.strerror})") from error
    # Connections take it over. Without it the second packet of a reply may wait 40 ms until the
    # browser confirms the first; asyncio sets it only where the protocol is spelled out.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
