"""Sandboxes that outlive whoever made them: `sandy create`, exec, attach, logs, ps, stop, rm and prune."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest
from support import Cli, Result, wait_until
from terminal import Terminal

Processes = Callable[[], list[int]]


class Keeper:
    """The kept sandboxes of a test."""

    def __init__(self, sandy: Cli) -> None:
        self.sandy = sandy

    def create(self, *words: str, private: bool = True) -> str:
        made = self.sandy.call("create", *(("--private-workspace",) if private else ()), *words).ok()
        return made.lines[-1]

    def list(self) -> list[dict[str, object]]:
        listed = json.loads(self.sandy.call("ps", "--json").ok().text)
        assert isinstance(listed, list)
        return listed

    def state(self, sandbox: str) -> str:
        return next((str(entry["state"]) for entry in self.list() if sandbox in (entry["id"], entry["name"])), "gone")

    def exec(self, sandbox: str, *words: str, options: tuple[str, ...] = (), stdin: bytes = b"") -> Result:
        return self.sandy.call("exec", *options, sandbox, "--", *words, stdin=stdin)

    def sh(self, sandbox: str, script: str, *options: str) -> Result:
        return self.exec(sandbox, "sh", "-c", script, options=options)

    def sockets(self) -> list[pathlib.Path]:
        return list(pathlib.Path(self.sandy.env["XDG_RUNTIME_DIR"]).glob("sandy/*/*"))

    def server(self, sandbox: str) -> int:
        return next(int(str(entry["pid"])) for entry in self.list() if sandbox in (entry["id"], entry["name"]))


@pytest.fixture
def kept(sandy: Cli, tmp_path: pathlib.Path) -> Iterator[Keeper]:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    sandy.env["XDG_RUNTIME_DIR"] = str(runtime)
    keeper = Keeper(sandy)
    yield keeper
    if ids := [str(entry["id"]) for entry in keeper.list()]:
        sandy.call("rm", "--force", *ids).ok()
    assert [path for pattern in ("sandbox-*", "sockets/*") for path in sandy.state.glob(pattern)] + keeper.sockets() == []


def test_it_lives_between_calls_and_ends_with_rm(kept: Keeper, marker: str, processes: Processes) -> None:
    sandbox = kept.create("--name", "build")
    assert kept.state("build") == "running"
    assert kept.sh("build", f"echo kept > file; sleep {marker} & pwd; exit 3").status == 3
    wait_until(lambda: len(processes()) == 1)  # its shell has ended, which is no word of its exec
    again = kept.exec(sandbox, "cat", "file").ok()
    assert again.text == "kept\n"
    refused = kept.sandy.call("rm", "build")
    assert refused.status == 1
    assert "it runs" in refused.error and "--force" in refused.error
    assert kept.sandy.call("rm", "--force", "build").ok().lines == [sandbox]
    assert processes() == []
    assert kept.list() == []


def test_input_output_and_statuses(kept: Keeper) -> None:
    kept.create("--name", "a")
    assert kept.exec("a", "cat", stdin=b"not for it").ok().out == b""
    assert kept.exec("a", "cat", options=("-i",), stdin=b"for it\0").ok().out == b"for it\0"
    both = kept.sh("a", "echo out; echo err >&2; kill -TERM $$")
    assert (both.out, both.status) == (b"out\n", 143)
    assert b"err\n" in both.err
    assert kept.exec("a", "no-such-program").status == 127
    assert kept.exec("a", "/etc/passwd").status == 126
    assert kept.exec("a", "sleep", "60", options=("--timeout", "300ms")).status == 124
    assert kept.exec("a", "sh", "-c", 'echo "$PWD $A"', options=("--cwd", "/tmp", "--env", "A=[b c]")).ok().text == "/tmp [b c]\n"
    assert kept.exec("a", "printf", "%s|", "--", "[x,y]", "-n").ok().text == "--|[x,y]|-n|"
    assert kept.exec("nobody", "true").status == 125


def test_a_policy_is_the_sandboxs(kept: Keeper, ws: pathlib.Path) -> None:
    (ws / "mine").write_text("mine")
    kept.create("--name", "a", private=False)
    assert kept.exec("a", "cat", str(ws / "mine")).ok().text == "mine"
    kept.exec("a", "rm", str(ws / "mine")).ok()
    kept.sandy.call("rm", "-f", "a").ok()
    assert list(ws.iterdir()) == []
    bad = kept.sandy.call("create", "--read", "/no/such/path")
    assert bad.status == 125
    assert "/no/such/path" in bad.error
    assert kept.list() == []


def test_the_end_of_exec_ends_its_command_and_nothing_else(kept: Keeper, marker: str, processes: Processes) -> None:
    kept.create("--name", "a")
    running = kept.sandy.start("exec", "--env", f"M={marker}", "a", "--", "sh", "-c", 'exec sleep "$M"')
    wait_until(lambda: len(processes()) == 1)
    running.kill()
    wait_until(lambda: processes() == [])
    interrupted = kept.sandy.start("exec", "--env", f"M={marker}", "a", "--", "sh", "-c", 'exec sleep "$M"')
    wait_until(lambda: len(processes()) == 1)
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(10) == 128 + signal.SIGINT
    assert processes() == []
    kept.exec("a", "true").ok()


def test_a_detached_command_goes_on_and_its_output_is_kept(kept: Keeper, marker: str, processes: Processes) -> None:
    kept.create("--name", "a")
    number = kept.sh("a", f"echo begun; echo more >&2; exec sleep {marker}", "--detach").ok().text.strip()
    assert number == "1"
    wait_until(lambda: kept.sandy.call("logs", "a").ok().out + kept.sandy.call("logs", "a").err == b"begun\nmore\n")
    assert len(processes()) == 1
    assert kept.sandy.call("logs", "--offset", "3", "a", "1").ok().text == "un\nmore\n"
    follower = kept.sandy.start("logs", "-f", "a")
    os.kill(processes()[0], signal.SIGKILL)
    assert follower.wait(10) == 0
    assert kept.sandy.call("logs", "a", "1").ok().text == "begun\nmore\n"  # after its end
    assert kept.sandy.call("logs", "a", "7").status == 1
    missing = kept.exec("a", "no-such-program", options=("-d",))
    assert missing.status == 127


def test_the_log_has_the_size_that_the_policy_says(kept: Keeper) -> None:
    kept.create("--name", "a", "--log-size", "1000")
    kept.sh("a", "seq 1 20000", "-d").ok()
    wait_until(lambda: kept.sandy.call("logs", "a").text.endswith("20000\n"))
    whole = "".join(f"{i}\n" for i in range(1, 20001))
    kept_output = kept.sandy.call("logs", "a").ok()
    assert kept_output.text == whole[-1000:]
    assert f"{len(whole) - 1000} bytes of output were not kept" in kept_output.error


def test_a_terminal_in_a_kept_sandbox(kept: Keeper, terminal: Callable[..., Terminal]) -> None:
    kept.create("--name", "a")
    tty = terminal("exec", "-it", "a", "--", "sh", "-c", "stty size; tty; read x; echo got $x; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
    assert b"30 90" in tty.expect(rb"/dev/pts/\d")
    tty.type(b"word\r")
    tty.expect(b"got word")
    tty.expect(b"ready")
    tty.resize(41, 123)
    tty.expect(b"41 123")
    tty.type(b"\x03")
    assert tty.process.wait(10) == 130
    assert tty.restored()


def test_attach_and_detach(kept: Keeper, terminal: Callable[..., Terminal]) -> None:
    kept.create("--name", "a")
    kept.sh("a", "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done", "-d").ok()
    watcher = kept.sandy.start("attach", "--no-input", "a")
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == b"line 1\n"
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(10) == 0
    before = len(kept.sandy.call("logs", "a").ok().lines)
    wait_until(lambda: len(kept.sandy.call("logs", "a").ok().lines) > before)  # it goes on
    sender = kept.sandy.start("attach", "--no-input", "a")
    assert sender.stdout is not None
    sender.stdout.readline()
    sender.send_signal(signal.SIGINT)  # as docker attach: it is the process'
    assert sender.wait(10) == 130
    none = kept.sandy.call("attach", "a")
    assert none.status == 125
    assert "no process runs" in none.error


DETACH = b"\x10\x11"  # Ctrl-P Ctrl-Q


@pytest.mark.parametrize("options", [(), ("--no-input",)])
def test_the_keys_leave_what_has_no_terminal_alone(kept: Keeper, terminal: Callable[..., Terminal], options: tuple[str, ...]) -> None:
    kept.create("--name", "a")
    kept.sh("a", "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done", "-d").ok()
    for keys in (DETACH, b"words, and then " + DETACH):
        one = terminal("attach", *options, "a", "1")
        one.expect(rb"Ctrl-P Ctrl-Q leaves it alone")
        one.expect(rb"line \d+")
        one.type(keys)
        one.expect(rb"left process 1 alone")
        assert one.process.wait(10) == 0 and one.restored()
    before = len(kept.sandy.call("logs", "a").ok().lines)
    wait_until(lambda: len(kept.sandy.call("logs", "a").ok().lines) > before)  # it goes on
    one = terminal("attach", *options, "a", "1")
    one.expect(rb"line \d+")
    one.type(b"\x03")
    assert one.process.wait(10) == 130 and one.restored()


def test_what_is_begun_in_the_background_may_have_input(kept: Keeper, terminal: Callable[..., Terminal]) -> None:
    kept.create("--name", "a")
    kept.sh("a", "while read -r word; do echo got $word; done; echo no more", "-di").ok()
    one = terminal("attach", "a")
    one.type(b"wrongx\x7f\x7f\x7f\x7f\x7f\x7fword\n")  # a line of the terminal's, which can be mended
    one.expect(rb"got word")
    one.type(DETACH)
    assert one.process.wait(10) == 0 and one.restored()
    sender = kept.sandy.start("attach", "a", stdin=subprocess.PIPE)
    assert sender.communicate(b"other\n", timeout=10)[0].endswith(b"got other\nno more\n") and sender.returncode == 0


def test_what_is_begun_in_the_background_may_have_a_terminal(kept: Keeper, terminal: Callable[..., Terminal]) -> None:
    kept.create("--name", "a")
    kept.sh("a", "tty; read -r word; echo got $word; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done", "-dit").ok()
    for _ in range(2):
        one = terminal("attach", "a", "1")
        one.expect(rb"/dev/pts/\d")
        one.type(DETACH)
        assert one.process.wait(10) == 0 and one.restored()
    one = terminal("attach", "a", "1")
    one.type(b"word\r")
    one.expect(rb"(?s)got word.*ready")
    one.resize(41, 123)
    one.expect(rb"41 123")
    one.type(b"\x03")
    assert one.process.wait(10) == 130 and one.restored()


def test_stop_and_resume(kept: Keeper, marker: str, processes: Processes) -> None:
    sandbox = kept.create("--name", "a", "--env", "A=b", "--hostname", "named")
    kept.sh("a", f"echo work > file; mkdir -p d/e; ln -s /etc/passwd link; sleep {marker} &").ok()
    assert kept.sandy.call("stop", "a").ok().lines == [sandbox]
    assert processes() == []
    assert kept.state("a") == "stopped"
    assert kept.sandy.call("ps").ok().text.count("\n") == 1
    stopped = kept.exec("a", "true")
    assert stopped.status == 125
    assert f"sandy create --resume {sandbox}" in stopped.error
    assert kept.sandy.call("create", "--resume", "a").ok().lines[-1] == sandbox
    again = kept.sh("a", "cat file; readlink link; echo $A; hostname; cat /file").ok()
    assert again.text == "work\n/etc/passwd\nb\nnamed\nwork\n"
    twice = kept.sandy.call("create", "--resume", "a")
    assert twice.status == 125
    assert "it runs already" in twice.error


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_servers_end_leaves_the_workspace(kept: Keeper, number: signal.Signals, marker: str, processes: Processes) -> None:
    kept.create("--name", "a")
    kept.sh("a", f"echo work > file; sleep {marker} &").ok()
    os.kill(kept.server("a"), number)
    wait_until(lambda: kept.state("a") == "stopped" and processes() == [])
    kept.create("--name", "other")  # the next start cleans what is left of it, but its workspace
    assert kept.sockets() == [pathlib.Path(str(kept.list()[-1]["socket"]))]
    kept.sandy.call("create", "--resume", "a").ok()
    assert kept.exec("a", "cat", "file").ok().text == "work\n"


def test_what_a_command_put_in_the_workspaces_place_is_not_followed(kept: Keeper, tmp_path: pathlib.Path) -> None:
    """B134 again: the set-up of the next one follows no link that this one made."""
    secret = tmp_path / "secret"
    secret.mkdir()
    kept.create("--name", "a")
    sandbox = str(kept.list()[0]["id"])
    kept.sandy.call("stop", "a").ok()
    root = kept.sandy.state / f"sandbox-{sandbox}" / "root"
    shutil.rmtree(root / "workspace")
    (root / "workspace").symlink_to(secret)
    (root / "tmp").rmdir()
    (root / "tmp").symlink_to(secret)
    kept.sandy.call("create", "--resume", "a").ok()
    kept.sh("a", "echo x > /workspace/x; echo x > /tmp/x; ls /workspace").ok()
    assert list(secret.iterdir()) == []


def test_the_idle_timeout_ends_what_nobody_uses(kept: Keeper, marker: str, processes: Processes) -> None:
    kept.create("--name", "a", "--idle-timeout", "700ms")
    kept.sh("a", f"sleep {marker} &").ok()
    kept.exec("a", "sleep", "1.5").ok()  # used, and from its end on again for so long
    time.sleep(0.3)
    assert kept.state("a") == "running"
    wait_until(lambda: kept.state("a") == "stopped")
    assert processes() == []


def test_names(kept: Keeper) -> None:
    sandbox = kept.create("--name", "a.b-c_1")
    taken = kept.sandy.call("create", "--private-workspace", "--name", "a.b-c_1")
    assert taken.status == 125
    assert sandbox in taken.error
    assert kept.sandy.call("create", "--name=").status == 2
    for name in ("a b", "-x", "a/b", "0123456789abcdef", "x" * 64, "é"):
        refused = kept.sandy.call("create", "--private-workspace", f"--name={name}")
        assert refused.status == 125, name
    kept.sandy.call("stop", "a.b-c_1").ok()
    assert kept.sandy.call("create", "--private-workspace", "--name", "a.b-c_1").status == 125  # a stopped one has it still
    assert len(kept.list()) == 1


def test_two_of_a_name_at_a_time(kept: Keeper) -> None:
    attempts = [kept.sandy.start("create", "--private-workspace", "--name", "same") for _ in range(6)]
    assert sorted(attempt.wait(60) for attempt in attempts) == [0] + [125] * 5
    assert len(kept.list()) == 1


def test_prune_asks(kept: Keeper, terminal: Callable[..., Terminal]) -> None:
    kept.create("--name", "runs")
    kept.create("--name", "stopped")
    kept.sandy.call("stop", "stopped").ok()
    refused = kept.sandy.call("prune")
    assert refused.status == 2
    assert "--yes" in refused.error
    tty = terminal("prune")
    tty.expect(b"Type yes")
    tty.type(b"no\r")
    assert tty.process.wait(10) == 1
    assert kept.state("stopped") == "stopped"
    kept.sandy.call("prune", "--yes").ok()
    assert (kept.state("runs"), kept.state("stopped")) == ("running", "gone")


def test_its_socket_is_its_users_alone(kept: Keeper) -> None:
    kept.create("--name", "a")
    path = pathlib.Path(str(kept.list()[0]["socket"]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.root
def test_another_user_is_not_served(kept: Keeper, open_directory: pathlib.Path) -> None:
    kept.sandy.env["XDG_RUNTIME_DIR"] = str(open_directory)  # an address has 108 bytes
    kept.create("--name", "a")
    path = str(kept.list()[0]["socket"])
    # Whatever the modes: the peer's user is looked at.
    client = """
import json, os, socket, struct, sys
hello = json.dumps({"id": 1, "op": "hello", "version": 1}).encode()
client = socket.socket(socket.AF_UNIX)
if sys.argv[2] == "other":
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
client.connect(sys.argv[1])
client.settimeout(5)
try:
    client.sendall(struct.pack("<II", len(hello), 0) + hello)
    print(len(client.recv(100)))
except (BrokenPipeError, ConnectionResetError):
    print(0)
"""
    control = subprocess.run(["/usr/bin/python3", "-c", client, path, "same"], capture_output=True, text=True, check=True)
    assert int(control.stdout) > 0
    for parent in (pathlib.Path(path), *pathlib.Path(path).parents):
        if not os.stat(parent).st_mode & 0o001:
            os.chmod(parent, os.stat(parent).st_mode | (0o666 if parent == pathlib.Path(path) else 0o001))
    other = subprocess.run(["/usr/bin/python3", "-c", client, path, "other"], capture_output=True, text=True, check=False)
    assert other.returncode == 0, other.stderr
    assert int(other.stdout) == 0
    kept.sandy.call("rm", "-f", "a").ok()


def test_where_it_listens_never_reaches_a_sandbox(sandy: Cli, kept: Keeper, tmp_path: pathlib.Path) -> None:
    """A sandbox that was there before the socket, and whose policy shows the directory above."""
    runtime = tmp_path / "runtime"
    first = sandy.start("run", "--read", str(runtime), "--", "sh", "-c", f"echo ready; read x; ls -A {runtime}/sandy; find {runtime}", stdin=subprocess.PIPE)
    assert first.stdout is not None and first.stdin is not None
    assert first.stdout.readline() == b"ready\n"
    kept.create("--name", "a")
    path = pathlib.Path(str(kept.list()[0]["socket"]))
    assert path.parent.parent == runtime / "sandy"
    with socket.socket(socket.AF_UNIX) as client:
        directory = os.open(path.parent, os.O_PATH)
        client.connect(f"/proc/self/fd/{directory}/{path.name}")  # the control: it is there. (An address has 108 bytes.)
        os.close(directory)
    out, _ = first.communicate(b"\n", timeout=20)
    assert path.name.encode() not in out
    refused = sandy.call("run", "--read", str(runtime / "sandy"), "--", "true")
    assert refused.status == 125
    assert "control sockets" in refused.error
    kept.sandy.call("rm", "-f", "a").ok()
    assert kept.sockets() == []


def test_a_path_longer_than_a_sockets_address(sandy: Cli, kept: Keeper, tmp_path: pathlib.Path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir(mode=0o700)
    sandy.env["XDG_RUNTIME_DIR"] = str(long)
    kept.create("--name", "a")
    assert len(str(kept.list()[0]["socket"])) > 108
    assert kept.exec("a", "echo", "here").ok().text == "here\n"
    kept.sandy.call("rm", "-f", "a").ok()


def test_two_state_directories_do_not_clean_each_other(sandy: Cli, kept: Keeper, tmp_path: pathlib.Path) -> None:
    kept.create("--name", "a")
    other = Keeper(Cli(sandy.programs, tmp_path / "other", sandy.workspace))
    (tmp_path / "other").mkdir()
    other.sandy.env["XDG_RUNTIME_DIR"] = sandy.env["XDG_RUNTIME_DIR"]
    other.create("--name", "b")
    other.sandy.call("rm", "-f", "b").ok()
    assert kept.exec("a", "echo", "here").ok().text == "here\n"
    kept.sandy.call("rm", "-f", "a").ok()


@pytest.mark.root
@pytest.mark.parametrize("what", ["file", "directory"])
def test_nothing_is_mounted_in_what_commands_leave(kept: Keeper, tmp_path: pathlib.Path, what: str) -> None:
    """A link in the place of a mount's parent would have the next set-up make files on the host. (Only root can make what is not below a home or /tmp.)"""
    place = pathlib.Path(tempfile.mkdtemp(dir="/srv", prefix="sandy-test-"))
    try:
        place.chmod(0o755)
        (place / "file").write_text("x")
        (place / "directory").mkdir()
        policy = tmp_path / "policy.json"
        policy.write_text(json.dumps({"version": 1, "filesystem": {"workspace": {"mode": "private", "mount": "/srv"}, "read": [str(place / what)]}}))
        refused = kept.sandy.call("create", "--policy", str(policy))
        assert refused.status == 125
        assert f"would have {place}" in refused.error
        assert "mount the workspace elsewhere" in refused.error
        assert kept.list() == []
        kept.sandy.call("run", "--policy", str(policy), "--", "ls", str(place / what)).ok()  # what isn't kept may have it
    finally:
        shutil.rmtree(place)


def test_a_workspace_in_memory_is_not_kept(kept: Keeper) -> None:
    refused = kept.sandy.call("create", "--private-workspace", "--mount", "/tmp/w")
    assert refused.status == 125
    assert "would be in memory" in refused.error


def test_it_holds_nothing_of_its_callers_open(kept: Keeper, tmp_path: pathlib.Path) -> None:
    """A lock of the shell's that made it is free when the shell has ended."""
    lock = tmp_path / "lock"
    script = f'exec 9>"{lock}"; flock -n 9 && exec "{kept.sandy.program}" create --private-workspace --name a'
    made = subprocess.run(["sh", "-c", script], env=kept.sandy.env, cwd=kept.sandy.workspace, capture_output=True, text=True, timeout=60, check=True)
    assert made.stdout.strip() == kept.list()[0]["id"]
    subprocess.run(["flock", "-n", lock, "true"], check=True)


def test_without_a_runtime_directory_it_listens_with_the_state(kept: Keeper) -> None:
    # Neither the variable's nor the usual one is a directory of ours.
    if os.path.isdir(f"/run/user/{os.geteuid()}"):
        pytest.skip("this user has a runtime directory")
    runtime = kept.sandy.env["XDG_RUNTIME_DIR"]
    kept.sandy.env["XDG_RUNTIME_DIR"] = "/proc"
    kept.create("--name", "a")
    path = pathlib.Path(str(kept.list()[0]["socket"]))
    assert path.parent == kept.sandy.state / "sockets"
    assert kept.exec("a", "echo", "here").ok().text == "here\n"
    kept.sandy.call("rm", "-f", "a").ok()
    assert not path.exists()
    kept.sandy.env["XDG_RUNTIME_DIR"] = runtime


def test_a_record_that_cannot_be_read_is_listed_and_removed(kept: Keeper) -> None:
    sandbox = kept.create("--name", "a")
    kept.sandy.call("stop", "a").ok()
    (kept.sandy.state / f"sandbox-{sandbox}" / "kept").write_text('{"version": 99}')
    assert [entry["id"] for entry in kept.list()] == [sandbox]
    assert kept.sandy.call("create", "--resume", sandbox).status == 125
    kept.sandy.call("rm", sandbox).ok()
    assert kept.list() == []


def test_nothing_is_skipped_beside_resume(kept: Keeper) -> None:
    kept.create("--name", "a")
    kept.sandy.call("stop", "a").ok()
    for option in (["--memory", "2G"], ["--private-workspace"], ["--audit", "log"]):
        refused = kept.sandy.call("create", "--resume", "a", *option)
        assert refused.status == 125
        assert f"{option[0]}: contradicts --resume" in refused.error
    kept.sandy.call("create", "--resume", "a", "--name", "b", "--idle-timeout", "1h").ok()
    assert kept.state("b") == "running"


def test_a_number_that_cannot_be_written_is_no_success(kept: Keeper) -> None:
    kept.create("--name", "a")
    with open("/dev/full", "wb") as full:
        process = kept.sandy.start("exec", "-d", "a", "--", "true", stdout=full)
        assert process.wait(20) == 1


def test_a_time_limit_ends_it(kept: Keeper) -> None:
    kept.create("--name", "a", "--wall-time", "1")
    start = time.monotonic()
    assert kept.exec("a", "sleep", "60").status == 124
    assert time.monotonic() - start < 20
    wait_until(lambda: kept.state("a") == "stopped")
