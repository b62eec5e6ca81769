"""Programs as they are, without any proxy variable, reach the listed names and nothing else: cases B052 to B054, B059 and B063 of the group "Network, proxy, DNS", and B125 with a
network.

Elsewhere: `test_proxy.py` has the cases about clients that speak to a proxy (B036, B037, B041 to B051, B061), `test_dns.py` those about names (B056 to B058), and
`tests/escape/test_network.py` the attacks (B039 too). B062 doesn't apply: there is no chaining to another proxy.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from rig import Rig, pattern
from rig.net import Net
from support import Cli, descendants, finish, host, need, program_of, wait_until

pytest_plugins = ["rig.fixtures"]

MIB = 1 << 20

# Clients. Each is given a URL of a listed and of an unlisted host.

FETCH = "fetch('{url}').then(r => r.text()).then(t => process.stdout.write(t), e => {{ console.error(e.cause ?? e); process.exit(1) }})"
JAVA = """\
import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
public class Get {
  public static void main(String[] urls) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType()); store.load(null, null);
    store.setCertificateEntry("rig", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("ca.pem")));
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()); trust.init(store);
    SSLContext context = SSLContext.getInstance("TLS"); context.init(null, trust.getTrustManagers(), null);
    HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
    for (String url : urls) {
      long start = System.nanoTime();
      try { System.out.print(new String(URI.create(url).toURL().openConnection().getInputStream().readAllBytes())); }
      catch (IOException e) { System.out.println(e.getClass().getSimpleName() + " " + ((System.nanoTime() - start) < 1_000_000_000L ? "soon" : "late")); }
    }
  }
}
"""
GO = """\
package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os"; "time")
func main() {
  pem, _ := os.ReadFile("ca.pem")
  pool := x509.NewCertPool()
  pool.AppendCertsFromPEM(pem)
  client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
  for _, url := range os.Args[1:] {
    start := time.Now()
    answer, err := client.Get(url)
    if err != nil { fmt.Fprintln(os.Stderr, err); fmt.Println("refused", time.Since(start) < time.Second); continue }
    body, _ := io.ReadAll(answer.Body)
    fmt.Print(string(body))
  }
}
"""
CLIENTS = {
    "curl": "curl -sS --max-time 10 --cacert ca.pem {url}",
    "wget": "wget -q -T 10 -t 1 --ca-certificate=ca.pem -O - {url}",
    "python3 urllib": "python3 -c 'import sys, urllib.request, ssl; "
                      "print(urllib.request.urlopen(sys.argv[1], timeout=10, context=ssl.create_default_context(cafile=\"ca.pem\")).read().decode(), end=\"\")' {url}",
    "node fetch": 'NODE_EXTRA_CA_CERTS=ca.pem node -e "' + FETCH + '"',
    "perl": "perl -MIO::Socket::INET -e '$_ = shift; m{{//([^/]+)/}}; $s = IO::Socket::INET->new(PeerAddr => $1, PeerPort => 80, Timeout => 10) or die; "
            "print $s \"GET / HTTP/1.0\\r\\nHost: $1\\r\\n\\r\\n\"; @all = <$s>; print $all[-1]' {url}",
    "bash": "bash -c 'exec 3<>/dev/tcp/$1/80 && printf \"GET / HTTP/1.1\\r\\nHost: $1\\r\\nConnection: close\\r\\n\\r\\n\" >&3 && tail -n 1 <&3' - {name}",
    "openssl s_client": "printf 'GET / HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n' "
                        "| openssl s_client -quiet -verify_return_error -CAfile ca.pem -connect {name}:443 | tail -n 1",
    "nc": "printf 'GET / HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n' | nc {name} 80 | tail -n 1",
}
PLAIN_ALONE = {"perl", "bash", "nc"}
TLS_ALONE = {"openssl s_client"}


def there(program: str) -> None:
    need(shutil.which(program, path="/usr/local/bin:/usr/bin:/bin"), program)


WITH_SCHEMES = [(client, scheme) for client in CLIENTS for scheme in ("http", "https") if client not in (TLS_ALONE if scheme == "http" else PLAIN_ALONE)]


@pytest.mark.parametrize(("client", "scheme"), WITH_SCHEMES)
def test_b053_clients_need_no_proxy_variable(net: Net, rig: Rig, client: str, scheme: str) -> None:
    there(client.split()[0])
    listed, unlisted = (CLIENTS[client].format(url=f"{scheme}://{name}.example/", name=f"{name}.example") for name in "ab")
    got = net.sh(f"{listed}; echo status $?; env | grep -i proxy", allow=["a.example"])
    assert got.lines[:2] == ["hello from a", "status 0"] and len(got.lines) == 2, got
    assert got.denials == []
    rig.assert_untouched("b", names=["a.example"])
    # The start of a runtime is not the network's time.
    script = f"{listed} >/dev/null; a=$(date +%s%N); {listed} >/dev/null; b=$(date +%s%N); {unlisted} >&2; echo $? $((b - a)) $(($(date +%s%N) - b))"
    got = net.sh(script, allow=["a.example"])
    status, good, bad = map(int, got.text.split())
    if "|" not in unlisted:
        assert status != 0, got
    assert bad - good < 1_000_000_000, "an unlisted name fails in under a second"
    assert got.denied & {"b.example", "b.example:80", "b.example:443"} and "hello" not in got.error
    rig.assert_untouched("b", names=["a.example"])


@pytest.mark.slow
def test_b054_java(net: Net, rig: Rig) -> None:
    # No option, no setting, and nothing of ours on standard error.
    there("java")
    (net.sandy.workspace / "Get.java").write_text(JAVA)
    if host("java --list-modules | grep -q jdk.compiler").status != 0:
        pytest.skip("this Java runs no source file")
    urls = [f"{scheme}://{name}.example/" for scheme in ("http", "https") for name in "ab"]
    got = net.run("java", "-XX:TieredStopAtLevel=1", "Get.java", *urls, allow=["a.example"], timeout=120).ok()
    assert got.lines == ["hello from a", "UnknownHostException soon"] * 2
    assert [line for line in got.error.splitlines() if not line.startswith(("sandy: ", "Note: "))] == []
    rig.assert_untouched("b", names=["a.example"])


@pytest.mark.slow
@pytest.mark.parametrize("resolver", ["go", "cgo"])
def test_b054_go(net: Net, rig: Rig, tmp_path: pathlib.Path, resolver: str) -> None:
    # Go's own resolver, which reads /etc/resolv.conf and asks for A and AAAA at once, and glibc's.
    go = shutil.which("go", path="/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin")
    need(go, "go")
    (tmp_path / "get.go").write_text(GO)
    env = {"HOME": str(tmp_path), "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GO111MODULE": "off", "CGO_ENABLED": "1" if resolver == "cgo" else "0"}
    made = host(f"{go} build -o {net.sandy.workspace}/get get.go", cwd=tmp_path, env=env, timeout=300)
    assert made.status == 0, made
    urls = [f"{scheme}://{name}.example/" for scheme in ("http", "https") for name in "ab"]
    got = net.sh(f"GODEBUG=netdns={resolver} ./get {' '.join(urls)}", allow=["a.example"]).ok()
    assert got.lines == ["hello from a", "refused true"] * 2
    rig.assert_untouched("b", names=["a.example"])


def test_git_clones_over_https(net: Net, rig: Rig, tmp_path: pathlib.Path) -> None:
    there("git")
    identity = "-c user.name=n -c user.email=e@a.example -c init.defaultBranch=main"
    made = host(
        f"git init -q -b main one && cd one && echo content > file && git add file && git {identity} commit -qm first"
        " && cd .. && git clone -q --bare one one.git && cd one.git && git update-server-info", cwd=tmp_path, env={"HOME": str(tmp_path)},
    )
    assert made.status == 0, made
    rig.put_tree("/one.git", tmp_path / "one.git")
    script = "export GIT_SSL_CAINFO=$PWD/ca.pem; git clone -q https://{}.example/one.git got-{} && cat got-{}/file"
    got = net.sh(script.format("a", "a", "a"), allow=["a.example"])
    assert got.ok().text == "content\n"
    got = net.sh(script.format("b", "b", "b"), allow=["a.example"])
    assert got.status == 128 and "content" not in got.text
    rig.assert_untouched("b", names=["a.example"])


def test_pip_downloads(net: Net, rig: Rig) -> None:
    need(host("/usr/bin/python3 -m pip --version").status == 0, "Debian's python3-pip")
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("rigged.py", "")
        archive.writestr("rigged-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: rigged\nVersion: 1.0\n")
        archive.writestr("rigged-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("rigged-1.0.dist-info/RECORD", "")
    rig.put("/files/rigged-1.0-py3-none-any.whl", wheel.getvalue())
    rig.put("/simple/rigged/", '<a href="/files/rigged-1.0-py3-none-any.whl">rigged</a>', "text/html")
    command = "/usr/bin/python3 -m pip download -q --isolated --disable-pip-version-check --no-deps --retries 0 --cert ca.pem --index-url https://{}.example/simple rigged"
    got = net.sh(command.format("a") + " && ls *.whl", allow=["a.example"], timeout=120)
    assert got.ok().lines[-1] == "rigged-1.0-py3-none-any.whl"
    got = net.sh(command.format("b"), allow=["a.example"], timeout=120)
    assert got.status != 0 and "b.example" in got.denied
    rig.assert_untouched("b", names=["a.example"])


@pytest.mark.slow
def test_npm_views(net: Net, rig: Rig) -> None:
    if not shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip("no npm here")
    document = {"name": "rigged", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"name": "rigged", "version": "1.2.3", "dist": {}}}, "time": {}}
    rig.put("/rigged", json.dumps(document), "application/json")
    command = "npm_config_cafile=$PWD/ca.pem npm view --fetch-retries=0 --registry https://{}.example/ rigged version"
    assert net.sh(command.format("a"), allow=["a.example"]).ok().text.strip() == "1.2.3"
    assert net.sh(command.format("b"), allow=["a.example"]).status != 0
    rig.assert_untouched("b", names=["a.example"])


def test_ssh_meets_a_server_that_speaks_first(net: Net, rig: Rig) -> None:
    there("ssh")
    command = "ssh -F none -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=no {}.example true"
    got = net.sh(command.format("a"), allow=["a.example:22"])
    assert got.status == 255 and got.denials == []
    [connection] = rig.connections("a")
    assert connection.service == "ssh" and connection.received.startswith(b"SSH-2.0-OpenSSH")
    got = net.sh(command.format("b"), allow=["a.example:22"])
    assert got.status == 255 and "b.example" in got.denied
    rig.assert_untouched("b", names=["a.example"])


# Any TCP.


def test_other_protocols_pass_as_they_are(net: Net, rig: Rig) -> None:
    script = """
def first():
    with dial("a.example", 22) as sock:
        return received(sock, end=b"\\n").decode()
def halves():
    return talk("a.example", 9, b"x" * 300_000, shut=True)
# What looks like nothing, nearly like HTTP, and like nothing yet.
seen = [talk("a.example", 7, data, end=data) == data.decode("latin-1") for data in (b"\\0\\1\\2", b"get me\\n", b"*1\\r\\n$4\\r\\nPING\\r\\n", b"\\x15", b"g")]
show([timed(first), timed(halves), seen])
"""
    names = [f"a.example:{port}" for port in (7, 9, 22)]
    (banner, soon), (digest, quick), seen = net.python(script, allow=names).value
    assert banner == "SSH-2.0-rig\r\n" and soon < 0.5, "a server that speaks first is not made to wait for its client"
    assert digest == f"300000 {hashlib.sha256(b'x' * 300_000).hexdigest()}\n" and quick < 2
    assert seen == [True] * 5
    assert len(rig.connections("a")) == 7


def test_the_ports_of_a_rule(net: Net, rig: Rig) -> None:
    script = "show({name: [reached(name, 7), get(name), get(name, port=8000), tls_status(name, name)] for name in given[0]})"
    names = ["a.example", "b.example", "c.example", "x.w.example"]
    got = net.python(script, names, allow=["a.example", "b.example:7", "c.example", "c.example:8000", "*.w.example:443"]).value
    expected = {"a.example": (0, 1, 0, 1), "b.example": (1, 0, 0, 0), "c.example": (0, 1, 1, 1), "x.w.example": (0, 0, 0, 1)}
    assert {name: tuple(int(value in (200, "hello")) for value in values) for name, values in got.items()} == expected
    assert {value for values in got.values() for value in values} <= {200, "hello", "refused", "reset", "closed", 0}
    assert {(one.host, one.service) for one in rig.connections()} <= {("a", "http"), ("a", "https"), ("b", "echo"), ("c", "http"), ("c", "https"), ("b", "https")}


def test_ipv6_inside_does_not_need_it_outside(net: Net, rig: Rig) -> None:
    script = """
address = ask("a.example", "AAAA")[1][0]
def over6(port, data, **rest):
    with socket.socket(socket.AF_INET6) as sock:
        sock.settimeout(5); sock.connect((address, port)); sock.sendall(data)
        return received(sock, **rest).decode("latin-1")
show([over6(80, request("GET", "/", "Connection: close", host="a.example"))[:12], over6(7, b"hello", end=b"hello"), outcome(over6, 25, b"x")])
"""
    good, echoed, bad = net.python(script, allow=["a.example", "a.example:7"]).value
    assert (good, echoed) == ("HTTP/1.1 200", "hello") and bad in ("refused", "reset", "")
    assert {one.service for one in rig.connections("a")} == {"http", "echo"}


def test_an_upstream_that_refuses_is_a_refusal_inside(net: Net, rig: Rig) -> None:
    rig.dns.set("nobody.example", "127.77.0.99")
    result, seconds = net.python("show(timed(reached, 'nobody.example', 7))", allow=["nobody.example:7"]).value
    assert result in ("refused", "reset", "closed") and seconds < 2


def test_keep_alive_pipelining_head_and_bodies(net: Net, rig: Rig) -> None:
    script = """
with dial("a.example", 80) as sock:
    client = Http(sock)
    one = [client.ask(request("GET", "/", host="a.example"))[::2], client.ask(request("HEAD", "/big?size=5000", host="a.example"), "HEAD")[0],
           client.ask(request("POST", "/echo", "Content-Length: 4", host="a.example", body="body"))[::2],
           client.ask(request("POST", "/echo", "Transfer-Encoding: chunked", host="A.EXAMPLE:80", body="3\\r\\nabc\\r\\n2;x=y\\r\\nde\\r\\n0\\r\\n\\r\\n"))[::2],
           client.ask(request("GET", "/chunked", host="a.example"))[::2], client.ask(request("GET", "/status?code=204", host="a.example"))[0]]
    sock.sendall(b"".join(request("GET", f"/big?size={size}", host="a.example") for size in (10, 100_000, 0)))
    piped = [len(client.answer()[2]) for _ in range(3)]
    sock.sendall(request("POST", "/echo", "Content-Length: 5", "Expect: 100-continue", host="a.example"))
    head = client.stream.readline() + client.stream.readline()
    sock.sendall(b"later")
    waited = [head.decode(), client.answer()[2]]
show([one, piped, waited, http("a.example", 80, request("GET", "/close", host="a.example"))])
"""
    one, piped, waited, closed = net.python(script, allow=["a.example"]).value
    assert one == [[200, "hello from a\n"], 200, [200, "body"], [200, "abcde"], [200, "one two three\n"], 204]
    assert piped == [10, 100_000, 0]
    assert waited[0].startswith("HTTP/1.1 100") and waited[1] == "later"
    assert closed == [200, "until the end\n"]
    assert all("via" not in key.lower() and "forwarded" not in key.lower() for request in rig.requests("a") for key, _ in request.headers)


def test_fifty_connections_at_once(net: Net, rig: Rig) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(50) as pool:
    show(sorted(set(pool.map(lambda n: get(f"n{n % 5}.w.example", f"/pause?seconds=0.{n % 10}"), range(50)))))
"""
    assert net.python(script, allow=["*.w.example"]).value == [200]
    assert len(rig.requests()) == 50


# B052: large bodies.


def proxy_peak(process: subprocess.Popen[bytes]) -> Callable[[], int]:
    """The most memory that the proxy of this running sandbox has had so far, in bytes."""
    def found() -> list[int]:
        return [pid for pid in descendants(process.pid) if program_of(pid) == "sandy-proxy"]

    wait_until(found, 10, "a sandy-proxy below sandy")
    pid = found()[0]

    def peak() -> int:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    return peak


WAYS = {"directly": "", "by the HTTP proxy": "-x http://198.18.0.1:3128", "by a tunnel": "-p -x http://198.18.0.1:3128", "by SOCKS": "--socks5-hostname 198.18.0.1:1080"}


@pytest.mark.parametrize("words", ["", "-H Expect:", "-H 'Transfer-Encoding: chunked'"])
@pytest.mark.parametrize("way", WAYS)
def test_b052_large_bodies_arrive(net: Net, rig: Rig, way: str, words: str) -> None:
    there("curl")
    # The sandbox's /tmp is memory.
    script = f"cd /tmp; head -c {13 * MIB} /dev/urandom > body; sha256sum < body; c='curl -sS --max-time 30 --cacert '$OLDPWD'/ca.pem {WAYS[way]}';"
    script += f"for s in http https; do $c {words} -T body $s://a.example/sink; echo; done; $c -o /dev/null -w '%{{http_code}}\\n' {words} -T body http://a.example/early"
    digest, first, second, early = net.sh(script, allow=["a.example"]).ok().lines
    assert json.loads(first) == json.loads(second) == {"size": 13 * MIB, "digest": digest.split()[0]}
    assert early == "413", "an answer before the body's end reaches the client"


def test_b052_a_slow_reader_holds_up_its_sender_and_not_the_proxys_memory(net: Net, rig: Rig) -> None:
    there("curl")
    size = 48 * MIB
    script = f"read x; head -c {size} /dev/zero > /tmp/body; curl -sS --max-time 40 -T /tmp/body 'http://a.example/slow?pause=0.03'"
    process = net.start("sh", "-c", script, allow=["a.example"], stdin=subprocess.PIPE)
    peak = proxy_peak(process)
    before = peak()
    process.stdin.write(b"go\n")  # type: ignore[union-attr]
    process.stdin.flush()  # type: ignore[union-attr]
    wait_until(lambda: rig.requests("a") and rig.requests("a")[0].body > size // 2, 20, "half of the body")
    middle = peak()
    got = finish(process).ok()
    assert json.loads(got.out) == {"size": size, "digest": hashlib.sha256(bytes(size)).hexdigest()}
    assert middle - before < 8 * MIB


def test_b052_a_slow_client_gets_all(net: Net) -> None:
    script = """
import hashlib
with dial("a.example", 19) as sock:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.sendall(b"8000000\\n")
    seen = hashlib.sha256()
    while data := sock.recv(400_000):
        seen.update(data)
        time.sleep(0.002)
show(seen.hexdigest())
"""
    assert net.python(script, allow=["a.example:19"]).value == hashlib.sha256(b"".join(pattern(8_000_000))).hexdigest()


# B059: servers inside.


def test_b059_a_server_inside_is_reached_by_every_name_of_its(net: Net, rig: Rig) -> None:
    there("curl")
    script = """
mkdir served; cd served; echo inside > index.html
python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &
python3 -m http.server --bind 127.0.0.1 9000 >/dev/null 2>&1 &
until curl -s -o /dev/null http://127.0.0.1:8000 && curl -s -o /dev/null http://127.0.0.1:9000; do sleep 0.02; done
for h in localhost 127.0.0.1 127.1 localhost. '[::1]' 198.18.0.2; do
  for p in 8000 8001; do curl -s -m 3 -o /dev/null -w "$h:$p %{http_code} %{time_total}\\n" http://$h:$p; done
done; true
"""
    got = net.sh(script, allow=["a.example"]).ok()
    table = {line.split()[0]: line.split()[1:] for line in got.lines}
    assert {place for place, (code, _) in table.items() if code == "200"} >= {"localhost:8000", "127.0.0.1:8000", "127.1:8000"}
    assert all(place.endswith(":8000") for place, (code, _) in table.items() if code == "200")
    assert all(float(seconds) < 1 for _, seconds in table.values()), table
    assert not any(target.endswith((":8000", ":8001")) and target.startswith(("127.", "localhost", "[")) for target in got.denied)
    rig.assert_untouched(names=[])


def test_b059_proxy_variables_of_ones_own_work_with_no_proxy(net: Net, rig: Rig) -> None:
    there("curl")
    script = """
export http_proxy=http://198.18.0.1:3128 https_proxy=http://198.18.0.1:3128 no_proxy=localhost,127.0.0.1
python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &
until curl -s -o /dev/null http://127.0.0.1:8000; do sleep 0.02; done
for url in http://localhost:8000 http://a.example https://a.example; do curl -s --cacert ca.pem -m 3 -o /dev/null -w "%{http_code}\\n" $url; done
"""
    assert net.sh(script, allow=["a.example"]).ok().lines == ["200"] * 3


# B063: what is told of a denial.


def test_b063_a_denial_is_explained(net: Net, rig: Rig) -> None:
    there("curl")
    secret = "token=s3cr3t"
    script = (
        f"curl -s -x http://198.18.0.1:3128 'http://b.example/path?{secret}'; curl -s -x http://198.18.0.1:3128 'https://b.example/path?{secret}';"
        f"curl -s 'https://c.example/{secret}'; curl -s 'http://a.example:81/{secret}'; curl -s --connect-timeout 3 'http://203.0.113.9/{secret}';"
        f"curl -s -x http://198.18.0.1:3128 'http://u:{secret}@x.w.example/'; curl -s http://a.example/"
    )
    got = net.sh(script, allow=["a.example", "*.w.example"], deny=["x.w.example"]).ok()
    assert "b.example:80" in got.text and "not in the allowlist" in got.text and got.text.endswith("hello from a\n"), "a client of the proxy is told"
    lines = [line for line in got.error.splitlines() if line.startswith("sandy: blocked: ")]
    assert "sandy: blocked: b.example:80 (not in the allowlist)" in lines
    assert "sandy: blocked: b.example:443 (not in the allowlist)" in lines
    assert "sandy: blocked: c.example (not in the allowlist)" in lines
    for start, reason in (("a.example:81 ", "port"), ("203.0.113.9:80 ", ""), ("x.w.example", "denied by the rule x.w.example")):
        assert [line for line in lines if line.startswith(f"sandy: blocked: {start}") and reason in line], (start, lines)
    assert {"b.example:80", "b.example:443", "c.example", "a.example:81", "203.0.113.9:80"} <= got.denied
    assert all(denial["reason"] for denial in got.denials)
    # What no log needs to know.
    assert secret not in got.error and "/path" not in got.error and secret not in json.dumps(got.document)


def test_b063_no_denial_no_line(net: Net) -> None:
    got = net.python("show(get('a.example'))", allow=["a.example"])
    assert got.value == 200 and "blocked" not in got.error and got.denials == []


def test_b063_many_denials_are_some_lines(net: Net) -> None:
    # A loop that asks for a thousand names must not bury what the command itself said.
    got = net.python("for n in range(1000): ask(f'n{n}.b.example')\nfor n in range(200): ask('same.b.example')\nprint('done')", allow=["a.example"]).ok()
    lines = [line for line in got.error.splitlines() if line.startswith("sandy: ")]
    assert got.text == "done\n" and 1 <= len(lines) <= 100
    assert len([line for line in lines if "same.b.example " in line]) <= 1


# Private targets.


def test_what_allow_private_names_is_reached_and_nothing_beside_it(net: Net, rig: Rig) -> None:
    rig.dns.set("inner.example", "127.0.0.1")
    script = """
show([get("inner.example"), get("inner.example", port=8000), get("host.sandy.internal", port=11434), get("host.sandy.internal"),
      by_proxy(request("GET", "http://127.0.0.1:8000/", host="127.0.0.1:8000")), by_proxy(request("GET", "http://127.0.0.1/", host="127.0.0.1"))])
"""
    got = net.python(script, allow=["a.example"], private=["inner.example:80", "host.sandy.internal:11434", "127.0.0.1:8000"])
    name, name_other_port, model, model_other_port, address, address_other_port = got.value
    assert (name, model, address) == (200, 200, 200), got
    assert not {name_other_port, model_other_port, address_other_port} & {200}
    hosts = sorted(request.all("host")[0] for request in rig.requests())
    assert hosts == ["127.0.0.1:8000", "host.sandy.internal:11434", "inner.example"] or len(hosts) == 3
    assert {connection.host for connection in rig.connections()} <= {"private", "private6"}


def test_without_allow_private_the_same_names_are_refused(net: Net, rig: Rig) -> None:
    rig.dns.set("inner.example", "127.0.0.1")
    got = net.python("show([get('inner.example'), get('host.sandy.internal', port=11434)])", allow=["inner.example", "a.example"])
    assert 200 not in got.value
    assert any("loopback" in denial["reason"] for denial in got.denials if denial["target"] == "inner.example:80"), got.denials
    rig.assert_untouched()


# The end.


@pytest.mark.parametrize("how", ["the command ends", "SIGTERM", "SIGKILL"])
def test_connections_and_proxy_end_with_the_sandbox(net: Net, rig: Rig, how: str) -> None:
    script = "sock = dial('a.example', 7); sock.sendall(b'x'); sock.recv(1); print('ready', flush=True); sys.stdin.readline()"
    process = net.start("python3", "-c", f"from probe import *\n{script}", allow=["a.example:7"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    below = descendants(process.pid)
    assert "sandy-proxy" in map(program_of, below)
    [connection] = rig.connections("a")
    assert not connection.ended
    if how == "the command ends":
        process.stdin.close()  # type: ignore[union-attr]
    else:
        process.send_signal(getattr(signal, how))
    process.wait(20)
    wait_until(lambda: connection.ended, 5, "the end of the upstream's connection")
    wait_until(lambda: not [pid for pid in below if os.path.exists(f"/proc/{pid}")], 5, "the end of all processes")


def test_a_killed_proxy_leaves_a_sandbox_without_network(net: Net, rig: Rig) -> None:
    script = "print('ready', flush=True); sys.stdin.readline(); show([timed(get, 'a.example'), timed(talk, '203.0.113.5', 80, b'x', None, False, 3)])"
    process = net.start("python3", "-c", f"from probe import *\n{script}", allow=["a.example"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    [proxy] = [pid for pid in descendants(process.pid) if program_of(pid) == "sandy-proxy"]
    os.kill(proxy, signal.SIGKILL)
    out, _ = process.communicate(b"go\n", timeout=60)
    # Or the sandbox ends with its proxy.
    assert not out or all(result not in (200, "") for result, _ in json.loads(out))
    rig.assert_untouched()


def test_the_network_of_two_at_once_is_each_ones_own(net: Net, rig: Rig) -> None:
    # The same names, rules of their own; the end of one takes nothing from the other.
    script = "print('ready', flush=True); sys.stdin.readline(); show([get('a.example'), get('c.example')])"
    both = [net.start("python3", "-c", f"from probe import *\n{script}", allow=[name], stdin=subprocess.PIPE) for name in ("a.example", "c.example")]
    for process in both:
        assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    first = json.loads(both[0].communicate(b"go\n", timeout=30)[0])
    second = json.loads(both[1].communicate(b"go\n", timeout=30)[0])
    assert (first[0], first[1] == 200, second[0] == 200, second[1]) == (200, False, False, 200)


@pytest.mark.slow
def test_b125_many_at_once_with_a_host_of_its_own_each(net: Net, rig: Rig) -> None:
    there("curl")
    script = "for n in {0} {1}; do curl -sS -m 20 http://n$n.w.example/$n; done"
    started = [net.start("sh", "-c", script.format(number, number + 1), allow=[f"n{number}.w.example"]) for number in range(20)]
    for process in started:
        got = finish(process, timeout=60)
        assert got.text == "hello from b\n" and got.error.count("Could not resolve") == 1, got
    assert sorted(int(request.target[1:]) for request in rig.requests()) == list(range(20))
    assert rig.asked() == {f"n{number}.w.example" for number in range(20)}


@pytest.mark.slow
def test_b125_many_threads_of_one_client(client: Callable[..., Any], rig: Rig) -> None:
    there("curl")
    script = """
from concurrent.futures import ThreadPoolExecutor
def one(number):
    with Sandbox(allow_domains=[f"n{number}.w.example"], timeout=60) as box:
        got = box.run(f"for n in {number} {number + 1}; do curl -s -m 20 -o /dev/null -w '%{{http_code}} ' 'http://n'$n'.w.example/?{number}'; done")
        return [got.stdout.decode().split(), targets(got.denials)]
with ThreadPoolExecutor(20) as pool:
    show(list(pool.map(one, range(20))))
"""
    assert client(script, timeout=100) == [[["200", "000"], [f"n{number + 1}.w.example"]] for number in range(20)]
    assert sorted(int(request.target[2:]) for request in rig.requests()) == list(range(20))


# Python.


def test_python_has_the_same(client: Callable[..., Any], rig: Rig) -> None:
    script = """
with Sandbox(allow_domains=["a.example", "*.w.example"], deny_domains=["x.w.example"], timeout=30) as box:
    good = box.run("curl -s http://a.example/")
    bad = box.run("curl -s https://b.example/?secret; curl -s http://x.w.example/; curl -s http://a.example:81/")
    told = box.execute("curl -s http://c.example/")
    quiet = box.execute("curl -s http://y.w.example/")
show([good.stdout.decode(), targets(good.denials), targets(bad.denials), told.output, quiet.output, list(good.degraded)])
"""
    there("curl")
    good, none, denied, told, quiet, degraded = client(script)
    assert good == "hello from a\n" and none == []
    assert set(denied) == {"b.example", "x.w.example", "a.example:81"}
    assert "[sandy] blocked: c.example (not in the allowlist)" in told
    assert quiet == "hello from b\n"
    assert "network.unsafe_test_network" in degraded
    assert rig.asked() <= {"a.example", "y.w.example"}


def test_python_sandboxes_of_one_process_do_not_mix(client: Callable[..., Any], rig: Rig) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
names = ["a", "b", "c"]
boxes = [Sandbox(allow_domains=[f"{name}.example"], timeout=30) for name in names] + [Sandbox(allow_domains=[], timeout=30), Sandbox(timeout=30)]
def probe(box):
    got = box.run("for n in a b c; do curl -s -m 5 -o /dev/null -w '%{http_code} ' http://$n.example/; done")
    return [got.stdout.decode().split(), sorted(targets(got.denials))]
with ThreadPoolExecutor(5) as pool:
    first = list(pool.map(probe, boxes))
boxes[0].close()
second = list(map(probe, boxes[1:3]))
show([first, second])
"""
    there("curl")
    first, second = client(script)
    only = [[["200" if at == me else "000" for at in range(3)], [f"{n}.example" for at, n in enumerate("abc") if at != me]] for me in range(3)]
    assert first[:3] == only and second == only[1:]
    assert first[3] == [["000"] * 3, ["a.example", "b.example", "c.example"]] and first[4][0] == ["000"] * 3


def test_python_private_targets(client: Callable[..., Any], rig: Rig) -> None:
    script = "with Sandbox(allow_domains=[], allow_private=['host.sandy.internal:11434'], timeout=30) as box:\n" \
        "    show(box.run('curl -s http://host.sandy.internal:11434/; curl -s -m 5 http://host.sandy.internal/').stdout.decode())"
    there("curl")
    assert client(script).startswith("hello from private")
    assert len(rig.requests("private", "private6")) == 1


# What it takes.


def test_an_allowlist_is_a_policys_like_any_rule(sandy: Cli, net: Net) -> None:
    network = {"mode": "allowlist", "allow": ["a.example", "*.w.example"], "deny": ["x.w.example"], "allow_private": ["127.0.0.1:8000"]}
    got = net.python("show([get('a.example'), get('y.w.example'), ask('x.w.example')[0], ask('b.example')[0]])", network=network)
    assert got.value == [200, 200, "NXDOMAIN", "NXDOMAIN"]
    # A file's list and flags add up.
    got = net.python("show([get('a.example'), get('c.example')])", network={"mode": "allowlist", "allow": ["a.example"]}, allow=["c.example"])
    assert got.value == [200, 200]


def test_mode_none_has_no_gateway(net: Net) -> None:
    script = "show([outcome(dial, *where, 2) for where in (PROXY, SOCKS, RESOLVER, ('192.0.2.1', 80))] + [ask('a.example')])"
    assert all(isinstance(word, str) and word != "timeout" for word in net.python(script).value)


def test_a_start_with_a_network_is_soon(net: Net) -> None:
    # Not a measurement, which is tests/bench's: only that nothing waits.
    net.run("true", allow=["a.example"]).ok()
    start = time.monotonic()
    net.run("true", allow=["a.example"]).ok()
    wait = 3 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert time.monotonic() - start < wait

