"""Clients that speak to a proxy: HTTP at 198.18.0.1:3128 and SOCKS5 at 198.18.0.1:1080, and plain HTTP that is judged on its way, request by request. Cases B036, B037,
B041 to B051 and B061 of the group "Network, proxy, DNS".

B051's half minute without a frame is two seconds here, and B061's minute of silence a connection that is held while others are served, as a test is to be short.
"""

from __future__ import annotations

import json
import shutil

import pytest
from rig import Rig
from rig.net import Net
from support import need

pytest_plugins = ["rig.fixtures"]

PROXY = "http://198.18.0.1:3128"


# B036, B037: the verdict is the same whichever way is taken.


def test_b036_unlisted_hosts_are_403_and_not_looked_for(net: Net, rig: Rig) -> None:
    need(shutil.which("curl"), "curl")
    urls = ["https://b.example", "https://nx.invalid", "http://b.example", "http://nx.invalid", "https://a.example", "http://a.example"]
    script = "; ".join(f"curl -sk -o /dev/null -x {PROXY} -w '%{{http_connect}} %{{http_code}}\\n' {url}" for url in urls)
    got = net.sh(script, allow=["a.example"]).lines
    assert got == ["403 000", "403 000", "000 403", "000 403", "200 200", "000 200"]
    rig.assert_untouched("b", "c", names=["a.example"])


VERDICTS = """
def ways(name):
    return {"DNS": ask(name)[0] == "NOERROR", "CONNECT": connect_status(f"{name}:443") == 200, "HTTP": by_proxy(request("GET", f"http://{name}/", host=name)) == 200,
            "SOCKS": socks_name(name) == 0, "TCP": get(name) == 200, "TLS": tls_status(name, name) == 200}
show({name: ways(name) for name in given[0]})
"""


@pytest.mark.parametrize(
    ("allow", "deny", "allowed", "denied"),
    [
        (["a.example"], [], ["a.example"], ["b.example", "x.a.example", "example"]),
        (["*.w.example"], ["x.w.example"], ["y.w.example"], ["x.w.example", "w.example"]),
        (["*.w.example"], ["*.b.w.example"], ["x.w.example", "b.w.example"], ["a.b.w.example"]),
        (["a.example", "*.w.example"], ["127.77.0.2"], ["a.example"], []),
        ([], [], [], ["a.example", "localhost"]),
    ],
)
def test_b037_one_verdict_by_every_way(net: Net, rig: Rig, allow: list[str], deny: list[str], allowed: list[str], denied: list[str]) -> None:
    network = {"mode": "allowlist", "allow": allow, "deny": deny}
    got = net.python(VERDICTS, [*allowed, *denied], network=network).value
    assert {name: set(ways.values()) for name, ways in got.items()} == {name: {name in allowed} for name in [*allowed, *denied]}, got
    assert rig.asked() <= set(allowed)


def test_b037_a_denied_port_is_denied_by_every_way(net: Net, rig: Rig) -> None:
    got = net.python(VERDICTS, ["a.example"], allow=["a.example"], deny=["a.example:443"]).value["a.example"]
    # SOCKS and TCP are asked for port 80.
    assert got == {"DNS": True, "CONNECT": False, "HTTP": True, "SOCKS": True, "TCP": True, "TLS": False}
    assert not rig.connections("a", service="https")


def test_b037_a_denied_address_is_not_dialled(net: Net, rig: Rig) -> None:
    # A denial of addresses counts for what an allowed name leads to.
    got = net.python("show([get('b.example'), get('a.example')])", allow=["a.example", "b.example"], deny=["127.77.0.2"])
    assert got.value[0] != 200 and got.value[1] == 200
    assert [denial for denial in got.denials if denial["target"] == "b.example:80" and "127.77.0.2" in denial["reason"]]
    rig.assert_untouched("b")


@pytest.mark.parametrize(
    ("allow", "deny", "words"),
    [
        (["a.example"], ["*"], ['"*"', "every host"]),
        (["a.example"], ["a.example"], ['"a.example"', "contradicts"]),
        (["a.example", "A.Example."], ["a.EXAMPLE"], ["contradicts"]),
    ],
)
def test_b037_a_contradiction_is_told_at_the_start(net: Net, allow: list[str], deny: list[str], words: list[str]) -> None:
    got = net.run("touch", "ran", allow=allow, deny=deny)
    assert got.status == 125 and all(word in got.error for word in words), got
    assert not (net.sandy.workspace / "ran").exists()


# B041: the target and Host.

HOSTS = {
    "absolute": ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 200),
    "absolute, other letters": ("GET http://A.Example./ HTTP/1.1\r\nHost: a.example:80\r\n\r\n", 200),
    "Host of another": ("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", 400),
    "Host of another allowed one": ("GET http://a.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n", 400),
    "Host with another port": ("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", 400),
    "two Hosts": ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", 400),
    "twice the same Host": ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n", 400),
    "no Host": ("GET http://a.example/ HTTP/1.1\r\n\r\n", 400),
    "an empty Host": ("GET http://a.example/ HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "two in one Host": ("GET http://a.example/ HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n", 400),
    "origin form": ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),  # of a proxy there is nothing to get
    "origin form of another": ("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", 400),
    "user information": ("GET http://user:pw@b.example@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "another as user information": ("GET http://b.example@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "a backslash": ("GET http://a.example\\@b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "a fragment": ("GET http://b.example#@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "another scheme": ("GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "https to be made by the proxy": ("GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "no target": ("GET  HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    "CONNECT with another Host": ("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", 400),
    "HTTP/2's preface": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/0.9": ("GET http://a.example/\r\n\r\n", 400),
}


def test_b041_target_and_host_are_one(net: Net, rig: Rig) -> None:
    script = "show({kind: by_proxy(text.encode()) for kind, text in given[0].items()})"
    got = net.python(script, {kind: text for kind, (text, _) in HOSTS.items()}, allow=["a.example", "c.example"]).value
    assert got == {kind: status for kind, (_, status) in HOSTS.items()}
    assert [request.all("host") for request in rig.requests("a")] in ([["a.example"], ["a.example:80"]], [["a.example"]] * 2)
    rig.assert_untouched("b", "c", names=["a.example"])


def test_b041_on_the_way_each_request_is_judged(net: Net, rig: Rig) -> None:
    # The same without a proxy: the connection was made for a.example.
    bodies = {
        "its own": "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "its own port": "GET / HTTP/1.1\r\nHost: A.EXAMPLE:80\r\n\r\n",
        "another": "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", "another allowed one": "GET / HTTP/1.1\r\nHost: c.example\r\n\r\n",
        "two": "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "none": "GET / HTTP/1.1\r\n\r\n",
        "absolute": "GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "absolute against Host": "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT": "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n",
    }
    script = "show({kind: outcome(lambda: http('a.example', 80, text.encode())[0]) for kind, text in given[0].items()})"
    got = net.python(script, bodies, allow=["a.example", "c.example"])
    assert {kind for kind, status in got.value.items() if status == 200} == {"its own", "its own port"}, got.value
    assert {status for kind, status in got.value.items() if status != 200} <= {400, 403, 421, 0, "reset"}
    assert [request.all("host")[0].lower() for request in rig.requests("a")] in (["a.example", "a.example:80"], ["a.example"] * 2)
    rig.assert_untouched("b", "c", names=["a.example"])
    assert got.denials


PIPELINED = """
good, bad = request("GET", "/", host="a.example"), request("GET", "/second", host="b.example")
def statuses(sock, data):
    sock.sendall(data)
    sock.settimeout(1)
    client, out = Http(sock), []
    while len(out) < 5:
        status = outcome(lambda: client.answer()[0])
        if status == "timeout":
            break
        out.append(status)
        if not isinstance(status, int) or not status:
            break
    return out
absolute = good.replace(b" / ", b" http://a.example/ "), bad.replace(b" /second ", b" http://b.example/second ")
body = request("POST", "/echo", f"Content-Length: {len(bad)}", host="a.example") + bad
with dial("a.example", 80) as one, dial(*PROXY) as two, tunnel("a.example:80") as three, dial("a.example", 80) as four:
    show([statuses(one, good + bad + good), statuses(two, absolute[0] + absolute[1] + absolute[0]), statuses(three, good + bad + good), statuses(four, body + good + bad)])
"""


def test_b041_pipelined_requests_are_judged_too(net: Net, rig: Rig) -> None:
    direct, proxy, tunnel, in_body = net.python(PIPELINED, allow=["a.example"]).value
    assert direct[0] == proxy[0] == tunnel[0] == 200 and in_body[:2] == [200, 200] and min(map(len, (direct, proxy, tunnel))) > 1
    # Behind a refusal nothing of this connection is believed; a proxy's client may go on.
    assert all(status in (400, 403, 421, 0, "reset") for status in direct[1:] + tunnel[1:] + in_body[2:])
    assert proxy[1] == 403 and set(proxy[2:]) <= {200, 0, "reset"}
    assert {request.all("host")[0] for request in rig.requests("a")} == {"a.example"}
    assert not any("/second" in request.target for request in rig.requests("a"))
    rig.assert_untouched("b", names=["a.example"])


# B043: one connection, several origins.


def test_b043_answers_come_from_whom_they_were_asked_of(net: Net, rig: Rig) -> None:
    script = """
with dial(*PROXY) as sock:
    client, out = Http(sock), []
    for host, path in (("a", "/"), ("c", "/"), ("a", "/chunked"), ("a", "/extra"), ("c", "/"), ("a", "/"), ("c", "/extra"), ("a", "/")):
        status, headers, body = client.ask(request("GET", f"http://{host}.example{path}", host=f"{host}.example"))
        out.append([status, headers.get("x-rig"), body])
show(out)
"""
    got = net.python(script, allow=["a.example", "c.example"]).value
    plain = {host: [200, host, f"hello from {host}\n"] for host in "ac"}
    assert got == [plain["a"], plain["c"], [200, "a", "one two three\n"], [200, "a", "first\n"], plain["c"], plain["a"], [200, "c", "first\n"], plain["a"]]
    assert all(host == request.all("host")[0][0] for host in "ac" for request in rig.requests(host))


def test_b043_an_answer_that_nobody_asked_for_is_no_answer_to_the_next(net: Net) -> None:
    script = """
with dial("a.example", 80) as sock:
    client = Http(sock)
    first = client.ask(request("GET", "/extra", host="a.example"))
    time.sleep(0.3)
    second = outcome(lambda: client.ask(request("GET", "/", host="a.example")))
with dial(*PROXY) as sock:
    client = Http(sock)
    third = client.ask(request("GET", "http://a.example/extra", host="a.example"))
    time.sleep(0.3)
    fourth = outcome(lambda: client.ask(request("GET", "http://a.example/", host="a.example")))
show([first[2], second if isinstance(second, str) else second[2], third[2], fourth if isinstance(fourth, str) else fourth[2]])
"""
    first, second, third, fourth = net.python(script, allow=["a.example"]).value
    assert first == third == "first\n"
    # A connection of one origin may be handed through as it is; of a proxy's, whose next request may be another origin's, not a byte.
    assert second in ("hello from a\n", "STRAY\n", "", "reset") and fourth in ("hello from a\n", "", "reset")


# B044: where a body ends.

POST = "POST {} HTTP/1.1\r\nHost: a.example\r\n"
FRAMINGS = {
    "a length": "Content-Length: 4\r\n\r\nbody",
    "chunks": "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "both": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, the other way round": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody!",
    "twice the same length": "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
    "a list of lengths": "Content-Length: 4, 4\r\n\r\nbody",
    "chunked with a tab": "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
    "chunked with something behind": "Transfer-Encoding: chunked\tx\r\n\r\n0\r\n\r\n",
    "a space before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a vertical tab": "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "identity": "Transfer-Encoding: identity\r\n\r\n",
    "gzip, chunked": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, identity": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "xchunked": "Transfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\nbody",
    "line feeds alone": "Content-Length: 4\nX: y\r\n\r\nbody",
    "a head of line feeds": "Content-Length: 4\n\nbody",
    "a carriage return alone": "X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": "Content-Length: -4\r\n\r\nbody",
    "a length with a sign": "Content-Length: +4\r\n\r\nbody",
    "a length in hexadecimal": "Content-Length: 0x4\r\n\r\nbody",
    "a length of 30 digits": "Content-Length: 100000000000000000000000000004\r\n\r\nbody",
    "an empty length": "Content-Length:\r\n\r\n",
    "a folded header": "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nbody",
    "a header that starts folded": " X: a\r\nContent-Length: 4\r\n\r\nbody",
    "a NUL in a header": "X: a\0b\r\nContent-Length: 4\r\n\r\nbody",
    "a NUL in a name": "X\0: a\r\nContent-Length: 4\r\n\r\nbody",
    "a header without a colon": "Transfer-Encoding\r\nContent-Length: 4\r\n\r\nbody",
    "a header without a name": ": x\r\nContent-Length: 4\r\n\r\nbody",
}
ALLOWED_FRAMINGS = {"a length", "chunks"}
EITHER_WAY = {"twice the same length", "chunked with a tab"}  # RFC 9112: may be taken as one; white space behind a value is none of it


@pytest.mark.parametrize("way", ["proxy", "direct", "tunnel"])
def test_b044_ambiguous_bodies_are_refused_and_not_forwarded(net: Net, rig: Rig, way: str) -> None:
    script = """
def ambiguous(text):
    with (dial(*PROXY) if given[1] == "proxy" else dial("a.example", 80) if given[1] == "direct" else tunnel("a.example:80")) as sock:
        client = Http(sock)
        status = client.ask(text.encode("latin-1"))[0]
        after = outcome(lambda: client.ask(request("GET", "http://a.example/after" if given[1] == "proxy" else "/after", host="a.example"))[0])
        return [status, after]
show({kind: outcome(ambiguous, text) for kind, text in given[0].items()})
"""
    post = POST.format("http://a.example/echo" if way == "proxy" else "/echo")
    got = net.python(script, {kind: post + text for kind, text in FRAMINGS.items()}, way, allow=["a.example"]).value
    wrong = {}
    for kind, result in got.items():
        status, after = result if isinstance(result, list) else (result, 0)
        good, bad = (status, after) == (200, 404), status in (400, *((0, "reset") if way != "proxy" else ())) and after in (0, "reset")
        if not (good if kind in ALLOWED_FRAMINGS else good or bad if kind in EITHER_WAY else bad):
            wrong[kind] = result
    assert wrong == {}
    taken = [request for request in rig.requests("a") if request.target != "/after"]
    assert len(taken) <= len(ALLOWED_FRAMINGS | EITHER_WAY) and all(request.target == "/echo" for request in taken)


CHUNKS = {
    "no number": "x\r\nbody\r\n0\r\n\r\n", "a sign": "+4\r\nbody\r\n0\r\n\r\n", "a prefix": "0x4\r\nbody\r\n0\r\n\r\n", "a space": " 4\r\nbody\r\n0\r\n\r\n",
    "20 digits": "10000000000000000004\r\nbody\r\n0\r\n\r\n", "line feeds": "4\nbody\n0\n\n", "more than its size": "4\r\nbody!\r\n0\r\n\r\n",
    "a line feed in an extension": "4;a\nb\r\nbody\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("way", ["proxy", "direct"])
def test_b044_chunks_that_servers_read_differently_go_no_further(net: Net, rig: Rig, way: str) -> None:
    # What follows would be a request of its own to one of the two, and here names a host that is not allowed.
    script = """
def once(chunks):
    by_proxy = given[1] == "proxy"
    with (dial(*PROXY) if by_proxy else dial("a.example", 80)) as sock:
        sock.sendall(request("POST", "http://a.example/sink" if by_proxy else "/sink", "Transfer-Encoding: chunked", host="a.example"))
        sock.sendall(chunks.encode() + request("GET", "/smuggled", host="b.example"))
        return Http(sock).answer()[0]
show({kind: outcome(once, chunks) for kind, chunks in given[0].items()})
"""
    got = net.python(script, CHUNKS, way, allow=["a.example"]).value
    assert {kind: status for kind, status in got.items() if status not in (400, 502, 0, "reset")} == {}
    rig.assert_untouched("b")
    assert not any("smuggled" in request.target or "b.example" in request.all("host") for request in rig.requests())


# B047: ports.

CONNECTS = {
    "a.example:443": 200, "a.example:80": 200, "A.EXAMPLE.:443": 200, "a.example:22": 403, "a.example:25": 403, "a.example:65535": 403, "c.example:22": 200, "c.example:443": 403,
    "a.example:0": 400, "a.example:65536": 400, "a.example:443x": 400, "a.example": 400, "a.example:": 400, "a.example:443:80": 400, "a.example:-1": 400, "a.example:+443": 400,
    "a.example:0x1bb": 400, "a.example:4294967739": 400, "a.example:443/": 400, "http://a.example:443": 400, ":443": 400, "*:443": 400, "a.example: 443": 400, "[a.example]:443": 400,
    "user@a.example:443": 400, "a..example:443": 400, "a%2eexample:443": 400, "a.example\0.b.example:443": 400,
}


def test_b047_the_port_is_part_of_the_verdict(net: Net, rig: Rig) -> None:
    script = "show({target: connect_status(target) for target in given[0]})"
    assert net.python(script, list(CONNECTS), allow=["a.example", "c.example:22"]).value == CONNECTS
    assert {(one.host, one.service) for one in rig.connections()} == {("a", "https"), ("a", "http"), ("c", "ssh")}
    assert rig.asked() == {"a.example", "c.example"}


def test_b047_a_refused_client_is_told_why(net: Net) -> None:
    script = "show([http(*PROXY, request('CONNECT', place, host=place), 'CONNECT')[1] for place in ('b.example:443', 'a.example:25')])"
    host, port = net.python(script, allow=["a.example"]).value
    assert "b.example:443" in host and "not in the allowlist" in host and "allow" in host
    assert "a.example:25" in port and "port" in port


# B048: SOCKS.

SOCKS = {
    # name: (request, reply). 2: not allowed; 7: the command, 8: the address's type is not supported; -1: the connection ends.
    "a name": ("socks_request(3, b'a.example', 80)", {0}),
    "a name in other letters": ("socks_request(3, b'A.Example.', 80)", {0}),
    "an unlisted name": ("socks_request(3, b'b.example', 80)", {2}),
    "a port": ("socks_request(3, b'a.example', 25)", {2}),
    "port 0": ("socks_request(3, b'a.example', 0)", {1, 2, -1}),
    "an IPv4 address": ("socks_request(1, socket.inet_aton('127.77.0.1'), 80)", {2}),
    "an IPv4 address that is allowed": ("socks_request(1, socket.inet_aton('127.77.0.3'), 80)", {0}),
    "loopback": ("socks_request(1, socket.inet_aton('127.0.0.1'), 80)", {2}),
    "an IPv6 address": ("socks_request(4, socket.inet_pton(socket.AF_INET6, '::1'), 80)", {2}),
    "a mapped address": ("socks_request(4, socket.inet_pton(socket.AF_INET6, '::ffff:127.77.0.1'), 80)", {2}),
    "an address as a name": ("socks_request(3, b'127.0.0.1', 80)", {2}),
    "an allowed address as a name": ("socks_request(3, b'127.77.0.3', 80)", {0}),
    "an IPv6 address as a name": ("socks_request(3, b'::1', 80)", {1, 2}),
    "an address in brackets": ("socks_request(3, b'[::1]', 80)", {1, 2}),
    "an address as one number": ("socks_request(3, b'2130706433', 80)", {1, 2}),
    "an address in octal": ("socks_request(3, b'0177.0.0.1', 80)", {1, 2}),
    "a short address": ("socks_request(3, b'127.1', 80)", {1, 2}),
    "a name with a port": ("socks_request(3, b'a.example:443', 80)", {1, 2}),
    "an empty name": ("socks_request(3, b'', 80)", {1, 2, -1}),
    "a name of 255": ("socks_request(3, (b'x' * 49 + b'.') * 5 + b'abcde', 80)", {1, 2}),
    "BIND": ("socks_request(3, b'a.example', 80, command=2)", {7}),
    "UDP ASSOCIATE": ("socks_request(1, bytes(4), 0, command=3)", {7}),
    "an unknown command": ("socks_request(3, b'a.example', 80, command=9)", {7}),
    "an unknown type": ("b'\\5\\1\\0\\2' + bytes(20)", {8}),
    "a reserved byte that is set": ("b'\\5\\1\\1' + socks_request(3, b'a.example', 80)[3:]", {1, -1}),
    "another version": ("b'\\4' + socks_request(3, b'a.example', 80)[1:]", {1, -1}),
}


def test_b048_socks_takes_names_and_refuses_what_dodges_them(net: Net, rig: Rig) -> None:
    script = "show({name: timed(socks_reply, eval(text)) for name, text in given[0].items()})"
    got = net.python(script, {name: text for name, (text, _) in SOCKS.items()}, allow=["a.example"], private=["127.77.0.3:80"]).value
    assert {name: reply for name, (reply, _) in got.items() if (-1 if reply == "reset" else reply) not in SOCKS[name][1]} == {}
    assert {name: seconds for name, (_, seconds) in got.items() if seconds > 1} == {}
    assert sorted(one.host for one in rig.connections()) == ["a", "a", "c", "c"]
    assert rig.asked() == {"a.example"}


GREETINGS = {
    "no method": "b'\\5\\0'", "a password alone": "b'\\5\\1\\2'", "many without ours": "b'\\5\\xff' + bytes(range(1, 256))", "SOCKS4": "b'\\4\\1\\0\\x50\\x7f\\x4d\\0\\1\\0'",
    "SOCKS4a": "b'\\4\\1\\0\\x50\\0\\0\\0\\1\\0a.example\\0'", "HTTP": "request('GET', 'http://a.example/', host='a.example')", "TLS": "b'\\x16\\3\\1\\2\\0\\1'",
}


def test_b048_other_greetings_are_refused_and_not_waited_for(net: Net, rig: Rig) -> None:
    script = "show({name: timed(lambda: talk(*SOCKS, eval(text), timeout=5)) for name, text in given[0].items()})"
    got = net.python(script, GREETINGS, allow=["a.example"]).value
    assert {name: answer for name, (answer, _) in got.items() if answer not in ("", "\x05\xff", "reset")} == {}
    assert {name: seconds for name, (_, seconds) in got.items() if seconds > 1} == {}
    rig.assert_untouched(names=[])


def test_b048_socks_in_any_pieces(net: Net, rig: Rig) -> None:
    script = """
data = b"\\5\\2\\0\\2" + socks_request(3, b"a.example", 7)
def slowly(step):
    with dial(*SOCKS) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            sock.sendall(data[at:at + step])
            time.sleep(0.01)
        sock.sendall(b"hello")
        return received(sock, end=b"hello").hex()
show([slowly(1), slowly(4), slowly(1000)])
"""
    assert net.python(script, allow=["a.example:7"]).value == ["0500" + "05000001" + "00" * 6 + b"hello".hex()] * 3


def test_b048_a_client_that_resolves_first_is_understood(net: Net, rig: Rig) -> None:
    # The address that the sandbox's own resolver gave stands for the name, and for its verdict.
    script = """
address = ask("a.example")[1][0]
address6 = ask("a.example", "AAAA")[1][0]
v4, v6 = socket.inet_aton(address), socket.inet_pton(socket.AF_INET6, address6)
unused = [socks_reply(socks_request(1, socket.inet_aton(text), 80)) for text in ("198.19.200.200", "198.18.0.1", "198.18.0.2")]
show([socks_reply(socks_request(1, v4, 80)), socks_reply(socks_request(4, v6, 80)), socks_reply(socks_request(1, v4, 25)), unused])
"""
    assert net.python(script, allow=["a.example"]).value == [0, 0, 2, [2, 2, 2]]
    assert len(rig.connections("a")) == 2


# B050, B051: what comes behind the handshake.


def test_b050_a_payload_in_the_same_packet_arrives_once(net: Net, rig: Rig) -> None:
    script = """
def once(place, head, answer):
    with dial(*place) as sock:
        sock.sendall(head + b"HELLO")
        got = received(sock, end=b"HELLO")
        sock.shutdown(socket.SHUT_WR)
        return [got.startswith(answer), (got + received(sock)).count(b"HELLO"), got.endswith(b"HELLO")]
show([once(PROXY, request("CONNECT", "a.example:7", host="a.example:7"), b"HTTP/1.1 200"), once(SOCKS, b"\\5\\1\\0" + socks_request(3, b"a.example", 7), b"\\5\\0\\5\\0")])
"""
    assert net.python(script, allow=["a.example:7"]).value == [[True, 1, True]] * 2
    assert [bytes(one.received) for one in rig.connections("a")] == [b"HELLO"] * 2


def test_b050_halves_end_one_by_one(net: Net) -> None:
    script = """
import hashlib
def halves(sock):
    with sock:
        sock.sendall(b"x" * 100_000)
        sock.shutdown(socket.SHUT_WR)
        return received(sock).decode()
show([halves(tunnel("a.example:9")), halves(socks(socks_request(3, b"a.example", 9))[1]), f"100000 {hashlib.sha256(b'x' * 100_000).hexdigest()}\\n"])
"""
    tunnelled, socks, expected = net.python(script, allow=["a.example:9"]).value
    assert tunnelled == socks == expected


@pytest.mark.parametrize("way", ["direct", "proxy", "tunnel"])
@pytest.mark.parametrize("padding", [600, 5_000, 40_000, 80_000])
def test_b051_frames_pass_after_101(net: Net, rig: Rig, way: str, padding: int) -> None:
    script = """
way, padding = given
target = "http://a.example/upgrade" if way == "proxy" else "/upgrade"
pads = [f"X-Pad-{at}: {'x' * 1000}" for at in range(padding // 1000)] + [f"X-Pad: {'x' * (padding % 1000)}"]
with (dial(*PROXY) if way == "proxy" else dial("a.example", 80) if way == "direct" else tunnel("a.example:80")) as sock:
    client = Http(sock)
    def asked():
        return client.ask(request("GET", target, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *pads, host="a.example"))
    answer = outcome(asked)
    echoed = []
    if answer[0] == 101:
        for number in range(10):
            if number == 5:
                time.sleep(2 if padding == 600 else 0.1)
            frame = b"\\x82\\x7e\\x04\\x00" + bytes([number]) * 1024
            sock.sendall(frame)
            echoed.append(client.stream.read(len(frame)) == frame)
show([answer if isinstance(answer, str) else [answer[0], answer[1].get("sec-websocket-accept")], echoed])
"""
    answer, echoed = net.python(script, way, padding, allow=["a.example"]).value
    if padding > 65_536:
        assert answer[0] == 431 or (way != "proxy" and (answer in ("reset",) or answer[0] == 0))
        assert not rig.requests("a")
    else:
        assert answer == [101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="] and echoed == [True] * 10


def test_b051_an_upgrade_that_is_not_granted_changes_nothing(net: Net, rig: Rig) -> None:
    # The server goes on with HTTP, and so does the judging.
    script = """
def after(sock, target, other):
    with sock:
        client = Http(sock)
        first = client.ask(request("GET", target, "Connection: Upgrade", "Upgrade: websocket", host="a.example"))[0]
        return [first, outcome(lambda: client.ask(request("GET", other, host="b.example"))[0])]
show([after(dial("a.example", 80), "/", "/x"), after(tunnel("a.example:80"), "/", "/x"), after(dial(*PROXY), "http://a.example/", "http://b.example/x")])
"""
    got = net.python(script, allow=["a.example"]).value
    assert [first for first, _ in got] == [200] * 3 and all(second in (400, 403, 421, 0, "reset") for _, second in got)
    rig.assert_untouched("b", names=["a.example"])
    assert not any(request.target == "/x" for request in rig.requests("a"))


# B061: slow, large and many heads.


def test_b061_a_slow_head_is_read_or_timed_out(net: Net) -> None:
    script = """
def slowly(place, data, ends):
    with dial(*place, 15) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            sock.sendall(bytes([byte]))
            time.sleep(0.02)
        return received(sock, 15, ends)[:12].decode("latin-1")
show([outcome(slowly, PROXY, request("CONNECT", "a.example:443", host="a.example:443"), b"\\r\\n\\r\\n"),
      outcome(slowly, ("a.example", 80), request("GET", "/", host="a.example"), b"hello from a")])
"""
    tunnelled, direct = net.python(script, allow=["a.example"]).value
    assert tunnelled in ("HTTP/1.1 200", "HTTP/1.1 408") and direct in ("HTTP/1.1 200", "HTTP/1.1 408")


def test_b061_a_large_head_is_refused(net: Net, rig: Rig) -> None:
    script = """
big = "x" * 1_000_000
def large(place, data):
    with dial(*place) as sock:
        def send():
            sock.sendall(data)
            return Http(sock).answer()[0]
        result = outcome(send)
        # Refused before all of it was sent.
        return outcome(lambda: Http(sock).answer()[0]) if result == "reset" else result
heads = [request("GET", "http://a.example/", f"X: {big}", host="a.example"), request("CONNECT", "a.example:443", f"X: {big}", host="a.example:443"),
         request("GET", f"http://a.example/{big}", host="a.example"), request("GET", "http://a.example/", *["X: y"] * 5000, host="a.example"), b"x" * 1_000_000]
show([[large(PROXY, head) for head in heads], large(("a.example", 80), request("GET", "/", f"X: {big}", host="a.example")), by_proxy(request("GET", "http://a.example/", host="a.example"))])
"""
    by_proxy, direct, after = net.python(script, allow=["a.example"]).value
    assert set(by_proxy[:3]) <= {431, 414, "reset", 0} and set(by_proxy[3:]) <= {431, 400, "reset", 0} and direct in (431, 400, "reset", 0)
    assert 431 in by_proxy and after == 200
    assert len(rig.requests("a")) == 1


def test_b061_five_hundred_idle_clients_hold_nobody_up(net: Net) -> None:
    script = """
idle = []
for number in range(500):
    sock = dial(*(PROXY, SOCKS, ("a.example", 80), ("a.example", 443), RESOLVER)[number % 5])
    sock.sendall((b"CONN", b"\\5", b"GE", b"\\x16\\3", b"\\0")[number % 5][: number % 3 * 4])
    idle.append(sock)
show([timed(by_proxy, request("GET", "http://a.example/", "Connection: close", host="a.example")), timed(get, "a.example"), timed(socks_name, "a.example"), timed(ask, "a.example")])
"""
    got = net.python(script, allow=["a.example"]).value
    assert [result for result, _ in got[:3]] == [200, 200, 0] and got[3][0][0] == "NOERROR"
    assert all(seconds < 1 for _, seconds in got)


def test_clients_in_use_work_with_either_proxy(net: Net) -> None:
    need(shutil.which("curl"), "curl")
    script = """
import urllib.request, ssl
def by_urllib(url):
    handlers = [urllib.request.ProxyHandler({"http": "http://198.18.0.1:3128", "https": "http://198.18.0.1:3128"}), urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile="ca.pem"))]
    return urllib.request.build_opener(*handlers).open(url, timeout=5).read().decode()
show([by_urllib("http://a.example/"), by_urllib("https://a.example/")])
"""
    assert net.python(script, allow=["a.example"]).value == ["hello from a\n"] * 2
    flags = [f"-x {PROXY}", f"-p -x {PROXY}", "--socks5-hostname 198.18.0.1:1080", "--socks5 198.18.0.1:1080", "-x socks5h://198.18.0.1:1080"]
    script = "; ".join(f"curl -sS -m 5 --cacert ca.pem {words} {scheme}://a.example/" for words in flags for scheme in ("http", "https"))
    assert net.sh(script, allow=["a.example"]).ok().lines == ["hello from a"] * 10


def test_redirects_to_unlisted_hosts_end_there(net: Net, rig: Rig) -> None:
    need(shutil.which("curl"), "curl")
    command = "curl -sS -L -m 5 -o /dev/null -w '%{http_code} %{num_redirects}\\n' {} 'http://a.example/redirect?to=http://b.example/'"
    got = net.sh("; ".join(command.replace("{}", words) for words in ("", f"-x {PROXY}")), allow=["a.example"])
    assert got.lines in (["302 0", "403 1"], ["302 1", "403 1"], ["000 1", "403 1"]), got
    rig.assert_untouched("b", names=["a.example"])
    assert json.dumps(got.document).count("b.example") >= 2
