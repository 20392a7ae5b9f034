"""The server on a port of this machine, until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvicorn

from linkwise.app.server import Server

if TYPE_CHECKING:
    from linkwise.app.room import Room


class Listening(uvicorn.Server):
    """Serves one room. Pages that follow the news are let go first, so that it stops at once."""

    def __init__(self, room: Room, sock: Any, *, token: str, host: str = "127.0.0.1") -> None:
        self.room, self.sock = room, sock
        self.port = int(sock.getsockname()[1])
        app = Server(room, self.port).app(token, host)
        super().__init__(
            uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2, ws="none")
        )

    def listen(self) -> None:
        """Serve until `should_exit` is set, or Ctrl-C."""
        self.run(sockets=[self.sock])

    async def shutdown(self, sockets: Any = None) -> None:
        """End the streams of news, then everything else."""
        self.room.feed.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> Any:
    """Return a socket that listens; OSError if the port is in use."""
    config = uvicorn.Config("", host=host, port=port, log_level="critical")
    try:
        sock = config.bind_socket()
    except SystemExit as error:  # uvicorn leaves the process where others raise
        raise OSError(f"nothing can listen on {host}:{port}") from error
    sock.listen(128)  # a browser that is opened at once waits instead of being refused
    return sock
