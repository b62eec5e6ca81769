"""The rig of the network's tests, without a sandbox: that real clients work with it, and that what arrives is in its log."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
import socket
import threading

import pytest
from rig import HOSTS, Rig, pattern
from support import Result, host, need

pytest_plugins = ["rig.fixtures"]


def curl(rig: Rig, url: str, words: str = "") -> Result:
    """Curl, which is told where the rig really is."""
    need(shutil.which("curl"), "curl")
    ways = [("http", 80), ("http", 8000), ("https", 443)]
    to = " ".join(f"--connect-to {name}.example:{port}:{HOSTS[name]}:{rig.ports[service]}" for name in "ab" for service, port in ways)
    return host(f"curl -sS --max-time 20 --cacert {rig.ca} {to} {words} {url}")


def test_https_and_http(rig: Rig) -> None:
    assert curl(rig, "http://a.example/ https://b.example/").ok().text == "hello from a\nhello from b\n"
    first, second = rig.connections()
    assert (first.host, first.service, second.host, second.service, second.server_name) == ("a", "http", "b", "https", "b.example")
    assert [request.target for request in rig.requests("b")] == ["/"] and rig.requests("b")[0].all("host") == ["b.example"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_http_upstreams_do(rig: Rig, tmp_path: pathlib.Path, scheme: str) -> None:
    (tmp_path / "body").write_bytes(b"".join(pattern(3 << 20)))
    expected = {"size": 3 << 20, "digest": hashlib.sha256((tmp_path / "body").read_bytes()).hexdigest()}
    base = f"{scheme}://a.example"
    for words in ("-T", "-H 'Transfer-Encoding: chunked' -T", "-H Expect: -T"):
        for path in ("sink", "slow"):
            assert json.loads(curl(rig, f"{base}/{path}", f"{words} {tmp_path}/body").ok().out) == expected
    assert curl(rig, f"{base}/early", f"-o /dev/null -w '%{{http_code}}' -T {tmp_path}/body").text == "413"
    assert curl(rig, f"'{base}/big?size=3145728'").ok().out == (tmp_path / "body").read_bytes()
    assert curl(rig, f"{base}/chunked").ok().text == "one two three\n"
    assert curl(rig, f"{base}/close").ok().text == "until the end\n"
    assert curl(rig, f"'{base}/redirect?to=http://b.example/' ", "-L").ok().text == "hello from b\n"
    assert curl(rig, base, "-I").ok().text.startswith("HTTP/1.1 200")
    rig.put("/one/file", "content")
    assert curl(rig, f"{base}/one/file").ok().text == "content"


def test_the_other_services(rig: Rig) -> None:
    def connect(service: str, address: str = HOSTS["a"]) -> socket.socket:
        return socket.create_connection((address, rig.ports[service]), 5)

    with connect("ssh") as sock:
        assert sock.recv(100) == b"SSH-2.0-rig\r\n"
        sock.sendall(b"x")
        assert sock.recv(100) == b"x"
    with connect("digest") as sock:
        sock.sendall(b"all of it")
        sock.shutdown(socket.SHUT_WR)
        assert sock.makefile().read() == f"9 {hashlib.sha256(b'all of it').hexdigest()}\n"
    with connect("source") as sock:
        sock.sendall(b"200000\n")
        assert sock.makefile("rb").read() == b"".join(pattern(200_000))
    with connect("http") as sock:
        sock.sendall(b"GET /upgrade HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: some\r\n\r\nfirst")
        answer = b""
        while not answer.endswith(b"\r\n\r\nfirst"):
            answer += sock.recv(1000)
        assert answer.startswith(b"HTTP/1.1 101")
    for address in HOSTS.values():
        if address != "::1" or socket.has_ipv6:
            connect("echo", address).close()
    assert {connection.host for connection in rig.connections(service="echo")} >= set(HOSTS) - {"private6"}


def test_nothing_arrived_is_certain(rig: Rig) -> None:
    # However short ago it came, and also if its client said nothing.
    for number in range(1, 51):
        with socket.create_connection((HOSTS["c"], rig.ports["https"])) as sock:
            sock.sendall(b"x" * (number % 2))
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            name, port = rig.dns.address.split(":")
            sock.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\6secret\7example\0\0\x10\0\1", (name, int(port)))
        assert len(rig.connections("c")) == number
        assert len(rig.dns.queries) == number and rig.asked() == {"secret.example"}
    with pytest.raises(AssertionError):
        rig.assert_untouched("c")
    rig.assert_untouched("a", "b", names=["secret.example"])
    rig.forget()
    rig.assert_untouched(names=[])


def test_the_name_server(rig: Rig) -> None:
    need(shutil.which("dig"), "dig")
    address, port = rig.dns.address.split(":")

    def dig(words: str) -> list[str]:
        return host(f"dig @{address} -p {port} +short +tries=1 +time=2 {words}").lines

    rig.dns.set("two.example", "127.77.0.1", "::1", "127.77.0.2")
    rig.dns.set("alias.example", alias="two.example")
    rig.dns.set("*.w.example", "127.77.0.3")
    rig.dns.set("cut.example", "127.77.0.3", truncated=True)
    rig.dns.rounds("turn.example", ["127.77.0.1"], ["127.0.0.1"])
    rig.dns.set("gone.example", rcode=3)
    assert dig("a.example") == ["127.77.0.1"] and dig("-t AAAA a.example") == [] and dig("A.EXAMPLE +tcp") == ["127.77.0.1"]
    assert dig("two.example") == ["127.77.0.1", "127.77.0.2"] and dig("-t AAAA two.example") == ["::1"]
    assert dig("alias.example") == ["two.example.", "127.77.0.1", "127.77.0.2"]
    assert dig("x.y.w.example") == ["127.77.0.3"] and dig("w.example") == [HOSTS["b"]]
    assert [dig("turn.example"), dig("turn.example"), dig("turn.example")] == [["127.77.0.1"], ["127.0.0.1"], ["127.0.0.1"]]
    assert dig("gone.example") == [] and dig("anything.test") == [HOSTS["b"]] and dig("nothing.invalid") == []
    rig.dns.queries.clear()
    assert dig("cut.example") == ["127.77.0.3"]
    assert [query.transport for query in rig.dns.queries] == ["udp", "tcp"]
    rig.dns.set("silent.example", silent=True)
    assert dig("silent.example") != ["127.77.0.2"]


def test_it_ends_clean(rig_certificates: object) -> None:
    before = threading.active_count()
    for _ in range(3):
        with Rig(rig_certificates) as rig:  # type: ignore[arg-type]
            socks = [socket.create_connection((HOSTS["a"], port)) for port in rig.ports.values()]
            rig.settle()
        assert threading.active_count() == before
        assert all(sock.recv(100) in (b"", b"SSH-2.0-rig\r\n") for sock in socks)
        for sock in socks:
            sock.close()
