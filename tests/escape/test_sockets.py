"""Rows 19 to 21 and 25: sockets that somebody on the host listens on. Each is reached from outside first."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest
from support import Cli, need, wait_until

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

    def __init__(self, address: str, kind: int) -> None:
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


def test_t20_a_socket_named_by_a_rule_is_refused(sandy: Cli, short: pathlib.Path) -> None:
    listener = Listener(str(short / "s"), socket.SOCK_STREAM)
    try:
        (short / "link").symlink_to("s")
        for name in ("s", "link"):
            for option in ("--read", "--write"):
                got = sandy.run("true", options=[option, short / name])
                assert got.status == 125 and "socket" in got.error
    finally:
        listener.close()


@pytest.mark.xfail(strict=True, reason="connect(2) asks for no writable mount: a socket in a shown directory is reached unless it is denied by name")
@pytest.mark.parametrize("option", ["--read", "--write", "--workspace"])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_t20_sockets_in_a_shown_directory(sandy: Cli, short: pathlib.Path, kind: str, option: str) -> None:
    # A read-only mount does not stop connect(2).
    address = str(short / "deep/s")
    (short / "deep").mkdir()
    listener = Listener(address, getattr(socket, kind))
    try:
        assert outside(kind, address) == "connected"
        wait_until(lambda: listener.visits == 1)
        got = sandy.run("python3", "-c", CONNECT, kind, address, options=[option, short])
        assert "connected" not in got.text
        assert got.status == 125 or got.text.strip() in ("ConnectionRefusedError", "PermissionError", "FileNotFoundError"), got
        assert listener.visits == 1
    finally:
        listener.close()


def test_t20_a_denied_socket_in_a_shown_directory(sandy: Cli, short: pathlib.Path) -> None:
    # What a policy can do about it today.
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
