"""What a caller does with a sandbox's network while it runs: questions, rules, published ports, the audit log. What commands meet is in `test_network.py`."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from rig import Rig
from rig.net import Net
from support import Cli, finish

pytest_plugins = ["rig.fixtures"]

# A server in the sandbox that answers each connection with what it is sent, in capitals.
SHOUT = """
import socket, sys, threading
s = socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, backlog=200)
print("listening", flush=True)
def serve(c):
    with c:
        while data := c.recv(65536):
            c.sendall(data.upper())
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


def talk(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while piece := connection.recv(65536):
            got += piece
        return got


# Questions.


def test_a_program_waits_for_the_answer(client: Callable[..., Any], rig: Rig) -> None:
    script = """
import time
asked = []
def answer(target):
    asked.append(target)
    time.sleep(0.3)
    return {"a": "once", "b": "always", "c": "deny"}[target[0]]
with Sandbox(allow_domains=[], on_request=answer, timeout=30) as box:
    got = [box.run(f"curl -sS -m 10 http://{name}.example/ || echo no").stdout.decode().strip() for name in "abcabc"]
    show([got, asked, targets(box.run("curl -s -m 5 http://c.example/").denials)])
"""
    got, asked, denied = client(script)
    assert got == ["hello from a", "hello from b", "no"] * 2
    # "always" is a rule from then on, and a denial is remembered.
    assert asked == ["a.example:80", "b.example:80", "c.example:80", "a.example:80"] and denied == ["c.example:80"]
    assert not rig.requests("c") and rig.asked() == {"a.example", "b.example"}


@pytest.mark.parametrize("answer", ["raise ValueError('no')", "return None", "return True", "return 'yes'", "import time; time.sleep(60)"])
def test_whatever_is_no_answer_is_a_denial(client: Callable[..., Any], rig: Rig, answer: str) -> None:
    script = f"""
def answer(target):
    {answer}
with Sandbox(allow_domains=["a.example"], on_request=answer, timeout=30) as box:
    show([box.run("curl -s -m 2 http://b.example/; true").stdout.decode(), box.run("curl -s -m 9 http://a.example/").stdout.decode()])
"""
    assert client(script) == ["", "hello from a\n"]
    assert not rig.requests("b")


def test_a_denial_by_name_is_not_asked_for(client: Callable[..., Any], rig: Rig) -> None:
    script = """
asked = []
with Sandbox(allow_domains=["*.w.example"], deny_domains=["x.w.example"], on_request=lambda target: asked.append(target) or "always", timeout=30) as box:
    box.run("curl -s -m 5 http://x.w.example/; curl -s -m 5 http://10.0.0.1/; curl -s -m 5 http://[::1]/")
    show(asked)
"""
    assert client(script) == []
    rig.assert_untouched()


def test_an_allowed_name_may_still_not_lead_home(client: Callable[..., Any], rig: Rig) -> None:
    rig.dns.set("home.example", "127.0.0.1")
    script = """
with Sandbox(allow_domains=[], on_request=lambda target: "always", timeout=30) as box:
    got = box.run("curl -s -m 5 http://home.example/ || echo no")
    show([got.stdout.decode(), [denial.reason for denial in got.denials]])
"""
    said, reasons = client(script)
    assert said == "no\n" and any("127.0.0.1" in reason for reason in reasons)
    rig.assert_untouched("private")


def test_asking_alone_is_a_network_of_what_is_asked_for(client: Callable[..., Any], rig: Rig) -> None:
    script = """
said = lambda box, name: box.run(f"curl -sS -m 10 http://{name}.example/ || echo no").stdout.decode().strip()
with Sandbox(on_request=lambda target: "once" if target[0] == "a" else "deny", timeout=30) as box:
    got = [said(box, "a"), said(box, "b")]
try: Sandbox(on_request=lambda target: "once", policy={"network": {"mode": "none"}})
except ValueError as error: got.append("on_request" in str(error))
show(got)
"""
    assert client(script) == ["hello from a", "no", True]
    assert not rig.requests("b")


def test_a_client_that_has_closed_its_side_may_still_be_answered(client: Callable[..., Any], rig: Rig) -> None:
    inside = """
import socket
s = socket.create_connection(("b.example", 80))
s.sendall(b"GET / HTTP/1.1\\r\\nHost: b.example\\r\\nConnection: close\\r\\n\\r\\n")
s.shutdown(socket.SHUT_WR)
print(s.makefile().read())
"""
    script = f"""
import shlex, time
def answer(target):
    time.sleep(1.5)
    return "once"
with Sandbox(allow_domains=[], on_request=answer, timeout=30) as box:
    show(box.run("python3 -c " + shlex.quote({inside!r})).stdout.decode())
"""
    assert "hello from b" in client(script)
    assert len(rig.requests("b")) == 1


# Rules.


def test_rules_change_while_it_runs(client: Callable[..., Any], rig: Rig) -> None:
    script = """
get = "curl -s -m 5 http://%s.example/ || echo no"
with Sandbox(allow_domains=["a.example"], timeout=30) as box:
    def both(): return [box.run(get % name).stdout.decode().strip() for name in "ab"]
    seen = [both()]
    box.allow_domain("b.example"); seen.append(both())
    box.deny_domain("a.example"); seen.append(both())
    box.allow_domain("a.example"); seen.append(both())
    show(seen)
"""
    a, b = "hello from a", "hello from b"
    assert client(script) == [[a, "no"], [a, b], ["no", b], [a, b]]


def test_what_a_new_rule_forbids_is_cut(client: Callable[..., Any], rig: Rig) -> None:
    script = """
import threading, time
hold = '''
import socket, sys
one, other = [socket.create_connection((name, 7), 10) for name in ("a.example", "b.example")]
for s in (one, other): s.sendall(b"1"); assert s.recv(1) == b"1"
print("open", flush=True)
try: cut = one.recv(1)
except OSError: cut = b""
other.sendall(b"2")
print(cut == b"", other.recv(1) == b"2", flush=True)
'''
with Sandbox(allow_domains=["a.example:7", "b.example:7"], timeout=30) as box:
    seen = []
    def saw(stream, data):
        seen.append(data)
        if data == b"open\\\\n": threading.Thread(target=box.deny_domain, args=("a.example",)).start()
    box.run(["python3", "-c", hold], on_output=saw)
    show(b"".join(seen).decode())
"""
    assert client(script.replace("\\\\\\\\n", "\\\\n")) == "open\nTrue True\n"


# Published ports.


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_this_machine_reaches_a_published_port(sandy: Cli, address: str) -> None:
    process = sandy.start("run", "--publish", "3000", "--", "python3", "-c", SHOUT, address, "3000")
    try:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"listening\n"
        said = process.stderr.readline().decode()
        found = re.fullmatch(r"sandy: port 3000 of the sandbox is 127\.0\.0\.1:(\d+)\n", said)
        assert found, said
        port = int(found[1])
        big = b"x" * 3_000_000
        assert talk(port, b"hello") == b"HELLO" and talk(port, big) == big.upper()
        # More than there are sockets into the sandbox, one after another, and many at a time.
        assert all(talk(port, b"%d" % turn) == b"%d" % turn for turn in range(100))
        at_once = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(30)]
        for connection in at_once:
            connection.sendall(b"y")
        assert all(connection.recv(1) == b"Y" for connection in at_once)
        for connection in at_once:
            connection.close()
    finally:
        process.terminate()
        finish(process)
    with pytest.raises(OSError):
        talk(port, b"hello")


def test_a_published_port_leads_nowhere_else(sandy: Cli, net: Net) -> None:
    # The sandbox gets no way out by it, and nobody else a way in.
    got = net.run("python3", "-c", "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 5).recv(1)\nexcept OSError as e: print(e.strerror)", options=["--publish", "3000"])
    assert got.ok().text in ("Connection reset by peer\n", "Connection refused\n") and got.denied == {"192.0.2.1:80"}
    # Nothing listens inside: who connects is sent away.
    process = sandy.start("run", "--publish", "3000", "--", "sleep", "20")
    assert process.stderr is not None
    port = int(process.stderr.readline().rsplit(b":", 1)[1])
    try:
        # Within connect() already, where the proxy is fast.
        with contextlib.suppress(ConnectionResetError), socket.create_connection(("127.0.0.1", port), 10) as connection:
            assert connection.recv(1) == b""
        # At the loopback alone.
        others = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=False).stdout.split()
        assert all(word.startswith("127.0.0.1:") or not word.endswith(f":{port}") for word in others)
    finally:
        process.terminate()
        finish(process)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--publish", "0"], "is no port"),
        (["--publish", "70000"], "is no port"),
        (["--publish", "x"], "is no port"),
        (["--publish", "1:2:3"], "is no port"),
        (["--publish", "127.0.0.1:80"], "is no port"),
        (["--publish", "3000", "--publish", "3000"], "published already"),
        (["--publish", "8080:3000", "--publish", "8080:3001"], "published already"),
    ],
)
def test_ports_that_cannot_be_published(sandy: Cli, words: list[str], said: str) -> None:
    got = sandy.run("true", options=words)
    assert got.status == 125 and said in got.error, got.error


def test_a_port_that_is_taken(sandy: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        got = sandy.run("touch", "ran", options=["--publish", f"{taken.getsockname()[1]}:3000"])
    assert got.status == 125 and "Address already in use" in got.error and "hint:" in got.error
    assert not (sandy.workspace / "ran").exists()


def test_python_published(client: Callable[..., Any]) -> None:
    script = """
import socket
with Sandbox(publish=["3000"], timeout=30) as box:
    box.run(["sh", "-c", "python3 -c \\"$0\\" 127.0.0.1 3000 & sleep 1", given[0]])
    with socket.create_connection(("127.0.0.1", box.published[3000]), 10) as c:
        c.sendall(b"abc"); show([c.recv(3).decode(), list(box.published)])
"""
    assert client(script, SHOUT) == ["ABC", [3000]]


# The audit log.


def test_every_decision_is_written_down(net: Net, rig: Rig, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.jsonl"
    options = ["--audit", log]
    net.sh("curl -s -m 5 http://a.example/; curl -s -m 5 --cacert ca.pem https://a.example/; curl -s -m 5 http://b.example/; curl -s -m 5 http://192.0.2.1/", allow=["a.example"], options=options)
    net.sh("curl -s -m 5 -x http://198.18.0.1:3128 http://b.example/ http://a.example/1 http://a.example/2", allow=["a.example"], options=options)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    seen = [(line["verdict"], line["protocol"], line["target"]) for line in lines]
    for expected in (
        ("allowed", "tcp", "a.example:80"), ("allowed", "tcp", "a.example:443"), ("denied", "dns", "b.example"), ("denied", "tcp", "192.0.2.1:80"),
        ("denied", "http", "b.example:80"), ("closed", "tcp", "a.example:443"),
    ):
        assert expected in seen, (expected, seen)
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["commands"] and line["commands"][0].startswith("sh -c curl")
    [tls] = [line for line in lines if line["verdict"] == "closed" and line["target"] == "a.example:443"]
    assert tls["bytes_up"] > 200 and tls["bytes_down"] > 500 and tls["ms"] >= 0
    [allowed] = [line for line in lines if line["verdict"] == "allowed" and line["target"] == "a.example:443"]
    assert allowed["address"] == "127.77.0.1" and allowed["reason"] == "a.example"
    assert len({line["sandbox"] for line in lines}) == 2
    # What was allowed ends, once; HTTP's connections too, with the bytes of all their requests.
    for verdict in "allowed", "closed":
        ends = [(line["protocol"], line["target"]) for line in lines if line["verdict"] == verdict]
        assert sorted(target for _, target in ends) == ["a.example:443", "a.example:80", "a.example:80"], ends
    for line in lines:
        if line["verdict"] == "closed" and line["target"] == "a.example:80":
            assert line["protocol"] == "http" and line["bytes_up"] > 50 and line["bytes_down"] > 50, line


def test_no_log_no_sandbox(sandy: Cli, tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path, said in ((tmp_path / "missing/log", "No such file"), (tmp_path / "link", "symbolic link"), (tmp_path, "directory")):
        got = sandy.run("touch", "ran", options=["--allow-domain", "a.example", "--audit", path])
        assert got.status == 125 and said.lower() in got.error.lower(), got.error
    assert not (sandy.workspace / "ran").exists() and not (tmp_path / "target").exists()


def test_a_log_that_cannot_be_written_ends_the_sandbox(net: Net, rig: Rig) -> None:
    # On a full disk: what happens unseen must not happen.
    got = net.sh("curl -s -m 5 http://b.example/; sleep 30; echo went on", allow=["a.example"], options=["--audit", "/dev/full"])
    assert got.status == 125 and "no regular file" in got.error
    start = time.monotonic()
    # The log is at the limit of a file's size: 2048 blocks of 512 bytes.
    (net.sandy.workspace / "log").write_bytes(b"\n" * (1 << 20))
    limited = f"ulimit -f 2048; exec {net.sandy.program} run --allow-domain a.example --audit log -- sh -c 'getent hosts b.example; sleep 30; echo went on'"
    process = subprocess.run(["sh", "-c", f"trap '' XFSZ; {limited}"], cwd=net.sandy.workspace, env=net.sandy.env | net.env, capture_output=True, timeout=60, check=False)
    assert process.returncode == 125 and b"audit log" in process.stderr and b"went on" not in process.stdout
    assert time.monotonic() - start < 20
