"""`sandy run` as a filter: what goes in and out of it, byte for byte, and the status it ends with."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from support import Cli, finish, need, wait_until

MIB = 1 << 20
EVERY_BYTE = bytes(range(256))


def test_b020_stdin_is_passed_through(sandy: Cli) -> None:
    assert sandy.run("cat", stdin=b"in\n").ok().out == b"in\n"
    data = EVERY_BYTE * 5000 + b"\0no newline at the end"
    assert sandy.run("cat", stdin=data).ok().out == data


def test_b020_without_input_reading_ends_at_once(sandy: Cli) -> None:
    before = time.monotonic()
    assert sandy.sh("cat; python3; read x; echo rc=$?").ok().out == b"rc=1\n"
    assert time.monotonic() - before < 5


def test_stdin_from_a_file(sandy: Cli, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(EVERY_BYTE * 4000)
    with path.open("rb") as file:
        file.seek(256)  # where the caller's offset is, there it begins
        process = sandy.start("run", "--", "cat", stdin=file)
        assert finish(process).ok().out == EVERY_BYTE * 3999


def test_stdin_closed(sandy: Cli) -> None:
    process = sandy.start("run", "--", "sh", "-c", "cat; echo rc=$?; ls /proc/self/fd | wc -l", stdin=None, preexec_fn=lambda: os.close(0))
    got = finish(process, timeout=20).ok()
    assert got.lines == ["rc=0", "4"]  # 0, 1, 2, and ls's own


def test_stdout_and_stderr_closed(sandy: Cli, ws: pathlib.Path) -> None:
    def close_both() -> None:
        os.close(1)
        os.close(2)

    process = sandy.start(
        "run", "--", "sh", "-c", "echo x; echo y >&2; ls -l /proc/self/fd > fds", stdout=None, stderr=None, preexec_fn=close_both
    )
    # Nobody can take the output, which is as good as a closed pipe; it must not land in some descriptor of ours.
    assert process.wait(20) in (0, 128 + signal.SIGPIPE)
    if process.returncode == 0:
        assert len((ws / "fds").read_text().splitlines()) == 5  # "total", 0, 1, 2, ls's own


def test_stdin_directory_does_not_leak(sandy: Cli, tmp_path: pathlib.Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("s3cr3t")
    fd = os.open(secret, os.O_RDONLY)
    try:
        script = "ls -l /proc/self/fd/0; cat /proc/self/fd/0/key; cat /dev/fd/0/../secret/key; cd /proc/self/fd/0; cat; echo end"
        process = sandy.start("run", "--", "sh", "-c", script, stdin=fd)
        got = finish(process, timeout=20)
    finally:
        os.close(fd)
    assert got.status == 0 and b"s3cr3t" not in got.out + got.err
    assert "pipe:" in got.lines[0] and got.lines[-1] == "end"


@pytest.mark.slow
def test_200_mb_both_ways(sandy: Cli) -> None:
    size = 200 * MIB
    block = os.urandom(MIB)
    sent, received = hashlib.sha256(), hashlib.sha256()
    process = sandy.start("run", "--", "sh", "-c", "tee /dev/stderr | cat", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    writer = os.fork()
    if writer == 0:
        try:
            process.stdout.close()  # type: ignore[union-attr]
            for _ in range(size // MIB):
                process.stdin.write(block)  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]
        finally:
            os._exit(0)
    process.stdin.close()  # type: ignore[union-attr]
    for _ in range(size // MIB):
        sent.update(block)
    total = 0
    while piece := process.stdout.read(MIB):  # type: ignore[union-attr]
        received.update(piece)
        total += len(piece)
    os.waitpid(writer, 0)
    assert process.wait(20) == 0
    assert (total, received.digest()) == (size, sent.digest())


def test_large_output_in_constant_memory(sandy: Cli) -> None:
    # Output that the reader takes slowly: neither end may collect it.
    process = sandy.start("run", "--", "head", "-c", "150M", "/dev/zero")
    time.sleep(1)
    resident = [line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    assert int(resident[0].split()[1]) < 64 * 1024
    out, _ = process.communicate(timeout=60)
    assert len(out) == 150 * MIB and process.returncode == 0


def test_streams_apart(sandy: Cli) -> None:
    got = sandy.sh("printf out; printf err >&2; printf out").ok()
    assert (got.out, got.err) == (b"outout", b"err")


def test_output_comes_while_it_runs(sandy: Cli, marker: str, processes: Callable[[], list[int]]) -> None:
    process = sandy.start("run", "--", "sh", "-c", f"echo first; sleep {marker}")
    assert process.stdout.readline() == b"first\n"  # type: ignore[union-attr]
    process.kill()
    process.communicate()


def test_broken_pipe_ends_the_command(sandy: Cli, marker: str, processes: Callable[[], list[int]]) -> None:
    before = time.monotonic()
    line = subprocess.run(
        ["sh", "-c", '"$0" run -- sh -c "yes; exec sleep $1" | head -n 1', sandy.program, marker],
        cwd=sandy.workspace, env=sandy.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=True,
    )
    assert line.stdout == b"y\n" and line.stderr == b""
    assert time.monotonic() - before < 5
    wait_until(lambda: processes() == [])
    process = sandy.start("run", "--", "yes")
    process.stdout.read(10)  # type: ignore[union-attr]
    process.stdout.close()  # type: ignore[union-attr]
    process.stderr.close()  # type: ignore[union-attr]
    assert process.wait(10) == 128 + signal.SIGPIPE


def test_input_that_nobody_reads(sandy: Cli) -> None:
    assert sandy.run("true", stdin=b"x" * (8 * MIB)).status == 0
    assert sandy.run("head", "-c", "3", stdin=b"abc" * (4 * MIB)).ok().out == b"abc"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 1", 1), ("exit 125", 125), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)],
)
def test_exit_status(sandy: Cli, script: str, status: int) -> None:
    got = sandy.sh(script)
    assert got.status == status and got.err == b""


def test_exit_status_of_what_cannot_be_run(sandy: Cli, ws: pathlib.Path) -> None:
    (ws / "text").write_text("no program")
    (ws / "nointerp").write_text("#!/no/such/interpreter\n")
    (ws / "nointerp").chmod(0o755)
    missing = sandy.run("no-such-program-here")
    assert missing.status == 127 and missing.err == b"sandy: no-such-program-here: command not found in the sandbox\n"
    assert sandy.run("./text").status == 126
    assert sandy.run("/usr").status == 126
    assert sandy.run("./nointerp").status == 127
    (ws / "script").write_text("echo no first line\n")
    (ws / "script").chmod(0o755)
    assert sandy.run("./script").ok().out == b"no first line\n"  # as execvp(3)
    elsewhere = sandy.run("true", options=["--cwd", "/no/such/place"])
    assert elsewhere.status == 126 and elsewhere.error.startswith("sandy: the working directory /") and elsewhere.error.endswith(": No such file or directory\n")


def test_exit_status_of_a_time_limit(sandy: Cli, marker: str, processes: Callable[[], list[int]]) -> None:
    before = time.monotonic()
    got = sandy.sh(f"echo begun; sleep {marker}", "--timeout", "1")
    assert (got.status, got.out) == (124, b"begun\n")
    assert 0.9 < time.monotonic() - before < 5
    assert got.error == "sandy: timed out after 1000 ms\n"
    assert processes() == []


def test_b034_the_inner_time_limit_is_its_own(sandy: Cli) -> None:
    before = time.monotonic()
    assert sandy.sh("timeout 2 sleep 9; echo code:$?", "--timeout", "20").ok().out == b"code:124\n"
    assert time.monotonic() - before < 6


@pytest.mark.parametrize("words", [["--no-such-option"], ["--seccomp", "none"], ["--env", "1=2"], ["--workspace", "/no/such"], ["--timeout", "x"]])
def test_exit_status_of_a_bad_option(sandy: Cli, words: list[str]) -> None:
    got = sandy.run("true", options=words)
    assert got.status == 125 and got.out == b""
    assert words[0].lstrip("-") in got.error or words[-1] in got.error


def test_b027_a_failed_start_is_no_failed_command(sandy: Cli, open_directory: pathlib.Path) -> None:
    stub = open_directory
    (stub / "bwrap").write_text("#!/bin/sh\necho setup text\nexit 1\n")
    (stub / "bwrap").chmod(0o755)
    got = sandy.run("true", env={"SANDY_BWRAP": str(stub / "bwrap")})
    assert got.status == 125 and got.out == b"" and got.error.startswith("sandy: ")
    assert "bwrap" in got.error
    # One that can do all that --help says, and then can't.
    (stub / "bwrap").write_text("#!/bin/sh\ncase $1 in --help|--version) exec /usr/bin/bwrap $1;; esac\necho setup text; echo 'bwrap: no luck' >&2\nexit 1\n")
    got = sandy.run("true", env={"SANDY_BWRAP": str(stub / "bwrap")})
    assert got.status == 125 and got.out == b"" and got.error.startswith("sandy: the sandbox could not start")
    assert "no luck" in got.error
    failed = sandy.run("false")
    assert (failed.status, failed.out, failed.err) == (1, b"", b"")


def test_json_outcome(sandy: Cli, tmp_path: pathlib.Path) -> None:
    def outcome(script: str, *options: str) -> tuple[int, dict[str, object]]:
        path = tmp_path / "outcome.json"
        path.unlink(missing_ok=True)
        status = sandy.sh(script, "--json", path, *options).status
        return status, json.loads(path.read_text())

    status, exited = outcome("exit 3")
    assert status == exited["exit_status"] == 3 and exited["reason"] == "exited" and exited["code"] == 3
    assert isinstance(exited["degraded"], list)
    assert all(exited[key] >= 0 for key in ("wall_ms", "user_ms", "system_ms", "max_rss_kib"))  # type: ignore[operator]
    status, killed = outcome("kill -9 $$")
    assert status == killed["exit_status"] == 137 and killed["reason"] == "signalled" and killed["signal"] == 9
    status, late = outcome("sleep 30", "--timeout", "300ms")
    assert status == late["exit_status"] == 124 and late["reason"] == "timed_out" and 250 <= late["wall_ms"] < 5000  # type: ignore[operator]
    missing = tmp_path / "missing.json"
    assert sandy.run("no-such", options=["--json", missing]).status == 127
    assert json.loads(missing.read_text())["reason"] == "could_not_start"


def test_arguments_arrive_as_they_are(sandy: Cli) -> None:
    words = ["", " ", "a b", "'", '"', "$HOME", "*", "-x", "--", "\n", "\\"]
    got = sandy.run("python3", "-c", "import os, sys; print(list(map(os.fsencode, sys.argv[1:])))", *words, b"\xff\xfe").ok()
    assert got.text.strip() == repr([word.encode() for word in words] + [b"\xff\xfe"])
    # Options of the command are not ours, also without "--" in front.
    assert sandy.call("run", "echo", "--help", "--json", "x").ok().out == b"--help --json x\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_command(sandy: Cli, number: signal.Signals) -> None:
    process = sandy.start("run", "--", "sh", "-c", f"trap 'echo got; exit 7' {number.name[3:]}; echo ready; while :; do sleep 0.05; done")
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    process.send_signal(number)
    got = finish(process, timeout=10)
    if number == signal.SIGHUP:  # the terminal is gone: the command has its chance, and ends in any case
        assert got.status in (7, 129)
    else:
        assert (got.status, got.out) == (7, b"got\n")


def test_signals_that_the_command_ignores(sandy: Cli, marker: str, processes: Callable[[], list[int]]) -> None:
    process = sandy.start("run", "--", "sh", "-c", f"trap '' INT TERM HUP; echo ready; sleep {marker}; sleep {marker}")
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)  # a second one is meant
    assert finish(process, timeout=10).status == 130
    wait_until(lambda: processes() == [])
    process = sandy.start("run", "--", "sh", "-c", f"trap '' TERM; echo ready; sleep {marker}; sleep {marker}")
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    before = time.monotonic()
    process.terminate()
    assert finish(process, timeout=15).status == 143
    assert 3 < time.monotonic() - before < 10


def test_nonblocking_stays_the_callers(sandy: Cli) -> None:
    # Flags are of the open file, which we share with the caller: O_NONBLOCK there would break the caller's other programs.
    read_end, write_end = os.pipe()
    try:
        process = sandy.start("run", "--", "echo", "x", stdout=write_end)
        finish(process).ok()
        assert os.get_blocking(write_end)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_file_output_is_appended_where_the_caller_is(sandy: Cli, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        process = sandy.start("run", "--", "sh", "-c", "echo out; echo err >&2", stdout=file, stderr=subprocess.STDOUT)
        process.wait(20)
    assert sorted(path.read_bytes().splitlines()) == [b"before", b"err", b"out"]
    need(os.path.exists("/dev/full"), "/dev/full")
    with open("/dev/full", "wb") as full:
        process = sandy.start("run", "--", "sh", "-c", "head -c 1000000 /dev/zero", stdout=full)
        assert finish(process, timeout=20).status != 0  # lost output is no success
