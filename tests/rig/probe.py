"""For scripts in a sandbox: sockets, HTTP, SOCKS, TLS and DNS by hand, so that each byte can be chosen. On its own, as it is copied there.

What is refused in a network comes as one of many things (an error of connect, a reset, an end, an answer), which `outcome` makes one word of.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import sys
import time

GATEWAY, OWN = "198.18.0.1", "198.18.0.2"
PROXY, SOCKS, RESOLVER = (GATEWAY, 3128), (GATEWAY, 1080), (GATEWAY, 53)

given = json.loads(sys.argv[1])["given"] if len(sys.argv) > 1 else []


def show(value):
    """What the test gets."""
    print(json.dumps(value, default=lambda data: data.decode("latin-1")))


def outcome(action, *arguments):
    """What the action returned, or its error as a word: refused, reset, unknown (no such name), timeout, EPERM, … (an errno's name)."""
    try:
        return action(*arguments)
    except socket.gaierror:
        return "unknown"
    except TimeoutError:
        return "timeout"
    except ConnectionRefusedError:
        return "refused"
    except (ConnectionResetError, BrokenPipeError):
        return "reset"
    except ssl.SSLError as error:
        return "closed" if isinstance(error, ssl.SSLEOFError) else f"TLS: {error.reason}"
    except OSError as error:
        import errno

        return errno.errorcode.get(error.errno, str(error))


def timed(action, *arguments):
    """The outcome, and how many seconds it took."""
    start = time.monotonic()
    return outcome(action, *arguments), time.monotonic() - start


def dial(host, port, timeout=10):
    return socket.create_connection((host, port), timeout)


def received(sock, timeout=10, end=None):
    """All that comes until the end; or, with `end`, until that."""
    sock.settimeout(timeout)
    data = b""
    while not (end and end in data):
        piece = sock.recv(65_536)
        if not piece:
            break
        data += piece
    return data


def talk(host, port, data=b"", end=None, shut=False, timeout=10):
    """Sends and receives on a connection of its own."""
    with dial(host, port, timeout) as sock:
        sock.sendall(data)
        if shut:
            sock.shutdown(socket.SHUT_WR)
        return received(sock, timeout, end).decode("latin-1")


def reached(host, port, timeout=10):
    """Whether an echo server is there: "hello", or how it is not."""
    def once():
        with dial(host, port, timeout) as sock:
            sock.sendall(b"hello")
            return received(sock, timeout, b"hello").decode("latin-1") or "closed"

    return outcome(once)


def request(method, target, *headers, host=None, body=""):
    """The text of a request. With `host`, its header."""
    lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *headers, "", body]
    return "\r\n".join(lines).encode("latin-1")


class Http:
    """A connection on which answers of HTTP/1.1 come."""

    def __init__(self, sock):
        self.sock = sock
        self.stream = sock.makefile("rb")

    def ask(self, data, method="GET"):
        self.sock.sendall(data)
        return self.answer(method)

    def answer(self, method="GET"):
        """The status (0: the connection ended), the headers in lower case, and the body. An answer 100 is skipped."""
        line = self.stream.readline()
        if not line:
            return 0, {}, ""
        status, headers = int(line.split()[1]), {}
        while (line := self.stream.readline()).strip():
            key, _, value = line.decode("latin-1").partition(":")
            headers[key.lower()] = value.strip()
        if status == 100:
            return self.answer(method)
        body = b""
        if method == "HEAD" or status in (101, 204, 304) or (method == "CONNECT" and status == 200):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(self.stream.readline(), 16):
                body += self.stream.read(size)
                self.stream.readline()
            self.stream.readline()
        elif "content-length" in headers:
            body = self.stream.read(int(headers["content-length"]))
        else:
            body = self.stream.read()
        return status, headers, body.decode("latin-1")


def http(host, port, data, method="GET", timeout=10):
    """The status and body of one answer."""
    with dial(host, port, timeout) as sock:
        status, _, body = Http(sock).ask(data, method)
        return status, body


def get(host, path="/", port=80, timeout=10):
    """The status that a plain request gets, or a word."""
    place = host if port == 80 else f"{host}:{port}"
    return outcome(lambda: http(host, port, request("GET", path, "Connection: close", host=place), timeout=timeout)[0])


def by_proxy(data, method="GET", timeout=10):
    """The status that the HTTP proxy answers to these bytes; 0 for an end without an answer, or a word."""
    return outcome(lambda: http(*PROXY, data, method, timeout)[0])


def connect_status(target, *headers, host=None):
    """What the proxy says to CONNECT."""
    return by_proxy(request("CONNECT", target, *headers, host=target if host is None else host), "CONNECT")


def tunnel(target, timeout=10):
    """A socket behind CONNECT."""
    sock = dial(*PROXY, timeout)
    sock.sendall(request("CONNECT", target, host=target))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = sock.recv(1)  # no byte of what comes behind it
        if not piece:
            break
        head += piece
    if not head.startswith(b"HTTP/1.1 200"):
        sock.close()
        raise ConnectionRefusedError(head.decode("latin-1"))
    return sock


def socks_request(kind, address, port, command=1):
    """SOCKS5. The kinds of addresses: 1, 3 (a name), 4."""
    packed = address if kind != 3 else bytes([len(address)]) + address
    return bytes([5, command, 0, kind]) + packed + struct.pack("!H", port)


def exactly(sock, size):
    data = b""
    while len(data) < size and (piece := sock.recv(size - len(data))):
        data += piece
    return data


def socks(data, greeting=b"\x05\x01\x00", timeout=10):
    """The reply's number, and the socket behind it. A greeting that is refused, or an end: -1."""
    sock = dial(*SOCKS, timeout)
    sock.sendall(greeting)
    if exactly(sock, 2) != b"\x05\x00":
        return -1, sock
    sock.sendall(data)
    reply = exactly(sock, 4)
    if len(reply) < 4:
        return -1, sock
    exactly(sock, {1: 6, 4: 18}.get(reply[3], 0))
    return reply[1], sock


def socks_reply(data, greeting=b"\x05\x01\x00", timeout=10):
    def once():
        reply, sock = socks(data, greeting, timeout)
        sock.close()
        return reply

    return outcome(once)


def socks_name(name, port=80):
    """The reply for a name, of text or bytes."""
    return socks_reply(socks_request(3, name if isinstance(name, bytes) else name.encode("latin-1"), port))


def hello(name, *, protocols=("http/1.1",)):
    """The bytes of a ClientHello, and what goes on with it: (bytes, incoming, outgoing, TLS object)."""
    context = ssl.create_default_context(cafile="ca.pem")
    context.set_alpn_protocols(list(protocols))
    if name is None:
        context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        secure.do_handshake()
    return outgoing.read(), incoming, outgoing, secure


def records(data, size):
    """The same message of the handshake, in records of at most `size` bytes."""
    body = data[5:]
    return b"".join(data[:3] + struct.pack("!H", len(body[at : at + size])) + body[at : at + size] for at in range(0, len(body), size))


def https(sock, name, *, path="/", written=None, change=lambda data: data, step=0, protocols=("http/1.1",)):
    """The status of a request in TLS. `written` is what Host says, if not the name; `change` changes the ClientHello, of which `step` bytes (0: all) go out at a time."""
    data, incoming, outgoing, secure = hello(name, protocols=protocols)
    data = change(data)
    sock.settimeout(10)
    if step:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(0, len(data), step or len(data)):
        sock.sendall(data[at : at + (step or len(data))])
        if step:
            time.sleep(0.001)

    def pump(action):
        while True:
            try:
                return action()
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                piece = sock.recv(65_536)
                if not piece:
                    raise ConnectionResetError from None
                incoming.write(piece)

    pump(secure.do_handshake)
    secure.write(request("GET", path, "Connection: close", host=written or name or "a.example"))
    sock.sendall(outgoing.read())
    return int(pump(lambda: secure.read(65_536)).split()[1])


def tls_status(host, name, port=443, **rest):
    """The same on a connection of its own."""
    def once():
        with dial(host, port) as sock:
            return https(sock, name, **rest)

    return outcome(once)


TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "SVCB": 64, "HTTPS": 65, "ANY": 255}
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS"}


def labels(name):
    if isinstance(name, bytes):
        return name  # as it is to be on the wire
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"


def query(name, kind="A", *, number=4711, question_class=1, edns=None, version=0):
    """A query's bytes. `edns`: how many bytes the asker takes."""
    options = b"" if edns is None else b"\0" + struct.pack("!HHBBHH", 41, edns, 0, version, 0, 0)
    head = struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 1 if options else 0)
    return head + labels(name) + struct.pack("!HH", TYPES.get(kind, kind), question_class) + options


def udp(data, server=RESOLVER, timeout=3):
    """The answer to a datagram."""
    with socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        sock.connect(server)
        sock.send(data)
        return sock.recv(65_536)


def tcp(data, server=RESOLVER, timeout=3):
    """The answer over TCP."""
    with dial(*server, timeout) as sock:
        sock.sendall(struct.pack("!H", len(data)) + data)
        return exactly(sock, int.from_bytes(exactly(sock, 2), "big"))


def _skip(message, at):
    """Past a name, which may end in a pointer."""
    while message[at] and message[at] < 0xC0:
        at += 1 + message[at]
    return at + (2 if message[at] >= 0xC0 else 1)


def _text(message, at):
    out = []
    while message[at]:
        if message[at] >= 0xC0:
            at = (message[at] & 0x3F) << 8 | message[at + 1]
            continue
        out.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(out)


def decode(message):
    """An answer's code, its data as text, and more."""
    number, flags, questions, answers, _, additionals = struct.unpack_from("!HHHHHH", message)
    at, question = 12, b""
    for _ in range(questions):
        end = _skip(message, at) + 4
        question, at = message[at : end - 4], end
    found, code = [], flags & 0xF
    for position in range(answers + additionals):
        at = _skip(message, at)
        kind, _, ttl, size = struct.unpack_from("!HHIH", message, at)
        data, start = message[at + 10 : at + 10 + size], at + 10
        at = start + size
        if kind == 41:
            code |= (ttl >> 24) << 4
        elif position < answers:
            text = {1: lambda d: socket.inet_ntop(socket.AF_INET, d), 28: lambda d: socket.inet_ntop(socket.AF_INET6, d)}
            found.append(_text(message, start) if kind in (5, 12) else text.get(kind, bytes.hex)(data))
    return {"id": number, "code": RCODES.get(code, code), "answers": found, "question": question, "cut": bool(flags & 0x0200), "options": additionals}


def ask(name, kind="A", *, over=udp, server=RESOLVER, **rest):
    """The code and the answers, or a word."""
    def once():
        answer = decode(over(query(name, kind, **rest), server))
        return [answer["code"], answer["answers"]]

    return outcome(once)
