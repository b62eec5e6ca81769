"""Names in a sandbox, and how the proxy finds where an allowed one leads: cases B056 to B058 of the group "Network, proxy, DNS".

What nobody may be asked for is looked for in the log of the rig's name server, which knows an answer to every name.

B056: a rule for a name is for that name alone. Names below it need a rule of their own (`*.name`), so `secret.a.example` exists no more than others.
"""

from __future__ import annotations

import ast
import json
import pathlib
import shutil
import socket
import subprocess

import pytest
from rig import HOSTS, Rig
from rig.net import Net, Outcome
from rig.rig import NOBODY
from support import Cli, Result, host, need

pytest_plugins = ["rig.fixtures"]

ALLOW = ["a.example", "*.w.example", "c.example:7"]


# What a name is inside.


def test_an_allowed_name_has_addresses_that_are_its_own_and_stay(net: Net, rig: Rig) -> None:
    script = """
import ipaddress
names = ["a.example", "c.example", "x.w.example", "deep.x.w.example"]
first = {name: [ask(name)[1], ask(name, "AAAA")[1]] for name in names}
again = {name: [ask(name, over=tcp)[1], ask(name, "AAAA", edns=1232)[1]] for name in names}
spelled = [ask(name)[1] for name in ("A.Example", "a.example.", "a.EXAMPLE")]
show([first, again, spelled])
"""
    first, again, spelled = net.python(script, allow=ALLOW).value
    assert first == again and spelled == [first["a.example"][0]] * 3
    flat = [address for pair in first.values() for addresses in pair for address in addresses]
    assert len(flat) == len(set(flat)) == 8
    for v4, v6 in first.values():
        assert [socket.inet_aton(address)[:2] in (b"\xc6\x12", b"\xc6\x13") and not address.startswith("198.18.0.") for address in v4] == [True]
        assert [address.startswith("fd53:616e:6479::") for address in v6] == [True]
    rig.assert_untouched(names=[])


def test_a_thousand_names_have_a_thousand_addresses(net: Net, rig: Rig) -> None:
    script = """
import socket
sock = socket.socket(type=socket.SOCK_DGRAM); sock.settimeout(3); sock.connect(RESOLVER)
found = set()
for number in range(1000):
    sock.send(query(f"n{number}.w.example"))
    found.update(decode(sock.recv(1000))["answers"])
show(len(found))
"""
    assert net.python(script, allow=ALLOW).value == 1000
    rig.assert_untouched(names=[])


def test_an_address_gives_its_name_back(net: Net) -> None:
    script = """
def reverse(address):
    if ":" in address:
        digits = "".join(f"{byte:02x}" for byte in socket.inet_pton(socket.AF_INET6, address))
        return ".".join(reversed(digits)) + ".ip6.arpa"
    return ".".join(reversed(address.split("."))) + ".in-addr.arpa"
known = [ask("x.w.example")[1][0], ask("x.w.example", "AAAA")[1][0]]
show([[ask(reverse(address), "PTR") for address in [*known, "198.19.255.1", "192.0.2.1", "127.77.0.1", "2001:db8::1"]], socket.gethostbyaddr(known[0])[0]])
"""
    found, by_system = net.python(script, allow=ALLOW).value
    assert found[:2] == [["NOERROR", ["x.w.example"]]] * 2 and by_system == "x.w.example"
    assert [code for code, _ in found[2:]] == ["NXDOMAIN"] * 4


@pytest.mark.parametrize("kind", ["TXT", "MX", "NS", "SOA", "NULL", "SRV", "CNAME", "HTTPS", "SVCB", 257, 65_280])
def test_other_types_of_an_allowed_name_are_empty_and_not_of_an_unlisted_one(net: Net, rig: Rig, kind: object) -> None:
    # NOERROR, as a browser's question for HTTPS must not make the name one that does not exist.
    script = "show([ask(name, given[0], over=over) for name in ('a.example', 'b.example') for over in (udp, tcp)])"
    assert net.python(script, kind, allow=ALLOW).value == [["NOERROR", []]] * 2 + [["NXDOMAIN", []]] * 2
    rig.assert_untouched(names=[])


# B056: what is not listed.

NOT_LISTED = ["b.example", "secret.b.example", "secret.a.example", "w.example", "xw.example", "example", "com", "nx.invalid", "x" * 63 + ".b.example", "_dmarc.b.example"]


@pytest.mark.parametrize("over", ["udp", "tcp"])
def test_b056_unlisted_names_do_not_exist_and_nobody_is_asked(net: Net, rig: Rig, over: str) -> None:
    script = f"show([[name, kind, ask(name, kind, over={over}, edns=edns)] for name in given[0] for kind in ('A', 'AAAA', 'TXT', 'NULL') for edns in (None, 4096)])"
    got = net.python(script, NOT_LISTED, allow=ALLOW).value
    assert [row for row in got if row[2] != ["NXDOMAIN", []]] == []
    rig.assert_untouched(names=[])


def test_b056_a_refusal_takes_less_than_5_ms(net: Net) -> None:
    script = "import statistics\nshow([statistics.median(timed(ask, f'n{n}.{name}')[1] for n in range(101)) for name in ('b.example', 'w.example')])"
    unlisted, listed = net.python(script, allow=ALLOW).value
    assert unlisted < 0.005 and listed < 0.005


CLIENTS = {
    "dig": "dig +short +tries=1 +time=3 {}",
    "dig +tcp": "dig +tcp +short +tries=1 +time=3 {}",
    "dig @9.9.9.9": "dig @9.9.9.9 +short +tries=1 +time=3 {}",
    "nslookup": "nslookup -timeout=3 -retry=1 {} | grep -v '#53' | grep Address",
    "getent ahosts": "getent ahosts {}",
    "getent ahostsv6": "getent ahostsv6 {}",
    "python": "python3 -c 'import socket; print(socket.getaddrinfo(\"{}\", 80))'",
    "node lookup": "node -e 'require(\"dns\").promises.lookup(\"{}\").then(a => console.log(a.address))'",
    "node resolve": "node -e 'require(\"dns\").promises.resolve4(\"{}\").then(a => console.log(a[0]))'",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_b056_resolvers_in_use_find_listed_names_alone(net: Net, rig: Rig, client: str) -> None:
    need(shutil.which(client.split()[0].replace("python", "python3")), client)
    script = "; ".join(f"echo {name}; {CLIENTS[client].format(name)} 2>/dev/null" for name in ("a.example", "b.example", "$(id -un).secret.b.example"))
    got = net.sh(f"{script}; true", allow=ALLOW).ok().text
    first, _, rest = got.partition("b.example\n")
    assert "198.18." in first or "fd53:616e:6479::" in first, got
    assert "198.1" not in rest and "fd53" not in rest, got
    rig.assert_untouched(names=[])


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS --max-time 5 http://secret.b.example/", "curl -sS --max-time 5 -x http://198.18.0.1:3128 http://secret.b.example/",
        "curl -sS --max-time 5 -p -x http://198.18.0.1:3128 http://secret.b.example/", "curl -sS --max-time 5 --socks5-hostname 198.18.0.1:1080 http://secret.b.example/",
        "curl -sS --max-time 5 --socks5 198.18.0.1:1080 http://secret.b.example/", "curl -sS --max-time 5 https://secret.b.example/",
    ],
)
def test_b056_no_client_makes_the_proxy_ask_for_a_denied_name(net: Net, rig: Rig, command: str) -> None:
    need(shutil.which("curl"), "curl")
    got = net.sh(f"{command}; {command.replace('secret.b', 'a')} -o /dev/null -k -w '%{{http_code}}'", allow=ALLOW)
    assert "hello" not in got.text and got.text.endswith("200"), got
    rig.assert_untouched("b", "c", names=["a.example"])
    assert rig.requests("a")


@pytest.mark.parametrize("server", ["9.9.9.9", "192.0.2.53", "198.18.0.77", "10.0.0.53", "2001:db8::53"])
def test_b056_every_other_name_server_is_this_one(net: Net, rig: Rig, server: str) -> None:
    # Programs with a name server of their own get the same answers.
    script = "show([ask(name, server=(given[0], 53)) for name in ('a.example', 'b.example')] + [ask('a.example')])"
    listed, unlisted, own = net.python(script, server, allow=ALLOW).value
    assert (listed, unlisted) == (own, ["NXDOMAIN", []]) and own[0] == "NOERROR"
    rig.assert_untouched(names=[])


# What else a name server meets.


def test_the_question_comes_back_to_the_letter(net: Net) -> None:
    # Resolvers choose the case at random, and take no answer with another one (0x20).
    script = "show([decode(udp(query(name, number=4711)))['question'].hex() for name in given[0]] + [decode(udp(query('a.example', number=12345)))['id']])"
    names = ["a.EXAmple", "A.example", "nX.InVaLiD"]
    wire = [b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")).hex() + "00" for name in names]
    assert net.python(script, names, allow=ALLOW).value == [*wire, 12_345]


def test_edns(net: Net) -> None:
    script = "show([[answer['code'], answer['options']] for answer in (decode(udp(query('a.example', **more))) for more in ({}, {'edns': 1232}, {'edns': 0}, {'edns': 1232, 'version': 1}))])"
    assert net.python(script, allow=ALLOW).value == [["NOERROR", 0], ["NOERROR", 1], ["NOERROR", 1], ["BADVERS", 1]]


MALFORMED = {
    "nothing": "b''",
    "one byte": "b'x'",
    "half a header": "query('a.example')[:7]",
    "no question": "query('a.example')[:12]",
    "a question cut off": "query('a.example')[:-3]",
    "two questions": "bytes(b if at != 5 else 2 for at, b in enumerate(query('a.example')))",
    "an answer": "bytes(b if at != 2 else 0x81 for at, b in enumerate(query('a.example')))",
    "an update": "bytes(b if at != 2 else 0x28 for at, b in enumerate(query('a.example')))",
    "a pointer to itself": "query(b'\\xc0\\x0c')",
    "a pointer loop": "query(b'\\x01a\\xc0\\x0c')",
    "a label of 64": "query(b'\\x40' + b'a' * 64 + b'\\0')",
    "a name of 300": "query(b'\\x3b' + b'a' * 59 + (b'\\x3b' + b'a' * 59) * 4 + b'\\0')",
    "bytes behind it": "query('a.example') + b'more'",
    "oversize": "query('a.example') + b'x' * 60_000",
    "noise": "bytes(range(256)) * 4",
}


@pytest.mark.parametrize("over", ["udp", "tcp"])
def test_malformed_messages_are_refused_and_the_next_is_answered(net: Net, rig: Rig, over: str) -> None:
    script = f"""
def judged(data):
    answer = {over}(data, timeout=0.2)
    return decode(answer)["code"] if len(answer) >= 12 else "none"
show({{name: [outcome(judged, eval(text)), ask("a.example", over={over})[0]] for name, text in given[0].items()}})
"""
    got = net.python(script, MALFORMED, allow=ALLOW).value
    for name, (code, after) in got.items():
        assert code in ("none", "timeout", "reset", "FORMERR", "NOTIMP", "NXDOMAIN", "REFUSED"), name
        assert after == "NOERROR", name
    rig.assert_untouched(names=[])


def test_names_that_are_no_hosts_are_refused(net: Net, rig: Rig) -> None:
    # A dot in a label makes the text of another name; classes of old; the root.
    script = r"""
names = [b"\x09a.example\0", b"\x01a\x07example\x00", b"\x04evil\x0b\0.a.example\0", b"\x02 a\x07example\0", b"\x02a\n\x07example\0", b"\x01*\x01w\x07example\0", b"\0"]
show([ask(name)[0] for name in names] + [ask("a.example", question_class=value)[0] for value in (3, 4, 254, 255)])
"""
    first, listed, *rest = net.python(script, allow=ALLOW).value
    assert (first, listed) == ("NXDOMAIN", "NOERROR") and set(rest) <= {"NXDOMAIN", "REFUSED"}
    rig.assert_untouched(names=[])


def test_tcp_questions_come_in_any_pieces(net: Net) -> None:
    script = """
import struct, time
one = [query(name, number=number) for number, name in enumerate(("a.example", "b.example", "x.w.example"), 1)]
data = b"".join(struct.pack("!H", len(message)) + message for message in one)
def converse(step):
    with dial(*RESOLVER, 5) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            sock.sendall(data[at:at + step])
            time.sleep(0.001 if step < len(data) else 0)
        sock.shutdown(socket.SHUT_WR)
        answers = []
        while size := exactly(sock, 2):
            answers.append(decode(exactly(sock, int.from_bytes(size, "big"))))
        return sorted([answer["id"], answer["code"]] for answer in answers)
show([converse(step) for step in (len(data), 1, 7)])
"""
    assert net.python(script, allow=ALLOW).value == [[[1, "NOERROR"], [2, "NXDOMAIN"], [3, "NOERROR"]]] * 3


def test_a_rule_for_a_name_in_other_letters(net: Net, rig: Rig) -> None:
    # IDNA: the policy, DNS and what is asked of the host's resolver have one form.
    rig.dns.set("xn--bcher-kva.example", HOSTS["a"])
    script = "show([ask('xn--bcher-kva.example')[0], ask('XN--BCHER-KVA.example.')[0], get('xn--bcher-kva.example'), get('bücher.example'.encode('idna').decode()), ask('bucher.example')[0]])"
    assert net.python(script, allow=["bücher.example"]).value == ["NOERROR", "NOERROR", 200, 200, "NXDOMAIN"]
    assert rig.asked() == {"xn--bcher-kva.example"} and len(rig.requests("a")) == 2


# B057 and B058: the files that resolvers read.


def test_b057_resolv_conf_names_the_sandboxs_resolver_alone(net: Net) -> None:
    lines = [line for line in net.run("cat", "/etc/resolv.conf", allow=ALLOW).ok().lines if not line.startswith("#")]
    assert [line for line in lines if not line.startswith("options ")] == ["nameserver 198.18.0.1"]


RESOLV_CONF = {
    "a link to systemd's": "mkdir -p $ETC/../run; echo 'nameserver 127.0.0.53\nsearch corp.test' > $ETC/../run/stub; ln -s ../run/stub $ETC/resolv.conf",
    "an absolute link": "ln -s /proc/self/mounts $ETC/resolv.conf",
    "a chain of two": "echo 'nameserver 127.0.0.53\nsearch corp.test' > $ETC/last.conf; ln -s last.conf $ETC/next.conf; ln -s next.conf $ETC/resolv.conf",
    "a dangling link": "ln -s /run/systemd/resolve/not-there.conf $ETC/resolv.conf",
    "no file": "true",
    "a file with search domains": "echo 'search corp.test\nnameserver 10.0.0.1' > $ETC/resolv.conf",
}


@pytest.mark.parametrize("kind", RESOLV_CONF)
def test_b057_whatever_the_hosts_resolv_conf_is(net: Net, tmp_path: pathlib.Path, kind: str) -> None:
    # In a user namespace of the test's own, /etc is a copy in which that file is another one.
    etc = tmp_path / "root/etc"
    made = host(f"mkdir -p {etc}; cp -a /etc/. {etc}/ 2>/dev/null; rm -f {etc}/resolv.conf; {RESOLV_CONF[kind].replace('$ETC', str(etc))}")
    assert made.status == 0, made
    control = host("unshare --user --map-root-user --mount true")
    need(control.status == 0, f"a user namespace in which /etc can be another directory: {control.error}")
    into = 'mount --bind "$0" /etc && exec unshare --user --map-user=1000 --map-group=1000 "$@"'
    inside = [net.sandy.program, "run", *net.options(allow=ALLOW), "--", "cat", "/etc/resolv.conf"]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", into, etc, *inside],
        cwd=net.sandy.workspace, env=net.sandy.env | net.env, capture_output=True, timeout=60, check=False,
    )
    got = Result(done.returncode, done.stdout, done.stderr).ok()
    assert "nameserver 198.18.0.1" in got.lines and got.text.count("nameserver") == 1 and "search" not in got.text


# Two name servers and two web servers in a network namespace of the test's own, in which /etc is a copy that changes.
MOVING = r"""
import fcntl, http.server, os, pathlib, socket, struct, subprocess, sys, threading, time
etc, program = pathlib.Path(sys.argv[1]), sys.argv[2]
with socket.socket() as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
def answer(server, address, known):
    while True:
        query, client = server.recvfrom(512)
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        is_a, there = query[at + 1 : at + 3] == b"\0\1", ".".join(labels) in known
        record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address)
        head = query[:2] + (b"\x81\x80" if there else b"\x81\x83") + b"\0\1\0" + bytes([is_a and there]) + b"\0\0\0\0"
        server.sendto(head + query[12 : at + 5] + (record if is_a and there else b""), client)
class Says(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write({"127.0.0.21": b"one\n", "127.0.0.22": b"two\n"}[self.server.server_address[0]])
    def log_message(self, *_): pass
for name_server, web_server, known in (("127.0.0.11", "127.0.0.21", ["a.example", "bare.one.test"]), ("127.0.0.12", "127.0.0.22", ["a.example", "bare.two.test"])):
    server = socket.socket(type=socket.SOCK_DGRAM)
    server.bind((name_server, 53))
    threading.Thread(target=answer, args=(server, web_server, known), daemon=True).start()
    threading.Thread(target=http.server.ThreadingHTTPServer((web_server, 80), Says).serve_forever, daemon=True).start()
def put(name, text):
    (etc / "new").write_text(text)
    (etc / "new").rename(etc / name)
put("resolv.conf", "nameserver 127.0.0.11\nsearch one.test\n")
put("hosts", "127.0.0.1 localhost\n")
rules = [word for rule in ("a.example:80", "bare:80", "listed.example:80") for word in ("--allow-domain", rule)]
loop = "while read -r name; do curl -s -m 5 http://$name/ || echo none; done"
box = subprocess.Popen(["unshare", "--user", "--map-user=1000", "--map-group=1000", program, "run", *rules, "--", "sh", "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def says(name):
    print(name, file=box.stdin, flush=True)
    return box.stdout.readline().strip()
def until(name, wanted):
    end = time.monotonic() + 15
    while (said := says(name)) != wanted and time.monotonic() < end: time.sleep(0.3)
    return said
print([says("a.example"), says("bare"), says("listed.example")])
put("resolv.conf", "# another network\nnameserver 127.0.0.12\nnameserver fe80::1%eth0\noptions edns0\nsearch none.test two.test\n")
print([until("a.example", "two"), says("bare"), says("listed.example")])
put("hosts", "127.0.0.1 localhost\n127.0.0.21 listed.example # of the hosts file\n")
print([until("listed.example", "one"), says("a.example")])
put("resolv.conf", "# no network\n")
put("hosts", "127.0.0.22 listed.example\n")
print([until("listed.example", "two"), says("a.example")])
(etc / "resolv.conf").unlink()
put("hosts", "127.0.0.21 listed.example\n")
print([until("listed.example", "one"), says("a.example")])
box.stdin.close()
print(box.wait(20))
"""


def test_b057_another_network_has_other_name_servers(net: Net, tmp_path: pathlib.Path) -> None:
    need(shutil.which("curl"), "curl")
    etc = tmp_path / "root/etc"
    made = host(f"mkdir -p {etc}; cp -a /etc/. {etc}/ 2>/dev/null; rm -f {etc}/resolv.conf")
    assert made.status == 0, made
    control = host("unshare --user --map-root-user --mount --net true")
    need(control.status == 0, f"a user namespace in which /etc can be another directory: {control.error}")
    env = net.sandy.env | {"SANDY_UNSAFE_TEST_NETWORK": json.dumps({"public": ["127.0.0.0/8"]})}
    into = 'mount --bind "$0" /etc && exec "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", into, etc, "python3", "-c", MOVING, etc, net.sandy.program],
        cwd=net.sandy.workspace, env=env, capture_output=True, timeout=120, check=False,
    )
    got = Result(done.returncode, done.stdout, done.stderr).ok()
    assert [ast.literal_eval(line) for line in got.lines] == [["one", "one", "none"], ["two", "two", "none"], ["one", "two"], ["two", "two"], ["one", "two"], 0], got


def test_b058_localhost_needs_no_resolver(net: Net, rig: Rig) -> None:
    script = """
import socket
v6 = socket.socket(socket.AF_INET6); v6.bind(("::1", 0)); v6.listen()
v4 = socket.socket(); v4.bind(("127.0.0.1", 0)); v4.listen()
v4b = socket.socket(); v4b.bind(("127.9.8.7", 0)); v4b.listen()
ways = [("::1", v6), ("127.0.0.1", v4), ("127.9.8.7", v4b), ("localhost", v4)]
show([outcome(lambda: socket.create_connection((name, sock.getsockname()[1]), 2).close() or "there") for name, sock in ways])
"""
    assert net.python(script, allow=ALLOW).value == ["there"] * 4
    got = net.sh("getent ahosts localhost; getent hosts $(cat /etc/hostname); cat /proc/net/if_inet6", allow=ALLOW).ok()
    assert "127.0.0.1 " in got.text and "::1 " in got.text
    assert [line.split()[-1] for line in got.lines if line.startswith("0" * 31 + "1")] == ["lo"]
    assert got.denials == []
    rig.assert_untouched(names=[])


# Where an allowed name leads: the host's resolver is asked once a connection is made.


def resolved(net: Net, name: str, **rest: object) -> Outcome:
    """Ten seconds are more than any of these answers takes."""
    return net.python("show(timed(get, given[0], '/', given[1] if len(given) > 1 else 80, 20))", name, **{"allow": [name], **rest})


def test_the_resolver_is_asked_when_a_connection_is_made_and_not_before(net: Net, rig: Rig) -> None:
    script = "first = [ask('a.example')[0], socket.getaddrinfo('a.example', 80) and 'found']\nshow(first)"
    assert net.python(script, allow=["a.example"]).value == ["NOERROR", "found"]
    rig.assert_untouched(names=[])
    assert resolved(net, "a.example").value[0] == 200
    assert rig.asked() == {"a.example"} and [request.target for request in rig.requests("a")] == ["/"]


@pytest.mark.parametrize("how", ["an alias", "TCP", "the second address", "IPv6", "IPv6 after IPv4", "in half a second"])
def test_a_name_is_reached_by_what_its_resolver_says(net: Net, rig: Rig, how: str) -> None:
    name = "found.example"
    if how in ("IPv6", "IPv6 after IPv4"):
        need(rig_has_ipv6(), "IPv6 on this machine's loopback")
        net.env = {**net.env, "SANDY_UNSAFE_TEST_NETWORK": rig.setting_of(["127.77.0.0/16", "::1/128"])}
    rig.dns.set("else.example", HOSTS["a"])
    match how:
        case "an alias":
            rig.dns.set(name, alias="else.example")
        case "TCP":
            rig.dns.set(name, HOSTS["a"], truncated=True)
        case "the second address":
            rig.dns.set(name, NOBODY, HOSTS["a"])
        case "IPv6":
            rig.dns.set(name, "::1")
        case "IPv6 after IPv4":
            rig.dns.set(name, NOBODY, "::1")
        case _:
            rig.dns.set(name, HOSTS["a"], delay=0.5)
    status, seconds = resolved(net, name).value
    assert status == 200 and seconds < 3
    assert [request.all("host") for request in rig.requests("a", "private6")] == [[name]]


def rig_has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("how", ["NXDOMAIN", "SERVFAIL", "no address", "nobody there"])
def test_a_name_that_leads_nowhere_fails_at_once(net: Net, rig: Rig, how: str) -> None:
    rig.dns.set("lost.example", *([NOBODY] if how == "nobody there" else []), rcode={"NXDOMAIN": 3, "SERVFAIL": 2}.get(how, 0))
    got = resolved(net, "lost.example")
    status, seconds = got.value
    assert status in ("refused", "reset", "EHOSTUNREACH", 0, 502, 504) and seconds < 3
    assert "not in the allowlist" not in got.error
    assert rig.asked() == {"lost.example"}
    rig.assert_untouched("a", "b", "c", "private")


@pytest.mark.slow
def test_a_resolver_that_keeps_silent_is_not_waited_for_without_end(net: Net, rig: Rig) -> None:
    rig.dns.set("silent.example", silent=True)
    script = "import threading\nlate = []\nthread = threading.Thread(target=lambda: late.append(timed(get, 'silent.example', '/', 80, 40)))\n" \
        "thread.start()\ntime.sleep(0.2)\nmeanwhile = timed(get, 'a.example')\nthread.join()\nshow([meanwhile, late[0]])"
    meanwhile, late = net.python(script, allow=["silent.example", "a.example"]).value
    assert meanwhile[0] == 200 and meanwhile[1] < 1  # nobody else waits for it
    assert late[0] != 200 and late[1] < 30


def test_without_the_test_setting_the_rigs_addresses_are_loopback(net: Net, rig: Rig) -> None:
    # The control of all tests here: nothing but that setting makes them public, and it is said.
    with_it = resolved(net, "a.example")
    assert with_it.value[0] == 200 and "network.unsafe_test_network" in with_it.document["degraded"]
    rig.forget()
    net.env["SANDY_UNSAFE_TEST_NETWORK"] = rig.setting_of([])
    without = resolved(net, "a.example")
    assert without.value[0] != 200 and "a.example:80" in without.denied
    assert any("127.77.0.1" in denial["reason"] for denial in without.denials)
    rig.assert_untouched("a", "b", "c")


def test_the_test_setting_is_of_the_environment_alone_and_must_be_right(net: Net, sandy: Cli) -> None:
    assert "UNSAFE" not in net.sh("env", allow=ALLOW).ok().text
    assert "network.unsafe_test_network" not in sandy.run("true", options=["--json", "/dev/stdout"]).ok().text
    for text, status in (("", 0), ("{", 125), ("[]", 125)):
        net.env["SANDY_UNSAFE_TEST_NETWORK"] = text
        got = net.run("true", allow=ALLOW)
        assert got.status == status and "network.unsafe_test_network" not in got.document.get("degraded", []), (text, got)


def test_hostile_names_are_quoted_where_they_are_shown(net: Net) -> None:
    # What a sandbox asks for is an attacker's text: no escape sequence reaches a terminal, no line is forged.
    name = r"b'\x0a\x1b[2J\n[sandy]\x07example\0'"
    got = net.python(f"ask({name}); ask('visible.b.example')", allow=ALLOW).ok()
    assert "\x1b" not in got.error and not any(line.startswith("[sandy]") for line in got.error.splitlines())
    assert "sandy: blocked: visible.b.example (not in the allowlist)" in got.error.splitlines()
    assert "visible.b.example" in got.denied


# Real answers: for programs that refuse reserved ranges.

REAL = {"203.0.113.1": HOSTS["a"], "203.0.113.2": HOSTS["b"], "203.0.113.3": HOSTS["c"]}


@pytest.fixture
def really(net: Net, rig: Rig) -> dict[str, object]:
    """A policy's network. Names lead to addresses that the rig's hosts are dialled for: a.example and b.example to one, b.example to another as well."""
    net.env["SANDY_UNSAFE_TEST_NETWORK"] = rig.setting_of(("203.0.113.0/24",), REAL)
    rig.dns.set("a.example", "203.0.113.1")
    rig.dns.set("b.example", "203.0.113.1")
    rig.dns.set("c.example", "203.0.113.3")
    rig.dns.set("home.example", "127.0.0.1")
    rig.dns.set("part.example", "10.0.0.1", "203.0.113.2")
    return {"mode": "allowlist", "dns_answers": "real", "allow": ["a.example", "b.example", "home.example", "part.example"]}


def test_real_answers_are_the_resolvers(net: Net, rig: Rig, really: dict[str, object]) -> None:
    script = """
names = ["a.example", "b.example", "part.example", "c.example", "home.example", "none.example"]
show({name: [ask(name), ask(name, over=tcp), ask(name, "AAAA")] for name in names})
"""
    got = net.python(script, network=really).value
    for name, address in (("a.example", "203.0.113.1"), ("b.example", "203.0.113.1"), ("part.example", "203.0.113.2")):
        # Of several addresses, those that may be dialled.
        assert got[name][:2] == [["NOERROR", [address]]] * 2 and got[name][2][1] == []
    assert got["c.example"] == [["NXDOMAIN", []]] * 3, "unlisted"
    assert got["home.example"][0][1] == [], "it leads to this machine"
    assert "c.example" not in rig.asked() and "none.example" not in rig.asked()


def test_real_answers_have_the_same_verdicts(net: Net, rig: Rig, really: dict[str, object]) -> None:
    script = """
show({"plain": [get("a.example"), get("part.example")], "port": reached("a.example", 7), "not looked up": get("203.0.113.3"), "its neighbour": get("203.0.113.9"),
      "host": [http("a.example", 80, request("GET", "/", host=name))[0] for name in ("a.example", "b.example", "c.example")],
      "tls": [tls_status("a.example", name) for name in ("a.example", "b.example", "c.example")], "home": get("home.example")})
"""
    script = "ask('b.example')\n" + script
    got = net.python(script, network=really)
    value = got.value
    assert value["plain"] == [200, 200]
    # Both names were told this address: either may be meant, and no third one.
    assert value["host"][:2] == [200, 200] and value["host"][2] != 200
    assert value["tls"][:2] == [200, 200] and value["tls"][2] != 200
    assert value["port"] not in (200, "hello") and value["not looked up"] != 200 and value["its neighbour"] != 200 and value["home"] != 200
    rig.assert_untouched("c", "private")
    assert {"a.example:7", "203.0.113.3:80", "203.0.113.9:80"} <= got.denied
