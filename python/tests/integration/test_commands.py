"""Running commands: the group "Process, signals, pty, output" of the cases, as the API meets it."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from collections.abc import Callable

import pytest

from deepagents_sandbox import PolicyError, Sandbox, SandboxStartError


def test_b019_a_server_in_the_background(be: Sandbox) -> None:
    before = time.monotonic()
    response = be.execute("python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1; echo up")
    assert (response.output, response.exit_code) == ("up\n", 0)
    assert time.monotonic() - before < 5
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').status)"
    assert be.execute(f'python3 -c "{fetch}"').output == "200\n"


def test_b019_nothing_survives_close(marker: str, processes: Callable[[], list[str]], until: Callable[..., None]) -> None:
    with Sandbox() as sandbox:
        sandbox.execute(f"setsid sleep {marker} & (setsid sleep {marker} &) ; true")
        until(lambda: len(processes()) == 2)
    assert processes() == []


def test_b020_reading_stdin_ends_at_once(be: Sandbox) -> None:
    before = time.monotonic()
    response = be.execute("cat; python3; read x; echo rc=$?", timeout=20)
    assert (response.output, response.exit_code) == ("rc=1\n", 0)
    assert time.monotonic() - before < 5


def test_b020_stdin_of_run(be: Sandbox) -> None:
    assert be.run(["cat"], stdin="in\0\n").stdout == b"in\0\n"
    data = bytes(range(256)) * 20_000
    assert be.run(["sha256sum"], stdin=data).stdout == be.run("cat | sha256sum", stdin=[data[:100], data[100:]]).stdout
    assert be.run("head -c 3", stdin=data).stdout == data[:3]


def test_b022_a_time_limit_kills_everything(
    be: Sandbox, marker: str, processes: Callable[[], list[str]], until: Callable[..., None]
) -> None:
    before = time.monotonic()
    command = (
        "echo begun; trap '' TERM HUP INT; (trap '' TERM; sleep MARK)& (setsid sh -c 'sleep MARK & wait' &) ; sleep MARK"
    ).replace("MARK", marker)
    response = be.execute(command, timeout=2)
    assert time.monotonic() - before < 6
    assert response.exit_code == 124
    assert response.output.startswith("begun\n")
    assert "timed out after 2 s" in response.output
    until(lambda: processes() == [])
    assert be.execute("echo on").output == "on\n"


def test_b025_no_zombies_and_no_descriptors(be: Sandbox) -> None:
    be.execute("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        assert be.execute("true").exit_code == 0
    assert len(os.listdir("/proc/self/fd")) == before
    states = be.execute("cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | cut -c1 | grep -c Z").output
    assert states == "0\n"
    # Whoever else runs sandboxes here has such a process for a moment; one that stays was forgotten.
    zombies, deadline = _zombie_bwraps(), time.monotonic() + 10
    while zombies and time.monotonic() < deadline:
        time.sleep(0.1)
        zombies &= _zombie_bwraps()
    assert not zombies


def _zombie_bwraps() -> set[pathlib.Path]:
    return {stat for stat in pathlib.Path("/proc").glob("[0-9]*/stat") if _is_zombie_bwrap(stat)}


def _is_zombie_bwrap(stat: pathlib.Path) -> bool:
    try:
        text = stat.read_text()
    except OSError:
        return False
    return "(bwrap)" in text and text.rpartition(") ")[2].startswith("Z")


def test_b027_a_failed_start_is_no_failed_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SandboxStartError) as caught:
        Sandbox(workspace="/nonexistent/directory")
    assert "/nonexistent/directory" in str(caught.value)
    with pytest.raises(PolicyError, match="memory"):
        Sandbox(memory="lots")
    with Sandbox() as sandbox:
        assert sandbox.execute("false").exit_code == 1


def test_b028_output_that_is_not_text(be: Sandbox) -> None:
    response = be.execute(r"printf 'a\377\360b'; head -c 3000 /dev/urandom")
    assert response.exit_code == 0
    assert response.output.startswith("a��b")
    assert be.execute(r"printf 'x\0y'").output == "x\0y"


def test_b031_a_pty_can_be_opened(be: Sandbox) -> None:
    response = be.execute('python3 -c "import pty, os; m, s = pty.openpty(); print(os.ttyname(s))"')
    assert response.exit_code == 0
    assert response.output.startswith("/dev/pts/")


def test_b034_the_inner_time_limit_is_its_own(be: Sandbox) -> None:
    before = time.monotonic()
    response = be.execute("timeout 1 sleep 9; echo code:$?", timeout=20)
    assert (response.output, response.exit_code) == ("code:124\n", 0)
    assert time.monotonic() - before < 5


def test_signals_and_statuses(be: Sandbox) -> None:
    assert be.execute("exit 42").exit_code == 42
    response = be.execute("kill -9 $$")
    assert response.exit_code == 137
    assert "[sandy] killed by SIGKILL (signal 9)" in response.output
    outcome = be.run(["sh", "-c", "kill -TERM $$"])
    assert (outcome.reason, outcome.signal, outcome.exit_code) == ("signalled", 15, 143)
    assert be.run(["no-such-program"]).exit_code == 127
    assert be.run(["no-such-program"]).reason == "could_not_start"
    assert be.run(["/etc/passwd"]).exit_code == 126
    assert be.run("true", timeout=0).ok


def test_outcome_counts_time_and_memory(be: Sandbox) -> None:
    outcome = be.run(
        [
            "python3",
            "-c",
            "b = bytearray(200 << 20); import time; t = time.process_time()\nwhile time.process_time() < t + .3: pass",
        ]
    )
    assert outcome.ok, outcome
    assert outcome.user_time + outcome.system_time >= 0.3
    assert outcome.wall_time >= 0.3
    assert outcome.max_rss >= 200 << 20


def test_streams_apart_and_merged_in_order(be: Sandbox) -> None:
    command = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
    assert be.execute(command).output == "o1\ne1\no2\ne2\no3\ne3\n"
    outcome = be.run(command)
    assert (outcome.stdout, outcome.stderr) == (b"o1\no2\no3\n", b"e1\ne2\ne3\n")
    pieces: list[tuple[str, bytes]] = []
    be.run(command, merge=True, on_output=lambda stream, data: pieces.append((stream, data)))
    assert b"".join(data for _, data in pieces) == b"o1\ne1\no2\ne2\no3\ne3\n"


def test_streamed_output_comes_while_it_runs(be: Sandbox) -> None:
    times: list[float] = []
    be.run("echo 1; sleep 1; echo 2", on_output=lambda stream, data: times.append(time.monotonic()))
    assert len(times) == 2
    assert times[1] - times[0] > 0.5


def test_a_large_stream_loses_nothing(be: Sandbox) -> None:
    size = 0

    def count(stream: str, data: bytes) -> None:
        nonlocal size
        size += len(data)

    assert be.run("yes | head -c 100000000", on_output=count).ok
    assert size == 100_000_000


def test_too_much_output_keeps_head_and_tail(be: Sandbox) -> None:
    with Sandbox(max_output_bytes=10_000) as sandbox:
        response = sandbox.execute("echo first; yes | head -c 1000000; echo last")
    assert response.exit_code == 0
    assert response.truncated
    assert response.output.startswith("first\n")
    assert response.output.endswith("last\n")
    assert f"[sandy] {6 + 1_000_000 + 5 - 10_000} bytes of output were left out here" in response.output
    assert not be.execute("yes | head -c 1000000").truncated


def test_working_directory_and_environment(be: Sandbox) -> None:
    assert be.execute("cd /tmp; export A=1; x=1").exit_code == 0
    assert be.execute("pwd; echo $A$x").output == f"{be.workspace}\n\n"
    assert be.run(["sh", "-c", "pwd; echo $A"], cwd="/tmp", env={"A": "b c"}).stdout == b"/tmp\nb c\n"
    outcome = be.run(["true"], cwd="/nonexistent")
    assert (outcome.reason, "working directory" in outcome.detail) == ("could_not_start", True)
    assert be.execute("echo $HOME").output == be.home + "\n"


def test_a_command_of_10_mb(be: Sandbox) -> None:
    text = "x" * 10_000_000
    response = be.execute(f"cat <<'EOF' | wc -c\n{text}\nEOF")
    assert (response.output.strip(), response.exit_code) == ("10000001", 0)


def test_an_argument_list_and_strange_bytes(be: Sandbox) -> None:
    words = ["a b", "", "$HOME", "'", "\n", "ü", "\udcff"]
    assert be.run(["printf", "%s\\0", *words]).stdout == b"".join(os.fsencode(word) + b"\0" for word in words)


def test_ten_commands_at_once_in_one_sandbox(be: Sandbox) -> None:
    outputs: dict[int, str] = {}

    def run(number: int) -> None:
        outputs[number] = be.execute(f"sleep 1; echo {number}; seq {number} 5000").output

    before = time.monotonic()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert time.monotonic() - before < 6
    for number in range(10):
        expected = f"{number}\n" + "".join(f"{n}\n" for n in range(number, 5001))
        assert outputs[number] == expected


def test_environment_of_the_caller_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET", "BASH_ENV", "PYTHONPATH", "PASSED", "SET"):
        monkeypatch.setenv(name, "s3cr3t")
    with Sandbox(pass_env=["PASSED", "NOT_THERE"], env={"SET": "mine"}) as sandbox:
        lines = sandbox.execute("env").output.splitlines()
    assert [line for line in lines if "s3cr3t" in line] == ["PASSED=s3cr3t"]
    assert "SET=mine" in lines


def test_a_bound_workspace_is_the_real_one(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "in.txt").write_text("hello")
    with Sandbox(workspace=tmp_path) as sandbox:
        assert sandbox.execute("pwd; cat in.txt; echo out > out.txt").output == "/workspace\nhello"
        assert sandbox.read("/in.txt").file_data == {"content": "hello", "encoding": "utf-8"}
    assert (tmp_path / "out.txt").read_text() == "out\n"
    assert sorted(os.listdir(tmp_path)) == ["in.txt", "out.txt"]
