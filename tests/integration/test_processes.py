"""The group "Process, signals, pty, output" of the cases, and which descriptors a command gets."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from support import Cli, descendants, finish, need, program_of, wait_until

Processes = Callable[[], list[int]]


def test_b019_background_processes_end_with_the_run(sandy: Cli, marker: str, processes: Processes) -> None:
    before = time.monotonic()
    got = sandy.sh(f"sleep {marker} & setsid sleep {marker} & echo up").ok()
    assert got.out == b"up\n"
    assert time.monotonic() - before < 5
    assert processes() == []


def test_b019_a_server_lives_until_close(api: type, marker: str, processes: Processes) -> None:
    with api() as be:
        before = time.monotonic()
        assert be.execute(f"sleep {marker} & sleep 1; echo up").output == "up\n"
        assert time.monotonic() - before < 5
        assert be.execute("true").exit_code == 0
        assert len(processes()) == 1
    assert processes() == []


def test_b022_descendants_that_ignore_signals(sandy: Cli, marker: str, processes: Processes) -> None:
    before = time.monotonic()
    got = sandy.sh(f"trap '' TERM HUP INT; (trap '' TERM; sleep {marker})& (setsid sh -c 'sleep {marker} & wait' &); sleep {marker}", "--timeout", "2")
    assert got.status == 124 and time.monotonic() - before < 6
    assert processes() == []


def test_b024_a_killed_cli_leaves_nothing(sandy: Cli, marker: str, processes: Processes) -> None:
    process = sandy.start("run", "--", "sh", "-c", f"sleep {marker} & setsid sleep {marker} & wait")
    wait_until(lambda: len([pid for pid in processes() if program_of(pid) == "sleep"]) == 2)
    below = descendants(process.pid)
    assert len(below) >= 4  # bubblewrap, the agent, the shell, the sleeps
    process.kill()
    process.communicate()
    wait_until(lambda: processes() == [] and not [pid for pid in below if os.path.exists(f"/proc/{pid}")], 2, "the end of all processes")


@pytest.mark.parametrize("victim", ["bwrap", "sandy-agent"])
def test_b024_a_killed_helper_ends_the_run(sandy: Cli, marker: str, processes: Processes, victim: str) -> None:
    process = sandy.start("run", "--", "sleep", marker)
    wait_until(lambda: [pid for pid in processes() if program_of(pid) == "sleep"])
    pids = [pid for pid in descendants(process.pid) if program_of(pid) == victim]
    assert pids
    os.kill(pids[0], signal.SIGKILL)
    got = finish(process, timeout=10)
    assert got.status == 125 and got.error.startswith("sandy: ")
    wait_until(lambda: processes() == [], 2)


def test_b024_a_killed_api_client_leaves_nothing(api: type, marker: str, processes: Processes) -> None:
    script = f"import sys\nsys.path[:0] = {sys.path!r}\nfrom sandy import Sandbox\nSandbox().execute('sleep {marker} & sleep {marker} & wait')\n"
    process = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: len([pid for pid in processes() if program_of(pid) == "sleep"]) == 2, 15)
    below = descendants(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: processes() == [] and not [pid for pid in below if os.path.exists(f"/proc/{pid}")], 2, "the end of all processes")


def zombies() -> list[str]:
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(") ")
        if rest.startswith("Z") and (name == "bwrap" or name.startswith("sandy")):
            found.append(text)
    return found


def test_b025_no_zombies(sandy: Cli, api: type) -> None:
    before = len(zombies())
    for _ in range(20):
        sandy.run("true").ok()
    with api() as be:
        be.execute("true")
        descriptors = len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            assert be.execute("true").exit_code == 0
        assert len(os.listdir("/proc/self/fd")) == descriptors
        inside = be.execute("(sleep 0.01 &) ; sleep 0.1; cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -c1 | grep -c Z").output
        assert inside == "0\n"
    wait_until(lambda: len(zombies()) <= before)


@pytest.mark.skipif(os.geteuid() == 0, reason="root is the only user in its own user namespace, and a sandbox wants another")
def test_b025_zombies_where_pid_1_does_not_reap(sandy: Cli) -> None:
    # An orphan is pid 1's to wait for; one that never does, as in many containers, keeps it for ever.
    namespace = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc"]
    need(subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode == 0, "unshare, and user namespaces for it")
    script = (
        "import os, subprocess, sys, time\n"
        "if len(sys.argv) > 2:\n"
        "    for _ in range(10):\n"
        "        subprocess.run(sys.argv[1:], check=True)\n"
        "else:\n"  # the control: an orphan
        "    subprocess.run(['sh', '-c', 'sleep 0.1 &'], check=True)\n"
        "time.sleep(0.5)\n"
        "states = [open(f'/proc/{entry}/stat').read().rpartition(') ')[2][0] for entry in os.listdir('/proc') if entry.isdigit()]\n"
        "print(states.count('Z'))\n"
    )

    def count(*command: str) -> bytes:
        # Root's files belong to nobody in that namespace, so the program is named.
        env = sandy.env | {"SANDY_BWRAP": sandy.env.get("SANDY_BWRAP") or shutil.which("bwrap", path=sandy.env["PATH"]) or ""}
        process = subprocess.run(
            [*namespace, "/usr/bin/python3", "-c", script, *command],
            cwd=sandy.workspace, env=env, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    assert count() == b"1\n"
    assert count(sandy.program, "run", "--", "true") == b"0\n"


def test_b028_output_that_is_not_utf8(sandy: Cli, api: type) -> None:
    assert sandy.sh(r"printf 'a\377\360b'; printf 'x\0y'").ok().out == b"a\xff\xf0bx\0y"
    with api() as be:
        got = be.execute(r"printf 'a\377\360b'; head -c 3000 /dev/urandom")
        assert got.exit_code == 0 and got.output.startswith("a\ufffd\ufffdb")
        assert be.execute(r"printf 'x\0y'").output == "x\0y"


def test_b031_a_pty_can_be_opened(sandy: Cli) -> None:
    got = sandy.run("python3", "-c", "import pty, os; m, s = pty.openpty(); print(os.ttyname(s))").ok()
    assert got.text.startswith("/dev/pts/")
    need(shutil.which("script", path=sandy.env["PATH"]), "script")
    assert b"/dev/pts/" in sandy.run("script", "-qec", "tty", "/dev/null").ok().out
    assert sandy.run("tty").text.strip() == "not a tty"
    # No terminal of the host behind /dev/tty either.
    assert sandy.sh("exec 3<>/dev/tty").status != 0


def test_descriptors_of_a_command(sandy: Cli, tmp_path: pathlib.Path) -> None:
    # The caller's own, without CLOEXEC, as sloppy programs have them: a file, a directory, a connected socket.
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t")
    ours = [os.open(secret, os.O_RDONLY), os.open(tmp_path, os.O_RDONLY), os.open("/", os.O_RDONLY)]
    left, right = socket.socketpair()
    listing = (
        "import os, stat\n"
        "for fd in range(1024):\n"
        "    try: kind = stat.S_IFMT(os.fstat(fd).st_mode)\n"
        "    except OSError: continue\n"
        "    print(fd, os.readlink(f'/proc/self/fd/{fd}').split(':')[0])\n"
    )
    try:
        given = [*ours, left.fileno(), right.fileno()]
        control = subprocess.run(["/usr/bin/python3", "-c", listing], pass_fds=given, capture_output=True, check=True)
        assert len(control.stdout.splitlines()) == 3 + len(given)
        for options in ((), ("--private-workspace",)):
            process = sandy.start("run", *options, "--", "/usr/bin/python3", "-c", listing, pass_fds=given)
            assert finish(process).ok().lines == ["0 pipe", "1 pipe", "2 pipe"]
    finally:
        for fd in ours:
            os.close(fd)
        left.close()
        right.close()


def test_descriptors_of_the_agent_and_bubblewrap(sandy: Cli, marker: str, processes: Processes, tmp_path: pathlib.Path) -> None:
    ours = os.open(tmp_path, os.O_RDONLY)
    try:
        process = sandy.start("run", "--", "sleep", marker, pass_fds=[ours])
        wait_until(lambda: [pid for pid in processes() if program_of(pid) == "sleep"])
        seen = {}
        for pid in descendants(process.pid):
            name = program_of(pid)
            try:
                links = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            except PermissionError:  # the agent can't be looked at, even by its own user outside
                assert name in ("sandy-agent", "bwrap")
                continue
            seen[name] = links
            paths = {link for link in links if link.startswith("/")}
            assert paths <= {"/dev/null"}, f"{name} has {paths}"
        assert "sleep" in seen
        process.kill()
        process.communicate()
    finally:
        os.close(ours)


def test_background_output_after_the_end_is_not_waited_for(sandy: Cli, marker: str, processes: Processes) -> None:
    before = time.monotonic()
    assert sandy.sh(f"sh -c 'sleep {marker}; echo late' & echo now").ok().out == b"now\n"
    assert time.monotonic() - before < 3


def test_umask_limits_and_signals_are_plain(sandy: Cli) -> None:
    def unusual() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
        os.umask(0o077)

    process = sandy.start("run", "--", "sh", "-c", "umask; grep -E '^Sig(Blk|Ign)' /proc/self/status", preexec_fn=unusual)
    got = finish(process).ok()
    assert got.lines == ["0022", "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]
