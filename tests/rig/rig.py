"""The rig: hosts, their services, the name server, and what sandy has to be told of them."""

from __future__ import annotations

import contextlib
import errno
import json
import pathlib
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from rig.certificates import Certificates
from rig.log import Connection, Request
from rig.loop import Loop
from rig.names import NameServer
from rig.upstreams import Content, Service, banner, digest, echo, http, serve, server_context, source, tls, waiting

VARIABLE = "SANDY_UNSAFE_TEST_NETWORK"
HOSTS = {
    "a": "127.77.0.1", "b": "127.77.0.2", "c": "127.77.0.3", "private": "127.0.0.1", "private6": "::1", "outside": "127.78.0.1",
}
PUBLIC = ("127.77.0.0/16",)
NOBODY = "127.77.0.99"  # public, and nothing listens there
PORTS = {"http": (80, 8000, 11434), "https": (443,), "ssh": (22,), "echo": (7,), "digest": (9,), "source": (19,)}


class Rig:
    """Use it as a context manager; it runs from its making to `close`."""

    def __init__(self, certificates: Certificates) -> None:
        self.ca = certificates.authority
        self.log: list[Connection] = []
        self.content: Content = {}
        context = server_context(str(certificates.chain), str(certificates.key))
        services: dict[str, Service] = {
            "http": http, "https": tls(context, http), "ssh": banner, "echo": echo, "digest": digest, "source": source,
        }
        self._loop = Loop()
        self._threads: list[threading.Thread] = []
        self.ports: dict[str, int] = {}  # of a service: where it really is
        for name, service in services.items():
            self._listen(name, service)
        self.dns = NameServer(self._loop, HOSTS["b"])
        for host in ("a", "b", "c"):
            self.dns.set(f"{host}.example", HOSTS[host])
        self._loop.start()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections and threads."""
        self._loop.close()
        self.dns.close()
        _end(self.log)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a thread of the rig hangs"

    # What sandy is told.

    def setting_of(self, public: Iterable[str] = PUBLIC, addresses: Mapping[str, str] | None = None) -> str:
        """The test setting, with these networks as public ones; `addresses` are dialled at others (in a sandbox, 127.0.0.0/8 is its own loopback)."""
        mapped = {str(port): self.ports[service] for service, ports in PORTS.items() for port in ports}
        return json.dumps({"nameservers": [self.dns.address], "public": list(public), "ports": mapped, "addresses": dict(addresses or {})})

    @property
    def setting(self) -> str:
        return self.setting_of()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for `sandy`."""
        return {VARIABLE: self.setting}

    # What it serves.

    def put(self, path: str, data: bytes | str, kind: str = "application/octet-stream") -> None:
        """The HTTP services of all hosts have this at `path`."""
        self.content[path] = (kind, data.encode() if isinstance(data, str) else data)

    def put_tree(self, path: str, directory: pathlib.Path) -> None:
        """The same with all files of a directory."""
        for file in directory.rglob("*"):
            if file.is_file():
                self.put(f"{path}/{file.relative_to(directory)}", file.read_bytes())

    # What arrived.

    def settle(self) -> None:
        """Returns when all is in the log that arrived before; what a server is slow to read is waited for a short time alone."""
        self._loop.settle()
        end = time.monotonic() + 0.25
        while time.monotonic() < end and any(not connection.ended and waiting(connection.sock) for connection in self.log):
            time.sleep(0.002)

    def connections(self, *hosts: str, service: str = "") -> list[Connection]:
        """Those to these hosts, or to any."""
        self.settle()
        return [one for one in self.log if (not hosts or one.host in hosts) and service in ("", one.service)]

    def requests(self, *hosts: str) -> list[Request]:
        """Of HTTP, with and without TLS."""
        return [request for connection in self.connections(*hosts) for request in connection.requests]

    def asked(self) -> set[str]:
        """The names that the name server was asked for, in lower case."""
        self.settle()
        return {query.name.lower() for query in self.dns.queries}

    def assert_untouched(self, *hosts: str, names: Sequence[str] | None = None) -> None:
        """Nothing arrived at these hosts (default: at any), and the name server was asked for nothing but `names` (default: it doesn't matter)."""
        assert self.connections(*hosts) == []
        if names is not None:
            assert self.asked() <= set(names)

    def forget(self) -> None:
        """Empties the log: for what follows a positive control."""
        self.settle()
        _end(self.log)
        self.log.clear()
        self.dns.queries.clear()

    # How it listens.

    def _listen(self, name: str, service: Service) -> None:
        """One port for all hosts, as a port of a sandbox's connection is mapped whatever the address."""
        for _ in range(50):
            found: dict[str, socket.socket] = {}
            port = 0
            try:
                for host, address in HOSTS.items():
                    sock = _listener(address, port)
                    if sock is not None:
                        found[host] = sock
                        port = sock.getsockname()[1]
            except OSError:
                for sock in found.values():
                    sock.close()
                continue
            self.ports[name] = port
            for host, sock in found.items():
                self._loop.register(sock, lambda host=host, sock=sock: self._accept(host, name, sock, service))  # type: ignore[misc]
            return
        raise AssertionError(f"no port is free at {', '.join(HOSTS.values())}")

    def _accept(self, host: str, name: str, listener: socket.socket, service: Service) -> None:
        sock, peer = listener.accept()
        connection = Connection(host, name, peer, sock)
        self.log.append(connection)
        thread = threading.Thread(target=serve, args=(sock, connection, service, self.content), daemon=True)
        self._threads.append(thread)
        thread.start()


def _end(connections: Iterable[Connection]) -> None:
    for connection in connections:
        # Not the method of a TLS socket, which another thread is using.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def _listener(address: str, port: int) -> socket.socket | None:
    """None where this machine has no IPv6. A small buffer, so that who does not read holds up who sends."""
    try:
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError:
        return None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
        sock.bind((address, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        if ":" in address and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    return sock
