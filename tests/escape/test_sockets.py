"""Rows 19 to 21 and 25: sockets that somebody on the host listens on. Each is reached from outside first."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest
from support import USUAL_PATH, Cli, need, wait_until

CONNECT = """
import socket, sys
kind, address = sys.argv[1], sys.argv[2]
address = "\\0" + address[1:] if address.startswith("@") else address
s = socket.socket(socket.AF_UNIX, getattr(socket, kind))
s.settimeout(5)
try:
    s.connect(address)
    if kind == "SOCK_DGRAM":
        s.send(b"hello")
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""


class Listener:
    """A Unix socket on the host that counts who came."""

    def __init__(self, address: str | bytes, kind: int) -> None:
        self.socket = socket.socket(socket.AF_UNIX, kind)
        self.socket.bind(address)
        self.visits = 0
        if kind != socket.SOCK_DGRAM:
            self.socket.listen()
        self.socket.settimeout(0.1)
        self.kind = kind
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while not self.stop.is_set():
            with contextlib.suppress(TimeoutError):
                if self.kind == socket.SOCK_DGRAM:
                    self.socket.recv(10)
                else:
                    self.socket.accept()[0].close()
                self.visits += 1

    def close(self) -> None:
        self.stop.set()
        self.thread.join()
        self.socket.close()


@pytest.fixture
def short(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory whose name leaves room for a socket's (108 bytes)."""
    path = pathlib.Path("/tmp") / f"sandy-test-{os.getpid()}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def outside(kind: str, address: str) -> str:
    return subprocess.run(["/usr/bin/python3", "-c", CONNECT, kind, address], capture_output=True, check=True, text=True).stdout.strip()


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_t21_abstract_sockets(sandy: Cli, kind: str) -> None:
    address = f"@sandy-test-{os.getpid()}-{kind}"
    listener = Listener("\0" + address[1:], getattr(socket, kind))
    try:
        assert outside(kind, address) == "connected"
        wait_until(lambda: listener.visits == 1)
        assert sandy.run("python3", "-c", CONNECT, kind, address).text.strip() == "ConnectionRefusedError"
        assert "sandy-test" not in sandy.run("cat", "/proc/net/unix").text
        assert listener.visits == 1
    finally:
        listener.close()


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_t20_sockets_that_are_not_shown(sandy: Cli, short: pathlib.Path, kind: str) -> None:
    address = str(short / "s")
    listener = Listener(address, getattr(socket, kind))
    try:
        assert outside(kind, address) == "connected"
        assert sandy.run("python3", "-c", CONNECT, kind, address).text.strip() == "FileNotFoundError"
    finally:
        listener.close()


@pytest.mark.parametrize("option", ["--read", "--write"])
@pytest.mark.parametrize("name", ["s", "link", "sub/../s", "to-sub/../s"])
def test_t20_a_socket_named_by_a_rule_is_consent(sandy: Cli, short: pathlib.Path, option: str, name: str) -> None:
    (short / "sub").mkdir()
    (short / "to-sub").symlink_to("sub")
    (short / "link").symlink_to("s")
    listener, other = Listener(str(short / "s"), socket.SOCK_STREAM), Listener(str(short / "other"), socket.SOCK_STREAM)
    try:
        for shown in ([], ["--read", short]):
            before = listener.visits
            options = [*shown, option, f"{short}/{name}"]
            assert sandy.run("python3", "-c", CONNECT, "SOCK_STREAM", f"{short}/{name}", options=options).ok().text.strip() == "connected"
            wait_until(lambda: listener.visits == before + 1)  # noqa: B023
            assert "connected" not in sandy.run("python3", "-c", CONNECT, "SOCK_STREAM", str(short / "other"), options=options).text
        assert other.visits == 0
        policy = short / "policy.json"
        policy.write_text(json.dumps({"version": 1, "filesystem": {option[2:]: [f"{short}/{name}"]}}))
        weakens = [line for line in sandy.call("check", policy).ok().lines if line.startswith("weakens: ")]
        assert weakens == [
            f"weakens: filesystem.{option[2:]}[0]: commands can connect to the host's socket {short}/{name}, and command the program behind it"
        ]
    finally:
        listener.close()
        other.close()


def test_t20_other_special_files_are_refused(sandy: Cli, short: pathlib.Path) -> None:
    os.mkfifo(short / "fifo")
    for option in ("--read", "--write"):
        got = sandy.run("true", options=[option, short / "fifo"])
        assert got.status == 125 and "FIFO" in got.error and "hint: " in got.error


@pytest.mark.parametrize("option", ["--read", "--write", "--workspace"])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_t20_sockets_in_a_shown_directory(sandy: Cli, short: pathlib.Path, kind: str, option: str) -> None:
    # A read-only mount does not stop connect(2).
    address = str(short / "deep/s")
    (short / "deep").mkdir()
    (short / "deep/file").write_text("shown\n")
    listener = Listener(address, getattr(socket, kind))
    try:
        assert outside(kind, address) == "connected"
        wait_until(lambda: listener.visits == 1)
        got = sandy.run("python3", "-c", CONNECT, kind, address, options=[option, short])
        assert got.ok().text.strip() == "PermissionError"
        # Nor by what a command can do to it, its directory, or another name for it.
        got = sandy.sh(
            f"cd {short}; cat deep/file; rm -f deep/s; chmod 777 deep/s; mv deep/s t; mv deep moved; ln deep/s linked; ln -s deep/s sym;"
            f"for s in deep/s t moved/s linked sym; do python3 -c '{CONNECT}' {kind} $s; done",
            option, short,
        )
        refused = {"PermissionError", "ConnectionRefusedError", "FileNotFoundError", "NotADirectoryError"}
        assert got.lines[0] == "shown" and len(got.lines) == 6 and set(got.lines[1:]) <= refused, got
        assert listener.visits == 1
        assert f"hidden socket: {address}\n" in sandy.call("plan", option, short, "--", "true").ok().text
        # It is the host's as before.
        assert outside(kind, address) == "connected"
        wait_until(lambda: listener.visits == 2)
    finally:
        listener.close()


@pytest.mark.parametrize("name", [b"new\nline", b"\n", b"bad-\xff\xfe", b" a b ", b"quo'te\"s", b"@at", b"link/s", b"link/../s", b"sub/./s", b"s" * 40])
def test_t20_sockets_by_any_name(sandy: Cli, short: pathlib.Path, name: bytes) -> None:
    (short / "sub/deep").mkdir(parents=True)
    (short / "link").symlink_to("sub/deep")
    address = os.path.join(os.fsencode(short), name)
    listener = Listener(address, socket.SOCK_STREAM)
    try:
        script = CONNECT.replace("sys.argv[2]", "os.fsencode(sys.argv[2])").replace('"@"', 'b"@"').replace("import socket", "import os, socket")
        control = subprocess.run(["/usr/bin/python3", "-c", script.replace('"\\0"', 'b"\\0"'), "SOCK_STREAM", address], capture_output=True, check=True)
        assert control.stdout == b"connected\n"
        wait_until(lambda: listener.visits == 1)
        got = sandy.run("python3", "-c", script.replace('"\\0"', 'b"\\0"'), "SOCK_STREAM", address, options=["--read", short])
        assert got.ok().text == "PermissionError\n"
        assert listener.visits == 1
    finally:
        listener.close()


def test_t20_more_sockets_than_can_be_hidden(sandy: Cli, short: pathlib.Path) -> None:
    (short / "many").mkdir()
    (short / "few").mkdir()
    bound = []
    for number in range(257):
        bound.append(socket.socket(socket.AF_UNIX))
        bound[-1].bind(str(short / "many" / str(number)))
    try:
        got = sandy.run("true", options=["--read", short])
        assert got.status == 125 and f'257 of them in "{short}/many"' in got.error and f'hint: deny "{short}/many"' in got.error
        assert sandy.run("true", options=["--read", short, "--deny", short / "many"]).status == 0
        assert sandy.run("true").status == 0  # not shown
        bound.pop().close()
        got = sandy.sh(f"for s in {short}/many/*; do test -S $s && test $s != {short}/many/256 && echo shown; done; ls {short}/many | wc -l", "--read", short)
        assert got.text == "257\n", got
    finally:
        for one in bound:
            one.close()


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_t20_a_socket_that_goes_away_while_a_sandbox_starts(sandy: Cli, short: pathlib.Path, option: str) -> None:
    # bubblewrap makes an empty file where it has nothing to mount on. It must not stay, and what can't be hidden must not start.
    real = shutil.which("bwrap", path=USUAL_PATH)
    need(real, "bubblewrap")
    (short / "shown").mkdir()
    address = short / "shown/s"
    wrapper = short / "bwrap"
    wrapper.write_text(f"#!/bin/sh\ncase $* in *--args*) /bin/rm -f {address} ;; esac\nexec {real} \"$@\"\n")
    wrapper.chmod(0o755)
    listener = Listener(str(address), socket.SOCK_STREAM)
    try:
        got = sandy.sh(f"test -e {address} || echo gone", option, short / "shown", env={"SANDY_BWRAP": str(wrapper)})
        assert os.listdir(short / "shown") == []
        assert (got.status, got.text) == ((0, "gone\n") if option == "--write" else (125, "")), got
        if option == "--read":
            assert "went away while it started" in got.error and "hint: start it again" in got.error
    finally:
        listener.close()


class Elsewhere:
    """A Unix socket that was bound in another network namespace."""

    def __init__(self, address: str) -> None:
        script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint(flush=True)\nsys.stdin.read()"
        argv = ["unshare", "--user", "--map-root-user", "--net", "/usr/bin/python3", "-c", script, address]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.process.stdout.readline():  # type: ignore[union-attr]
            self.close()
            need(False, "unshare, and the right to use it")

    def close(self) -> None:
        self.process.communicate()


@pytest.mark.parametrize("how", ["later", "relative", "namespace"])
def test_t20_known_limit_sockets_that_cannot_be_hidden(sandy: Cli, short: pathlib.Path, how: str) -> None:
    # README, Limits: a mount hides only what is there when a sandbox starts. A name that is relative to its maker's directory tells no place, and
    # another network namespace's sockets are in a list of its own.
    address = str(short / "s")
    listener: Listener | Elsewhere | None = None
    if how == "namespace":
        listener = Elsewhere(address)
    if how == "relative":
        before = os.getcwd()
        os.chdir(short)
        try:
            listener = Listener("s", socket.SOCK_STREAM)
        finally:
            os.chdir(before)
    process = sandy.start(
        "run", "--read", short, "--", "sh", "-c", f"echo ready; read x; exec python3 -c '{CONNECT}' SOCK_STREAM {address}", stdin=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
        listener = listener or Listener(address, socket.SOCK_STREAM)
        out, _ = process.communicate(b"\n", timeout=60)
        assert out == b"connected\n"
        # The ways out: the directory isn't shown, or the socket is denied.
        assert sandy.run("python3", "-c", CONNECT, "SOCK_STREAM", address).text.strip() == "FileNotFoundError"
        got = sandy.run("python3", "-c", CONNECT, "SOCK_STREAM", address, options=["--read", short, "--deny", address])
        assert got.text.strip() == "PermissionError"
    finally:
        if listener is not None:
            listener.close()


def test_t20_a_denied_socket_in_a_shown_directory(sandy: Cli, short: pathlib.Path) -> None:
    address = str(short / "s")
    listener = Listener(address, socket.SOCK_STREAM)
    try:
        got = sandy.run("python3", "-c", CONNECT, "SOCK_STREAM", address, options=["--read", short, "--deny", address])
        assert got.ok().text.strip() in ("PermissionError", "ConnectionRefusedError")
        assert listener.visits == 0
    finally:
        listener.close()


def test_t20_usual_sockets_are_not_there(sandy: Cli) -> None:
    env = {
        "SSH_AUTH_SOCK": "/tmp/ssh-agent/s", "WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":77", "XAUTHORITY": "/tmp/x", "DOCKER_HOST": "unix:///run/docker.sock",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus", "XDG_RUNTIME_DIR": "/run/user/1000", "GPG_AGENT_INFO": "gpg-value", "TMUX": "/tmp/tmux-0/default",
    }
    got = sandy.sh("env; find / -xdev -type s 2>/dev/null; find /run /tmp /var /dev/shm -type s; ls -A /run /tmp/.X11-unix", env=env)
    for name, value in env.items():
        assert f"{name}=" not in got.text and value not in got.text
    assert [line for line in got.lines if line.startswith("/") and not line.startswith("/run:")] == []


def test_t19_session_bus(sandy: Cli, short: pathlib.Path) -> None:
    need(shutil.which("dbus-daemon") and shutil.which("busctl"), "dbus-daemon and busctl")
    address = f"unix:path={short}/bus"
    daemon = subprocess.Popen(["dbus-daemon", "--session", "--nofork", f"--address={address}"], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (short / "bus").exists(), 15)
        env = {"DBUS_SESSION_BUS_ADDRESS": address, "XDG_RUNTIME_DIR": str(short)}
        listing = ["busctl", "--user", "list", "--no-pager"]
        control = subprocess.run(listing, env=sandy.env | env, capture_output=True, check=False)
        need(control.returncode == 0, f"a session bus that answers: {control.stderr.decode()}")
        got = sandy.run(*listing, env=env)
        assert got.status != 0 and b"org.freedesktop" not in got.out
        # Also with the address put in by hand, and the other ways to it.
        got = sandy.sh(
            f"busctl --address={address} list; busctl list; busctl --machine=$USER@.host --user list; systemd-run --user --wait id;"
            f"systemd-run --system id; gio cat /etc/passwd; ls {short} /run/dbus /run/systemd",
            env=env, timeout=120,
        )
        assert got.out.strip() == b"" or b"org.freedesktop" not in got.out
        assert got.status != 0
    finally:
        daemon.terminate()
        daemon.wait()


def test_t25_no_socket_pair_to_the_host(sandy: Cli) -> None:
    # Every descriptor that any process in the sandbox holds: no path outside, no socket but the agent's one to us.
    script = (
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try:\n"
        "        fds = os.listdir(f'/proc/{pid}/fd')\n"
        "    except PermissionError:\n"
        "        print(pid, 'closed')\n"
        "        continue\n"
        "    for fd in fds:\n"
        "        path = f'/proc/{pid}/fd/{fd}'\n"
        "        print(pid, fd, os.readlink(path) if os.path.lexists(path) else '')\n"
    )
    got = sandy.run("python3", "-c", script).ok()
    assert "1 closed" in got.lines
    assert not [line for line in got.lines if "socket:" in line or "memfd:" in line]


def test_t25_the_supervisor_has_only_its_wake_up(sandy: Cli, probe, ws: pathlib.Path) -> None:  # type: ignore[no-untyped-def]
    # A command's parent is of its own user, too; what it holds is out of reach.
    got = sandy.sh("ls -l /proc/$PPID/fd; cat /proc/$PPID/environ /proc/$PPID/maps; ls /proc/$PPID/cwd /proc/$PPID/root; head -c1 /proc/$PPID/mem")
    assert got.out == b"" and got.error.count("denied") >= 6, got


def test_t18_control_sockets_and_state(sandy: Cli, home: pathlib.Path) -> None:
    sandy.run("true").ok()
    assert sandy.state.is_dir()
    got = sandy.sh(f"ls {sandy.state}; cat {sandy.state}/*", "--read", home)
    assert not [line for line in got.lines if line.startswith(("etc-", "bwrap-", "sandbox-"))]
    got = sandy.run("true", options=["--read", sandy.state])
    assert got.status == 125
