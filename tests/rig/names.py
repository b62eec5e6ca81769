"""A name server of the rig's own, over UDP and TCP, RFC 1035, with a log of what it was asked."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import socket
import struct
import threading
from collections.abc import Callable, Sequence

from rig.loop import Loop

A, CNAME, AAAA = 1, 5, 28
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
_TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 64: "SVCB", 65: "HTTPS", 255: "ANY"}


@dataclasses.dataclass(frozen=True)
class Query:
    transport: str  # udp, tcp
    name: str  # as it was asked, without the last dot
    type: str


@dataclasses.dataclass
class Entry:
    """What a name has. Of `rounds`, each query of a type gets the next one, and the last one stays."""

    rounds: Sequence[Sequence[str]] = ((),)
    alias: str = ""  # is a CNAME for this name
    rcode: int = NOERROR
    delay: float = 0  # seconds
    silent: bool = False  # no answer at all
    truncated: bool = False  # over UDP: ask again over TCP
    asked: dict[int, int] = dataclasses.field(default_factory=dict)

    def addresses(self, kind: int) -> list[bytes]:
        """Those of this type, in this round."""
        number = self.asked.get(kind, 0)
        self.asked[kind] = number + 1
        found = map(ipaddress.ip_address, self.rounds[min(number, len(self.rounds) - 1)])
        return [address.packed for address in found if (address.version == 6) == (kind == AAAA)]


class NameServer:
    """Knows the names that tests set; any other one has the address `default`, but for those below .invalid, which do not exist."""

    def __init__(self, loop: Loop, default: str) -> None:
        self.queries: list[Query] = []
        self._default = default
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._udp, self._tcp = _same_port("127.0.0.1")
        self.address = f"127.0.0.1:{self._udp.getsockname()[1]}"
        loop.register(self._udp, self._datagram)
        loop.register(self._tcp, self._connection)

    def set(
        self, name: str, *addresses: str, alias: str = "", rcode: int = NOERROR, delay: float = 0, silent: bool = False, truncated: bool = False
    ) -> None:
        """The addresses of a name, or of all below it (`*.name`), and how it is answered."""
        self._set(name, Entry((addresses,), alias, rcode, delay, silent, truncated))

    def rounds(self, name: str, *rounds: Sequence[str]) -> None:
        """A name that has other addresses each time: the first query gets the first ones, and so on."""
        self._set(name, Entry(rounds))

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)

    def _set(self, name: str, entry: Entry) -> None:
        with self._lock:
            self._entries[name.lower()] = entry

    def _entry(self, name: str) -> Entry:
        if name in self._entries:
            return self._entries[name]
        for at, letter in enumerate(name):
            if letter == "." and f"*{name[at:]}" in self._entries:
                return self._entries[f"*{name[at:]}"]
        unknown = name.endswith((".invalid", ".arpa")) or name == "invalid"
        return Entry(rcode=NXDOMAIN) if unknown else Entry(((self._default,),))

    def _answer(self, message: bytes, transport: str) -> tuple[bytes, Entry] | None:
        """The answer, and the entry that it is from. None: the message is no query."""
        try:
            number, flags, questions = struct.unpack_from("!HHH", message)
            name, end = _read_name(message, 12)
            kind, _ = struct.unpack_from("!HH", message, end)
        except (struct.error, IndexError, UnicodeDecodeError):
            return None
        if flags & 0x8000 or questions != 1:
            return None
        with self._lock:
            self.queries.append(Query(transport, name, _TYPES.get(kind, str(kind))))
            entry = self._entry(name.lower())
            answers, rcode = self._records(entry, kind)
        cut = entry.truncated and transport == "udp"
        head = struct.pack("!HHHHHH", number, 0x8180 | flags & 0x0100 | (0x0200 if cut else 0) | rcode, 1, 0 if cut else len(answers), 0, 0)
        return head + message[12 : end + 4] + (b"" if cut else b"".join(answers)), entry

    def _records(self, entry: Entry, kind: int) -> tuple[list[bytes], int]:
        """Those of the answer, aliases followed."""
        out: list[bytes] = []
        owner, rcode = b"\xc0\x0c", entry.rcode
        while entry.alias and len(out) < 8:
            target = _name(entry.alias)
            out.append(owner + struct.pack("!HHIH", CNAME, 1, 0, len(target)) + target)
            owner, entry = target, self._entry(entry.alias.lower())
        if kind in (A, AAAA) and entry.rcode == NOERROR:
            out += [owner + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed for packed in entry.addresses(kind)]
        return out, rcode or entry.rcode

    def _datagram(self) -> None:
        message, peer = self._udp.recvfrom(65_536)
        answered = self._answer(message, "udp")
        if answered is None or answered[1].silent:
            return
        if answered[1].delay:
            self._later(lambda: None if self._stop.wait(answered[1].delay) else self._send(answered[0], peer))
        else:
            self._send(answered[0], peer)

    def _send(self, message: bytes, peer: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            self._udp.sendto(message, peer)

    def _connection(self) -> None:
        sock, _ = self._tcp.accept()
        self._later(lambda: self._converse(sock))

    def _converse(self, sock: socket.socket) -> None:
        sock.settimeout(2)
        with sock, contextlib.suppress(OSError), sock.makefile("rb") as stream:
            while len(size := stream.read(2)) == 2:
                answered = self._answer(stream.read(int.from_bytes(size, "big")), "tcp")
                if answered is None or answered[1].silent or self._stop.wait(answered[1].delay):
                    return
                sock.sendall(len(answered[0]).to_bytes(2, "big") + answered[0])

    def _later(self, job: Callable[[], object]) -> None:
        thread = threading.Thread(target=job, daemon=True)
        self._threads.append(thread)
        thread.start()


def _same_port(address: str) -> tuple[socket.socket, socket.socket]:
    """A UDP and a listening TCP socket at one port that was free."""
    for _ in range(50):
        udp, tcp = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
        udp.bind((address, 0))
        try:
            tcp.bind(udp.getsockname())
            tcp.listen(64)
        except OSError:
            udp.close()
            tcp.close()
            continue
        return udp, tcp
    raise AssertionError("no port is free for UDP and TCP")


def _name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def _read_name(message: bytes, at: int) -> tuple[str, int]:
    labels = []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(labels), at + 1
