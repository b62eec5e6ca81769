"""What the rig's upstreams answer, over TCP, TLS and HTTP/1.1. Each connection has a thread."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import select
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterator

from rig.log import Connection, Request

_BLOCK = b"".join(hashlib.sha256(number.to_bytes(2, "big")).digest() for number in range(2048))  # 64 KiB that can't be compressed
_MAX_HEAD = 1 << 20

Content = dict[str, tuple[str, bytes]]  # of paths: type and bytes
Service = Callable[["Stream", Content], object]


def pattern(size: int) -> Iterator[bytes]:
    """The bytes that bulk transfers have."""
    while size > 0:
        yield _BLOCK[:size]
        size -= len(_BLOCK)


class Stream:
    """A connection, with what was read too far kept for the next reader, and all that came in the log."""

    def __init__(self, sock: socket.socket, connection: Connection) -> None:
        self.sock = sock
        self.connection = connection
        self._kept = b""

    def receive(self, limit: int = 65_536) -> bytes:
        """Some bytes; none at the end."""
        data, self._kept = self._kept[:limit], self._kept[limit:]
        if not data:
            data = self.sock.recv(limit)
            self.connection.add(data)
        return data

    def until(self, end: bytes, limit: int = _MAX_HEAD) -> bytes:
        """Up to and with `end`; less where the connection ends before."""
        data = b""
        while end not in data and len(data) < limit:
            piece = self.receive()
            if not piece:
                return data
            data += piece
        head, found, rest = data.partition(end)
        self._kept = rest + self._kept
        return head + found

    def exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            piece = self.receive(min(size, 65_536))
            if not piece:
                return
            size -= len(piece)
            yield piece

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def finish(self, seconds: float, *, unread: bool) -> None:
        """Says that no more comes. With `unread`, what the client still sends is thrown away first: a reset would take the answer from it."""
        self.sock.settimeout(seconds)
        if isinstance(self.sock, ssl.SSLSocket):
            if not unread:
                self.sock.unwrap()
        else:
            self.sock.shutdown(socket.SHUT_WR)
        while self.receive():
            pass


def echo(stream: Stream, content: Content) -> None:
    while data := stream.receive():
        stream.send(data)


def banner(stream: Stream, content: Content) -> None:
    """Speaks first."""
    stream.send(b"SSH-2.0-rig\r\n")
    echo(stream, content)


def digest(stream: Stream, content: Content) -> None:
    """At the end of what is sent, in that direction alone, says what it was."""
    seen, size = hashlib.sha256(), 0
    while data := stream.receive():
        seen.update(data)
        size += len(data)
    stream.send(f"{size} {seen.hexdigest()}\n".encode())


def source(stream: Stream, content: Content) -> None:
    """As many bytes as the line says."""
    for piece in pattern(int(stream.until(b"\n", 100))):
        stream.send(piece)


def tls(context: ssl.SSLContext, service: Service) -> Service:
    """The same service within TLS."""

    def serve(stream: Stream, content: Content) -> None:
        connection = stream.connection
        connection.hello = bool(stream.sock.recv(1, socket.MSG_PEEK))
        if not connection.hello:
            return
        with context.wrap_socket(stream.sock, server_side=True, do_handshake_on_connect=False) as secure:
            secure.rig_connection = connection  # type: ignore[attr-defined]
            connection.sock = secure
            secure.do_handshake()
            service(Stream(secure, connection), content)

    return serve


def server_context(chain: str, key: str) -> ssl.SSLContext:
    """Writes the name that a client asks for into its connection's log."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    context.set_alpn_protocols(["http/1.1"])

    def note(secure: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        secure.rig_connection.server_name = name  # type: ignore[attr-defined]

    context.sni_callback = note  # type: ignore[assignment]
    return context


def http(stream: Stream, content: Content) -> None:
    """HTTP/1.1, lenient: who is refused here was let through before."""
    while head := stream.until(b"\r\n\r\n"):
        request = _parse(head)
        stream.connection.requests.append(request)
        if not request.method:
            stream.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return stream.finish(1, unread=True)
        exchange = Exchange(stream, request)
        exchange.answer(content)
        if exchange.last:
            return stream.finish(2, unread=not exchange.read)
    return None


def _parse(head: bytes) -> Request:
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not head.endswith(b"\r\n\r\n"):
        return Request("", head.decode("latin-1"), [])
    pairs = (line.partition(":") for line in lines[1:] if line)
    return Request(words[0], words[1], [(key, value.strip()) for key, _, value in pairs])


class Exchange:
    """A request and its answer."""

    def __init__(self, stream: Stream, request: Request) -> None:
        self.stream = stream
        self.request = request
        url = urllib.parse.urlsplit(request.target)
        self.path = url.path
        self.arguments = dict(urllib.parse.parse_qsl(url.query))
        self.last = "close" in "".join(request.all("connection")).lower()
        self.read = False

    def answer(self, content: Content) -> None:
        """By the path: a route, content that a test put there, or a greeting."""
        route = _ROUTES.get(self.path)
        if self.path in content:
            kind, data = content[self.path]
            self.sink()
            self.reply(200, data, {"Content-Type": kind})
        elif route is not None:
            route(self)
        else:
            self.sink()
            self.reply(200 if self.path == "/" else 404, f"hello from {self.stream.connection.host}\n".encode())

    def body(self) -> Iterator[bytes]:
        """What the request carries, asked for where the client waits for that."""
        self.read = True
        request = self.request
        if "100-continue" in request.all("expect"):
            self.stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        seen = hashlib.sha256()
        chunked = any("chunked" in value.lower() for value in request.all("transfer-encoding"))
        length = int((request.all("content-length") or ["0"])[0])
        for piece in self._chunks() if chunked else self.stream.exactly(length):
            request.body += len(piece)
            seen.update(piece)
            yield piece
        request.digest = seen.hexdigest()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.stream.until(b"\r\n").partition(b";")[0] or b"0", 16):
            yield from self.stream.exactly(size)
            self.stream.until(b"\r\n")
        while self.stream.until(b"\r\n").strip():
            pass  # trailers

    def sink(self) -> None:
        for _ in self.body():
            pass

    def head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Rig", f"X-Rig: {self.stream.connection.host}", *(f"{key}: {value}" for key, value in headers.items())]
        self.stream.send("\r\n".join([*lines, "", ""]).encode())

    def reply(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.head(status, {"Content-Length": str(len(data)), **(headers or {})})
        if self.request.method != "HEAD":
            self.stream.send(data)

    def reply_json(self, value: object) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _echo(exchange: Exchange) -> None:
    data = b"".join(exchange.body())
    exchange.reply(200, data)


def _sink(exchange: Exchange) -> None:
    exchange.sink()
    exchange.reply_json({"size": exchange.request.body, "digest": exchange.request.digest})


def _slow(exchange: Exchange) -> None:
    """Reads in bursts of 1 MiB, with `pause` seconds after each."""
    burst = 0
    for piece in exchange.body():
        burst += len(piece)
        if burst >= 1 << 20:
            burst = 0
            time.sleep(float(exchange.arguments.get("pause", "0.05")))
    exchange.reply_json({"size": exchange.request.body, "digest": exchange.request.digest})


def _headers(exchange: Exchange) -> None:
    exchange.sink()
    exchange.reply_json(exchange.request.headers)


def _chunked(exchange: Exchange) -> None:
    exchange.sink()
    exchange.head(200, {"Transfer-Encoding": "chunked"})
    if exchange.request.method != "HEAD":
        for piece in (b"one ", b"two ", b"three\n"):
            exchange.stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.01)
        exchange.stream.send(b"0\r\n\r\n")


def _big(exchange: Exchange) -> None:
    exchange.sink()
    size = int(exchange.arguments["size"])
    exchange.head(200, {"Content-Length": str(size)})
    for piece in pattern(size if exchange.request.method != "HEAD" else 0):
        exchange.stream.send(piece)


def _redirect(exchange: Exchange) -> None:
    exchange.sink()
    exchange.reply(302, b"", {"Location": exchange.arguments["to"]})


def _status(exchange: Exchange) -> None:
    exchange.sink()
    exchange.reply(int(exchange.arguments["code"]), b"")


def _early(exchange: Exchange) -> None:
    """413 before the body came."""
    exchange.reply(413, b"too large\n", {"Connection": "close"})
    exchange.last = True
    time.sleep(0.2)


def _close(exchange: Exchange) -> None:
    """A body that only the connection's end ends."""
    exchange.sink()
    exchange.head(200, {"Connection": "close"})
    exchange.stream.send(b"until the end\n")
    exchange.last = True


def _extra(exchange: Exchange) -> None:
    """An answer, and another one that nobody asked for."""
    exchange.sink()
    exchange.reply(200, b"first\n")
    exchange.reply(200, b"STRAY\n")


def _pause(exchange: Exchange) -> None:
    exchange.sink()
    time.sleep(float(exchange.arguments["seconds"]))
    exchange.reply(200, b"at last\n")


def _upgrade(exchange: Exchange) -> None:
    """Another protocol, as the client asked: all bytes come back. As a WebSocket's server does it, if the client sends a key."""
    exchange.sink()
    wanted = exchange.request.all("upgrade")
    if not wanted:
        return exchange.reply(426, b"")
    key = (exchange.request.all("sec-websocket-key") or [""])[0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    exchange.head(101, {"Connection": "Upgrade", "Upgrade": wanted[0], "Sec-WebSocket-Accept": accept})
    exchange.last = True
    return echo(exchange.stream, {})


_ROUTES: dict[str, Callable[[Exchange], object]] = {
    "/echo": _echo, "/sink": _sink, "/slow": _slow, "/headers": _headers, "/chunked": _chunked, "/big": _big, "/redirect": _redirect,
    "/status": _status, "/early": _early, "/close": _close, "/extra": _extra, "/pause": _pause, "/upgrade": _upgrade,
}


def serve(sock: socket.socket, connection: Connection, service: Service, content: Content) -> None:
    """A connection's thread."""
    sock.settimeout(30)
    try:
        # What clients do to a server is no fault of its.
        with sock, contextlib.suppress(OSError, ValueError):
            service(Stream(sock, connection), content)
    finally:
        connection.ended = True


def waiting(sock: socket.socket) -> bool:
    """Whether bytes came that nobody has read yet."""
    try:
        return sock.fileno() >= 0 and bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return False
