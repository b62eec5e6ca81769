"""What people do at a command line: options without values, flags and files that contradict each other, signals to a group, full disks."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from support import Cli, finish

VALUES = [
    "--policy", "--read", "--write", "--deny", "--workspace", "--mount", "--env", "--hostname", "--cwd", "--uid", "--gid", "--seccomp", "--memory", "--swap", "--cpus",
    "--pids", "--io-read", "--io-write", "--wall-time", "--open-files", "--file-size", "--tmp-size", "--allow-domain", "--deny-domain", "--allow-private", "--timeout", "--json",
]


@pytest.mark.parametrize("option", VALUES)
def test_an_empty_value_is_no_default(sandy: Cli, option: str) -> None:
    # As by "$FORGOTTEN": what was asked for may be what protects.
    for words in ([option, ""], [f"{option}="]):
        got = sandy.run("touch", "ran", options=words)
        assert got.status == 125 and got.error.startswith("sandy: ") and option.strip("-").split("-")[0] in got.error, got.error
    assert not (sandy.workspace / "ran").exists()
    assert sandy.call("run", "echo", f"{option}=", "").ok().out == f"{option}= \n".encode()  # the command's own


@pytest.mark.parametrize(
    ("policy", "words", "said"),
    [
        ({"seccomp": "strict"}, ["--seccomp", "default"], ["--seccomp default", "strict"]),
        ({"seccomp": {"file": "own.json"}}, ["--seccomp", "strict"], ["--seccomp strict", "own.json"]),
        ({"limits": {"wall_time": "10m"}}, ["--wall-time", "5m"], ["--wall-time 5m", "limits.wall_time", "10m"]),
        ({"limits": {"best_effort": False}}, ["--best-effort"], ["--best-effort", "limits.best_effort"]),
        ({"filesystem": {"workspace": {"path": "."}}}, ["--private-workspace"], ["--private-workspace", "filesystem.workspace.path"]),
        ({"filesystem": {"workspace": {"path": "."}}}, ["--workspace", "other"], ["--workspace other", "filesystem.workspace.path"]),
        ({"filesystem": {"workspace": {"mode": "private"}}}, ["--workspace", "other"], ["--workspace", "filesystem.workspace.mode"]),
        ({"filesystem": {"workspace": {"path": ".", "mount": "/a"}}}, ["--mount", "/b"], ["--mount /b", "filesystem.workspace.mount"]),
        ({"process": {"hostname": "a"}}, ["--hostname", "b"], ["--hostname b", "process.hostname"]),
        ({"network": {"mode": "none"}}, ["--allow-domain", "example.com"], ["--allow-domain", "network.mode"]),
    ],
)
def test_flags_cannot_contradict_a_file(sandy: Cli, tmp_path: pathlib.Path, policy: dict[str, object], words: list[str], said: list[str]) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"version": 1} | policy))
    got = sandy.run("touch", "ran", options=["-p", file, *words])
    assert got.status == 125 and "contradicts" in got.error, got.error
    assert all(text in got.error for text in said), got.error
    assert not (sandy.workspace / "ran").exists()


def test_flags_that_say_the_same_as_the_file_or_more(sandy: Cli, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "policy.json").write_text('{"version": 1, "seccomp": "strict", "process": {"hostname": "a"}}')
    options = ["-p", tmp_path / "policy.json", "--seccomp", "strict", "--hostname", "a", "--read", tmp_path / "data", "--open-files", "100"]
    assert sandy.run("sh", "-c", f"ls -d {tmp_path}/data; ulimit -n; uname -n", options=options).ok().lines == [f"{tmp_path}/data", "100", "a"]


def test_the_outcome_of_what_could_not_start(sandy: Cli, tmp_path: pathlib.Path) -> None:
    outcome = tmp_path / "o.json"
    sandy.run("sleep", "9", options=["--timeout", "0.1", "--json", outcome])
    assert json.loads(outcome.read_text())["exit_status"] == 124
    for words in (["--memory", "1G"], ["--read", "/no/such/path"], ["--timeout", "never"], ["--hostname", "a b"]):
        got = sandy.run("true", options=["--json", outcome, *words])
        assert got.status == 125
        found = json.loads(outcome.read_text())
        assert (found["exit_status"], found["error"]) == (125, "could_not_start") and found["detail"] in got.error
    assert sandy.run("true", options=["--json", "-"]).status == 125
    assert not (sandy.workspace / "-").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group(sandy: Cli, number: signal.Signals) -> None:
    # As a terminal and timeout(1) send it. It is for the command alone, by way of sandy.
    process = sandy.start("run", "--", "sh", "-c", f"trap 'echo got; exit 7' {number.name[3:]}; echo ready; while :; do sleep 0.05; done", process_group=0)
    assert process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    os.killpg(process.pid, number)
    got = finish(process, timeout=10)
    assert "gone" not in got.error
    assert (got.status, got.out) == (7, b"got\n") or (number == signal.SIGHUP and got.status == 129)


def test_timeout_lets_the_command_clean_up(sandy: Cli) -> None:
    script = "trap 'echo cleanup; exit 6' TERM; echo ready; sleep 20 & wait"
    process = subprocess.Popen(
        ["timeout", "1", sandy.program, "run", "--", "sh", "-c", script], cwd=sandy.workspace, env=sandy.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    got = finish(process, timeout=20)
    assert (got.status, got.lines) == (124, ["ready", "cleanup"]), got.error


def test_in_the_background_of_a_terminal(sandy: Cli) -> None:
    # A shell with job control puts each pipeline into a group of its own; using the terminal from there would stop us.
    script = f"set -m; {sandy.program} run --timeout 20 -- sh -c 'sleep 0.5; exit 5' & wait $!; echo status $?"
    master, slave = os.openpty()
    process = subprocess.Popen(["sh", "-ic", script], cwd=sandy.workspace, env=sandy.env | {"PS1": ""}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))  # noqa: PLW1509
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + 15
    while b"status" not in seen and time.monotonic() < deadline:
        try:
            seen += os.read(master, 4096)
        except OSError:
            break
    process.kill()
    process.wait()
    os.close(master)
    assert b"status 5" in seen, seen


def test_output_that_cannot_be_written(sandy: Cli) -> None:
    with pathlib.Path("/dev/full").open("wb") as full:
        got = finish(sandy.start("run", "--", "seq", "1000000", stdout=full))
        assert got.status == 125 and "standard output: No space left on device" in got.error
        got = finish(sandy.start("plan", "--", "true", stdout=full))
        assert got.status == 1 and "standard output: " in got.error


def test_the_time_limit_of_a_sandbox(sandy: Cli, tmp_path: pathlib.Path) -> None:
    outcome = tmp_path / "o.json"
    got = sandy.run("sleep", "60", options=["--wall-time", "1", "--json", outcome])
    assert got.status == 124 and "time limit" in got.error
    assert json.loads(outcome.read_text())["exit_status"] == 124


def test_verbs(sandy: Cli) -> None:
    got = sandy.call("rnu", "--", "ls")
    assert got.status == 2 and '"rnu"' in got.error and "run" in got.error
    assert "run" in sandy.call("help").ok().text
    for verb in ("run", "shell", "plan", "check", "doctor"):
        assert "xit status" in sandy.call(verb, "--help").ok().text, verb


@pytest.mark.parametrize(
    ("words", "said", "unsaid"),
    [
        (["--memory", "1G"], "--best-effort", "limits.best_effort"),
        (["--workspace", "/usr"], "--unsafe-broad-workspace", "filesystem.unsafe_broad_workspace"),
        (["--policy", "no-network", "--allow-domain", "a.example"], '--allow-domain a.example: contradicts the policy file\'s network.mode: "none"', "allowlist"),
        (["--policy", "no-network", "--publish", "80"], "--publish 80: contradicts", "allowlist"),
        (["--allow-domain", "Host.Sandy.Internal:11434"], "--allow-private, allow_private=) with its port: host.sandy.internal:11434", "allowlist"),
    ],
)
def test_hints_name_what_can_be_typed(sandy: Cli, words: list[str], said: str, unsaid: str) -> None:
    got = sandy.run("true", options=words)
    assert got.status == 125 and said in got.error and unsaid not in got.error, got.error


def test_check_tells_what_is_missing(sandy: Cli) -> None:
    ws = sandy.workspace
    (ws / "policy.json").write_text('{"version": 1, "filesystem": {"workspace": {"path": "."}, "read": ["none"]}}')
    got = sandy.call("check", "policy.json").ok()  # it may be for another machine
    assert got.lines[0] == "policy.json: valid, but no sandbox starts with it on this machine"
    assert f"not there: filesystem.read[0]: {ws}/none" in got.lines
    assert sandy.run("true", options=["-p", "policy.json"]).status == 125


def test_a_program_that_only_the_host_has(sandy: Cli, tmp_path: pathlib.Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    got = sandy.run("tool", env={"PATH": f"{sandy.env['PATH']}:{tmp_path}"})
    assert got.status == 127 and f"outside it is {tmp_path}/tool" in got.error and "--read" in got.error
    assert sandy.run("no-such-tool").error == "sandy: no-such-tool: command not found in the sandbox\n"


@pytest.mark.parametrize("separator", [["--"], []])
def test_a_commands_words_are_left_alone(sandy: Cli, separator: list[str]) -> None:
    words = ["[a,b]", '["x"]', "[]", "[", "]", "", "\x01", "\x01[x]", "-n", "--", "--read", "a=b", "%s", "{}", "'q'", "@file", "#no"]
    got = sandy.call("run", *separator, "printf", "<%s>", *words).ok()
    assert got.text == "".join(f"<{word}>" for word in words)


def test_a_private_workspace_is_where_mount_says(sandy: Cli) -> None:
    assert sandy.run("pwd", options=["--private-workspace", "--mount", "/place"]).ok().text == "/place\n"
