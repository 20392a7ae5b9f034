"""Who may talk to the server: this machine's browser with the token, and no other web page.

A web page elsewhere can make a browser send requests to this machine. Three checks stop it: the
Host header (a name that was made to point here), the Origin header (a form or script of another
site), and a cookie that browsers do not send along with those.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 30_000_000  # bytes
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Lets through what the page of this server sends, and nothing else.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        The secret in the address that is opened first.
    port : int
        The port that the server listens on.
    host : str, default="127.0.0.1"
        The address that it is bound to; others than loopback are accepted as Host, too.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int, host: str = "127.0.0.1") -> None:
        self.app, self.token = app, token
        # Cookies do not tell ports apart: two servers on one machine need two names.
        self.cookie = f"linkwise_{port}"
        self.is_local = host in {"127.0.0.1", "localhost", "::1"}
        self.hosts = {f"{name}:{port}" for name in LOOPBACK}
        self.port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an error, or pass the request on with safe headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(scope)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (self.app if answer is None else answer)(scope, receive, sending)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return the response to a request that is not let through, or None."""
        headers = Headers(scope=scope)
        if not self._is_our_host(headers.get("host", "")):
            return _error(403, "The Host header names another server.")
        typed = QueryParams(scope["query_string"]).get("token", "")
        if typed and scope["method"] == "GET" and scope["path"] == "/":
            return self._welcome(typed)
        if scope["path"] == "/healthz":
            return None
        cookies = cookie_parser(headers.get("cookie", ""))
        if not self._is_token(cookies.get(self.cookie, "")):
            return _error(401, "Open the address that linkwise serve printed, with its token.")
        if scope["method"] in {"GET", "HEAD"}:
            return None
        return self._refused_change(headers)

    def _refused_change(self, headers: Headers) -> ASGIApp | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None:
            is_ours = site == "same-origin"
        else:
            is_ours = origin == f"http://{headers.get('host')}"
        if not is_ours:
            return _error(403, "The request comes from another site.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _error(415, "Requests are JSON.")
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            return _error(411, "The request does not say how long it is.")
        if int(length) > MAX_BODY:
            return _error(413, f"The request has more than {MAX_BODY // 1_000_000} MB.")
        return None

    def _is_our_host(self, host: str) -> bool:
        return host in self.hosts or (not self.is_local and host.endswith(f":{self.port}"))

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self.token.encode())

    def _welcome(self, typed: str) -> ASGIApp:
        """Exchange the token for a cookie, and take it out of the address."""
        if not self._is_token(typed):
            return _error(401, "The token is not the one that linkwise serve printed.")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return answer


def _error(code: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, code)
