"""Benchmarks of a sandbox's network. Its servers are processes on this machine's loopback, which sandboxes reach as host.sandy.internal."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from sandy import Sandbox

Figures = tuple[str, dict[str, float], str]

# "N\n": N bytes. "e\n": a byte for each byte, until the end. Prints its port.
SERVER = r"""
import contextlib, socket, sys, threading
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], 0))
listener.listen(4096)
print(listener.getsockname()[1], flush=True)
block = b"x" * (1 << 20)
def serve(connection):
    with connection, contextlib.suppress(OSError, ValueError):
        line = b""
        while not line.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                return
            line += byte
        if line == b"e\n":
            while data := connection.recv(65536):
                connection.sendall(data)
            return
        left = int(line)
        while left > 0:
            left -= connection.send(block[:left])
threading.stack_size(128 * 1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

CLIENT = r"""
import json, socket, statistics, sys, time
host, port, what, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
def dial():
    return socket.create_connection((host, port), 30)
def bulk():
    with dial() as connection:
        connection.sendall(b"%d\n" % count)
        buffer, left, start = bytearray(1 << 20), count, time.perf_counter()
        while left > 0:
            got = connection.recv_into(buffer)
            assert got, "cut off"
            left -= got
        return count / (time.perf_counter() - start)
def connect():
    # The name is looked up before: it is the connection that is measured, up to the first byte from the server.
    address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        with socket.create_connection(address, 30) as connection:
            connection.sendall(b"e\nx")
            assert connection.recv(1) == b"x"
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)
def many():
    open_ = []
    for _ in range(count):
        connection = dial()
        connection.sendall(b"e\n")
        open_.append(connection)
    for connection in open_:
        connection.sendall(b"x")
    lost = sum(connection.recv(1) != b"x" for connection in open_)
    print(json.dumps(lost), flush=True)
    sys.stdin.readline()
print(json.dumps({"bulk": bulk, "connect": connect, "many": many}[what]()), flush=True)
"""


@contextlib.contextmanager
def server(address: str = "127.0.0.1", prefix: tuple[str, ...] = ()) -> Iterator[int]:
    process = subprocess.Popen([*prefix, sys.executable, "-c", SERVER, address], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def measured(argv: list[str]) -> float:
    return float(json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout))


class Inside:
    """The client in a sandbox that may reach one port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sandbox = Sandbox(allow_private=[f"host.sandy.internal:{port}"], allow_domains=[], open_files=4096)

    def argv(self, what: str, count: int) -> list[str]:
        return ["python3", "-c", CLIENT, "host.sandy.internal", str(self.port), what, str(count)]

    def __call__(self, what: str, count: int) -> float:
        outcome = self.sandbox.run(self.argv(what, count), timeout=300)
        if not outcome.ok:
            raise SystemExit(f"a client failed: {outcome}")
        return float(json.loads(outcome.stdout))


# Two network namespaces with a veth pair between them: the server is in one, the client in the other.
VETH = r"""
ip link set lo up
unshare --net sh -c 'echo; exec sleep 300' > "$1/ready" & other=$!
while [ ! -s "$1/ready" ]; do sleep 0.05; done
ip link add near type veth peer name far netns $other
ip addr add 10.9.9.1/24 dev near && ip link set near up
nsenter --net=/proc/$other/ns/net sh -c 'ip addr add 10.9.9.2/24 dev far && ip link set far up'
python=$2 server=$3 client=$4 count=$5
nsenter --net=/proc/$other/ns/net "$python" -c "$server" 10.9.9.2 > "$1/port" & serving=$!
while [ ! -s "$1/port" ]; do sleep 0.05; done
"$python" -c "$client" 10.9.9.2 "$(cat "$1/port")" bulk "$count"
kill $serving $other
"""


def throughput() -> Iterator[Figures]:
    count = 4 << 30
    with server() as port:
        inside = Inside(port)
        inside("bulk", 1 << 28)
        ours, bare = [], []
        for _ in range(5):
            ours.append(inside("bulk", count))
            with tempfile.TemporaryDirectory() as directory:
                bare.append(measured(["unshare", "-Urn", "sh", "-c", VETH, "sh", directory, sys.executable, SERVER, CLIENT, str(count)]))
        inside.sandbox.close()
    yield "bulk through the proxy / bare veth", {
        "ratio": statistics.median(mine / theirs for mine, theirs in zip(ours, bare, strict=True)),
        "ours_gbit": statistics.median(ours) * 8e-9, "veth_gbit": statistics.median(bare) * 8e-9, "pairs": len(ours),
    }, ">= 0.6"


def connection_time() -> Iterator[Figures]:
    with server() as port:
        inside = Inside(port)
        direct = [sys.executable, "-c", CLIENT, "127.0.0.1", str(port), "connect", "500"]
        added = [inside("connect", 500) - measured(direct) for _ in range(7)]
        inside.sandbox.close()
    yield "added to a connection, up to the first byte", {"added_ms": statistics.median(added) * 1e3, "pairs": len(added)}, "<= 0.3 ms"


def proxy_resident() -> float:
    """MiB of the proxies that this process's `sandy serve` has started. The proxy can't be looked at otherwise: it is not dumpable."""
    total = 0.0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            text = status.read_text()
            if re.search(r"^Name:\s+sandy-proxy$", text, re.M) and (found := re.search(r"^VmRSS:\s+(\d+)", text, re.M)):
                total += int(found[1]) / 1024
    return total


def many_connections() -> Iterator[Figures]:
    with server() as port:
        inside = Inside(port)
        lost = 0
        for _ in range(10):
            inside("connect", 1_000)  # fails if one is lost
        yield "10,000 connections, one after another", {"lost": lost}, "0"
        before = proxy_resident()
        resident: list[float] = []

        def on_output(stream: str, data: bytes) -> None:
            nonlocal lost
            if stream == "stdout" and not resident:
                lost = int(data.split()[0])
                resident.append(proxy_resident())

        # Its connections stay open until what it printed was seen.
        outcome = inside.sandbox.run(["sh", "-c", '(sleep 3; echo) | "$@"', "sh", *inside.argv("many", 1_000)], timeout=120, on_output=on_output)
        inside.sandbox.close()
        assert outcome.reason == "exited", outcome
    yield "1,000 connections at a time", {"lost": lost, "proxy_mib": resident[0], "proxy_mib_before": before}, "0 lost, < 32 MiB"


# 500 connections that do no good: nothing sent, a byte at a time of TLS, HTTP and SOCKS, and random bytes; each is made again when it was ended.
BAD = r"""
import os, random, selectors, socket, sys, time
host, port = sys.argv[1], int(sys.argv[2])
proxy, socks = ("198.18.0.1", 3128), ("198.18.0.1", 1080)
hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(400)
kinds = [((host, port), b""), ((host, port), hello), (proxy, b"GET http://" + b"a" * 4000), (socks, b"\x05\xff" + bytes(200)), (proxy, None), (socks, None), ((host, port), None)]
def made(at):
    target, text = kinds[at % len(kinds)]
    s = socket.create_connection(target, 10)
    s.setblocking(False)
    return [s, text, 0]
all_ = [made(at) for at in range(500)]
print("ready", flush=True)
while True:
    for at, (s, text, sent) in enumerate(all_):
        try:
            if text is None:
                s.send(os.urandom(random.randrange(1, 200)))
            elif sent < len(text):
                all_[at][2] += s.send(text[sent:sent + 1])
            if not s.recv(65536):
                raise OSError
        except BlockingIOError:
            continue
        except OSError:
            s.close()
            try:
                all_[at] = made(at)
            except OSError:
                pass
    time.sleep(0.1)
"""


def bad_company() -> Iterator[Figures]:
    with server() as port:
        inside = Inside(port)
        alone = [inside("connect", 300) for _ in range(5)]
        started = inside.sandbox.run(["sh", "-c", 'python3 -c "$1" host.sandy.internal "$2" > /tmp/bad & until grep -q ready /tmp/bad; do sleep 0.1; done', "sh", BAD, str(port)], timeout=60)
        if not started.ok:
            raise SystemExit(f"the bad clients failed: {started}")
        among = [inside("connect", 300) for _ in range(5)]
        proxy_mib = proxy_resident()
        inside.sandbox.close()
    yield "a good client's time among 500 bad ones / alone", {
        "ratio": statistics.median(among) / statistics.median(alone), "alone_ms": statistics.median(alone) * 1e3, "among_ms": statistics.median(among) * 1e3,
        "proxy_mib": proxy_mib,
    }, "<= 2"


def network_start() -> Iterator[Figures]:
    # `pairs`, `seconds` and the bare bubblewrap are run.py's.
    from run import BWRAP, PROGRAMS, pairs, seconds

    bare = [BWRAP, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    ours = [str(PROGRAMS / "sandy"), "run", "--allow-domain", "x.example", "--", "true"]

    def run(argv: list[str]) -> None:
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        yield "sandy run --allow-domain x -- true / bare bwrap", pairs(lambda: run(ours), lambda: run(bare), 60), "<= 2.0"
        os.chdir("/")

    # Until it is ready; its end, of which most is the kernel's work on its mounts, is not counted, as nobody waits for it.
    taken = []
    with Sandbox(allow_domains=["x.example"]):
        for _ in range(63):
            theirs = seconds(lambda: run(bare))
            start = time.perf_counter()
            sandbox = Sandbox(allow_domains=["x.example"])
            taken.append((theirs, time.perf_counter() - start))
            sandbox.close()
    del taken[:3]
    yield "a second Sandbox(allow_domains=...) / bare bwrap", {
        "ratio": statistics.median(mine / theirs for theirs, mine in taken), "ours_ms": statistics.median(mine for _, mine in taken) * 1e3,
        "other_ms": statistics.median(theirs for theirs, _ in taken) * 1e3, "pairs": len(taken),
    }, "<= 1.4"
