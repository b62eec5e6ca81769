"""Section 8 of the design: every byte that a sandbox sends is an attacker's. An agent that is a liar must not hang, crash or bloat `sandy`.

The programs are copied, with a script in the agent's place. It runs where the agent would, as the first process in the sandbox, with the
same socket (PROTOCOL.md).
"""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

import pytest
from support import Cli, descendants, finish, need, wait_until

MIB = 1 << 20

PRELUDE = """\
#!/usr/bin/python3 -I
import array, json, os, select, socket, struct, sys, threading, time
s = socket.socket(fileno=3)

def frame(header, payload=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(text), len(payload)) + text + payload

def read():
    def exactly(n):
        data = b""
        while len(data) < n:
            piece = s.recv(n - len(data))
            if not piece: sys.exit(0)
            data += piece
        return data
    h, p = struct.unpack("<II", exactly(8))
    header = json.loads(exactly(h))
    exactly(p)
    return header

def flood(data):
    while True:
        s.sendall(data)

def hello():
    s.sendall(frame({"id": read()["id"], "ev": "end", "version": 1}))

def command():
    hello()
    return read()["id"]
"""


@pytest.fixture
def hostile(programs: pathlib.Path, home: pathlib.Path, ws: pathlib.Path, tmp_path: pathlib.Path) -> Callable[[str], Cli]:
    """`sandy` with an agent that does what the given lines say."""
    need(os.access("/usr/bin/python3", os.X_OK), "/usr/bin/python3")

    def make(body: str) -> Cli:
        directory = tmp_path / "programs"
        directory.mkdir(mode=0o755)
        for name in ("sandy", "sandy-launch"):
            shutil.copy2(programs / name, directory / name)
        (directory / "sandy-agent").write_text(PRELUDE + textwrap.dedent(body))
        (directory / "sandy-agent").chmod(0o755)
        return Cli(directory, home, ws)

    return make


def peak(process: subprocess.Popen[bytes]) -> int:
    """The largest resident memory so far, in bytes."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def watched(process: subprocess.Popen[bytes], seconds: float) -> tuple[int, int]:
    """Peak memory and number of descriptors over some seconds, or until the end."""
    most = descriptors = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            most = max(most, peak(process))
            descriptors = max(descriptors, len(os.listdir(f"/proc/{process.pid}/fd")))
        except OSError:
            break
        time.sleep(0.05)
    return most, descriptors


def test_the_script_can_play_an_agent(hostile: Callable[[str], Cli]) -> None:
    # The control: one that behaves is believed.
    sandy = hostile("""
        n = command()
        s.sendall(frame({"id": n, "ev": "stdout"}, b"played\\n") + frame({"id": n, "ev": "end", "reason": "exited", "code": 3}))
        time.sleep(60)
    """)
    got = sandy.run("true")
    assert (got.status, got.out) == (3, b"played\n"), got.error


@pytest.mark.parametrize(
    "body",
    [
        "s.sendall(os.urandom(100000))",
        "s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')",
        "s.sendall(struct.pack('<II', 0xffffffff, 0)); time.sleep(60)",
        "s.sendall(struct.pack('<II', 2, 0xffffffff) + b'{}'); time.sleep(60)",
        "s.sendall(struct.pack('<II', 0, 0)); time.sleep(60)",
        "s.sendall(frame(b'[' * 65536)); time.sleep(60)",
        "s.sendall(frame(b'{\"a\":' * 10000 + b'1' + b'}' * 10000)); time.sleep(60)",
        "s.sendall(frame(b'{\"id\": 1, \"id\": 2, \"ev\": \"end\"}')); time.sleep(60)",
        "s.sendall(frame(b'{\"id\": 1, \"ev\": \"\\xff\\xfe\"}')); time.sleep(60)",
        "s.sendall(frame({'id': 1, 'ev': 'end', 'version': 99})); time.sleep(60)",
        "s.sendall(frame({'id': 1, 'ev': 'end', 'version': 'one'})); time.sleep(60)",
        "s.sendall(frame({'id': 1, 'ev': 'end'})); time.sleep(60)",
        "s.sendall(frame({'id': -1, 'ev': ['end'], 'version': 1})); time.sleep(60)",
        "s.sendall(frame(b'null')); time.sleep(60)",
        "s.sendall(frame({'ev': 'end', 'version': 1})[:9]); s.close(); time.sleep(60)",
        "sys.exit(0)",
        "os.kill(os.getpid(), 9); os.abort()",
        "os.write(2, b'\\x1b[2J\\x1b]0;title\\x07' + b'x' * 50000); sys.exit(1)",
    ],
)
def test_garbage_instead_of_a_handshake(hostile: Callable[[str], Cli], body: str) -> None:
    before = time.monotonic()
    got = hostile(body).run("true", timeout=30)
    assert got.status == 125 and got.out == b"", got
    assert got.error.startswith("sandy: ") and b"\x1b" not in got.err and len(got.err) < 10_000
    assert time.monotonic() - before < 12


@pytest.mark.slow
def test_no_answer_at_all(hostile: Callable[[str], Cli]) -> None:
    before = time.monotonic()
    got = hostile("time.sleep(600)").run("true", timeout=60)
    assert got.status == 125 and "did not answer" in got.error
    assert time.monotonic() - before < 35


@pytest.mark.parametrize(
    "end",
    [
        {"reason": "exited", "code": "x"}, {"reason": 5}, {"reason": "exited", "code": 1e300}, {"reason": "exited", "code": [1]}, {}, {"reason": "new"},
        {"reason": "signalled", "signal": "KILL"}, {"reason": "signalled", "signal": 10**9}, {"reason": "could_not_start", "errno": {}, "code": None},
        {"error": 7}, {"error": "x", "detail": ["y"]}, {"error": "no_sandbox", "detail": "\x1b[31mred\x1b]0;t\x07"}, {"reason": "exited", "code": -1},
        {"reason": "exited", "code": 2**63}, {"reason": "timed_out", "wall_ms": "long"},
    ],
)
def test_an_end_that_makes_no_sense(hostile: Callable[[str], Cli], end: dict[str, object], tmp_path: pathlib.Path) -> None:
    got = hostile(f"n = command(); s.sendall(frame({{'id': n, 'ev': 'end'}} | {end!r})); time.sleep(60)").run(
        "true", options=["--json", tmp_path / "outcome"], timeout=30
    )
    assert 0 <= got.status < 134 or got.status in (137, 255), got  # no abort (134), no fault (139)
    assert b"\x1b" not in got.err and b"terminate called" not in got.err
    if "error" in end or not isinstance(end.get("code", 0), int) or end.get("reason") not in ("exited", "signalled", "timed_out", "could_not_start"):
        assert got.status != 0 and (got.err or got.status == 137), got  # what failed is said


@pytest.mark.parametrize(
    ("flood", "name"),
    [
        ("frame({'id': n, 'ev': 'stdout'}, b'x' * 65536)", "output without end"),
        ("frame({'id': n, 'ev': 'stdout'})", "empty output"),
        ("frame({'id': n, 'ev': 'credit', 'bytes': 2**62})", "credit"),
        ("frame({'id': n, 'ev': 'started', 'pid': 2})", "events that are ignored"),
        ("frame({'id': n + 1000, 'ev': 'stdout'}, b'x' * 65536)", "output of no request"),
        ("frame({'id': n, 'ev': 'x', 'y': 'z' * 60000})", "large headers"),
    ],
)
@pytest.mark.parametrize("reader", ["takes", "stalls"])
def test_floods_do_not_grow_us(hostile: Callable[[str], Cli], flood: str, name: str, reader: str) -> None:
    # Where the reader of our output stalls, what comes must wait in the sandbox.
    first = "s.sendall(frame({'id': n, 'ev': 'stdout'}, b'y' * 262144));" if reader == "stalls" else ""
    sandy = hostile(f"n = command(); {first} data = {flood} * max(1, 65536 // len({flood})); flood(data)")
    process = sandy.start("run", "--", "true", stdout=subprocess.PIPE if reader == "stalls" else subprocess.DEVNULL)
    most, _ = watched(process, 3)
    below = descendants(process.pid)
    process.kill()
    process.wait()
    assert most < 48 * MIB, f"{name}: {most / MIB:.0f} MiB"
    wait_until(lambda: not [pid for pid in below if os.path.exists(f"/proc/{pid}")], 2)


def test_credit_without_reading(hostile: Callable[[str], Cli]) -> None:
    # It says that it took what it never read: our input must not pile up for it.
    sandy = hostile("n = command(); flood(frame({'id': n, 'ev': 'credit', 'bytes': 1048576}))")
    with open("/dev/zero", "rb") as endless:
        process = sandy.start("run", "--", "true", stdin=endless)
        most, _ = watched(process, 3)
    process.kill()
    process.communicate()
    assert most < 48 * MIB, f"{most / MIB:.0f} MiB"


def test_credit_now_and_then_without_reading(hostile: Callable[[str], Cli]) -> None:
    # As often as input comes, and so with an answer for each piece.
    sandy = hostile("""
        n = command()
        while True:
            s.sendall(frame({'id': n, 'ev': 'credit', 'bytes': 1048576}))
            time.sleep(0.004)
    """)
    with open("/dev/zero", "rb") as endless:
        process = sandy.start("run", "--", "true", stdin=endless)
        most, _ = watched(process, 4)
    process.kill()
    process.communicate()
    assert most < 48 * MIB, f"{most / MIB:.0f} MiB"


LIES = """
import sys
sys.path[:0] = {path!r}
from sandy import Sandbox, SandboxError
with Sandbox() as box:
    for _ in range(3):
        process = box.spawn("x")
        try:
            outcome = process.wait(5)
        except SandboxError as error:
            print("error", "agent" in str(error) or str(error))
        else:
            print(outcome.reason, outcome.exit_code)
    print([(info.number, info.running) for info in box.list_processes()])
"""


def test_what_a_liar_says_of_a_processs_end(hostile: Callable[[str], Cli], api: type) -> None:
    # Words that are `sandy`'s own, numbers that are none, a header that grows when it is written again; the list of processes is as it should be after each.
    sandy = hostile("""
        hello()
        ends = [b'"reason": "exited", "code": 7, "running": true, "detached": true, "wall_ms": -1',
                b'"reason": "exited", "code": 1000000000000000000',
                b'"reason": "exited", "code": 0, "x": [' + b','.join([b'1e9'] * 15000) + b']']
        while True:
            header = read()
            if header.get("op") != "exec":
                continue
            s.sendall(frame({"id": header["id"], "ev": "started", "pid": 5}))
            s.sendall(frame(b'{"ev": "end", "id": %d, ' % header["id"] + ends.pop(0) + b'}'))
    """)
    got = subprocess.run(
        [sys.executable, "-c", LIES.format(path=sys.path)], env=sandy.env | {"SANDY_PROGRAMS": str(sandy.programs)},
        capture_output=True, timeout=60, check=False, cwd=sandy.workspace,
    )
    assert got.stdout.decode().splitlines() == ["exited 7", "error True", "exited 0", "[(1, False), (2, False), (3, False)]"], got.stderr.decode()


def test_descriptors_that_it_sends(hostile: Callable[[str], Cli]) -> None:
    sandy = hostile("""
        n = command()
        null = os.open("/dev/null", os.O_RDWR)
        while True:
            s.sendmsg([frame({"id": n, "ev": "started"})], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 4))])
    """)
    process = sandy.start("run", "--", "true")
    _, descriptors = watched(process, 2)
    process.kill()
    process.communicate()
    assert descriptors < 40


def test_it_ignores_the_time_limit(hostile: Callable[[str], Cli]) -> None:
    # The agent counts the time; one that does not is not waited for for ever.
    before = time.monotonic()
    got = hostile("n = command()\nwhile True: read()").run("true", options=["--timeout", "1"], timeout=25)
    assert got.status in (124, 125) and got.err, got
    assert time.monotonic() - before < 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ignores_signals(hostile: Callable[[str], Cli], number: signal.Signals) -> None:
    # Whoever wants `sandy` to end gets it: by the first signal, or by the second of SIGINT.
    sandy = hostile("n = command()\ns.sendall(frame({'id': n, 'ev': 'stdout'}, b'ready'))\nwhile True: read()")
    process = sandy.start("run", "--", "true")
    assert process.stdout.read(5) == b"ready"  # type: ignore[union-attr]
    process.send_signal(number)
    time.sleep(0.3)
    if number == signal.SIGINT:
        process.send_signal(number)
    got = finish(process, timeout=20)
    assert got.status in (125, 137, 128 + number)


def test_it_does_not_end_when_told(hostile: Callable[[str], Cli]) -> None:
    sandy = hostile("""
        import signal
        n = command()
        s.sendall(frame({"id": n, "ev": "end", "reason": "exited", "code": 0}))
        while True: time.sleep(1)
    """)
    before = time.monotonic()
    process = sandy.start("run", "--", "true")
    time.sleep(0.5)
    below = descendants(process.pid)
    got = finish(process, timeout=20)
    assert got.status == 0 and time.monotonic() - before < 10
    wait_until(lambda: not [pid for pid in below if os.path.exists(f"/proc/{pid}")], 2)


TWO_SANDBOXES = """
import sys
sys.path[:0] = {path!r}
from sandy import Sandbox
with Sandbox(read=[{real!r}]) as good, Sandbox(policy={{"version": 1, "process": {{"hostname": "evil"}}}}) as evil:
    assert good.execute("echo fine").output == "fine\\n"
    got = evil.execute("echo x", timeout=5)
    assert got.exit_code != 0, got
    evil.read("/a")
    evil.upload_files([("/a", b"1")])
    assert evil.download_files(["/a"])[0].content is None
    assert good.execute("echo fine").output == "fine\\n"
    print("as it should be")
"""


def test_one_liar_spoils_no_other_sandbox(hostile: Callable[[str], Cli], api: type, programs: pathlib.Path) -> None:
    # One `sandy serve` has both: one with the script as its agent, one with the real agent, which a rule shows to the script. A process
    # of its own has them, as a client keeps the server that it started.
    sandy = hostile(f"""
        if socket.gethostname() != "evil":
            os.execv("{programs}/sandy-agent", ["sandy-agent"])
        hello()
        while True:
            n = read().get("id")
            for header in ({{"id": n, "ev": "end", "reason": 5}}, {{"id": n, "ev": "end", "error": [1]}}, {{"id": "x"}}):
                s.sendall(frame(header))
    """)
    got = subprocess.run(
        [sys.executable, "-c", TWO_SANDBOXES.format(path=sys.path, real=str(programs))], env=sandy.env | {"SANDY_PROGRAMS": str(sandy.programs)},
        capture_output=True, timeout=60, check=False, cwd=sandy.workspace,
    )
    assert got.stdout == b"as it should be\n", got.stderr.decode()
