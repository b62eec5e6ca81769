"""Limits where there are no control groups: refused where they were set by hand, or looked after by the agent, and said to be (`degraded`)."""

from __future__ import annotations

import json
import pathlib

import pytest
from support import Cli, Result, have_cgroups

HOLD = "import sys, time; block = b'x' * (int(sys.argv[1]) << 20); time.sleep(float(sys.argv[2])); print('has it')"


@pytest.fixture(autouse=True)
def no_cgroups() -> None:
    if have_cgroups():
        pytest.skip("about machines without control groups: see test_limits.py")


def outcome(file: pathlib.Path) -> dict[str, object]:
    return json.loads(file.read_text())  # type: ignore[no-any-return]


def said(got: Result) -> str:
    """What is on standard error besides the line of `--best-effort`."""
    first, _, rest = got.error.partition("\n")
    assert first == "sandy: not enforced by control groups here: limits.memory (watched by the agent), limits.swap, limits.pids (at most by RLIMIT_NPROC)", got.error
    return rest


@pytest.mark.parametrize(("flag", "value"), [("--memory", "64M"), ("--swap", "1M"), ("--cpus", "0.5"), ("--pids", "64"), ("--io-read", "1M"), ("--io-write", "1M")])
def test_what_is_set_by_hand_is_not_left_out(sandy: Cli, tmp_path: pathlib.Path, flag: str, value: str) -> None:
    got = sandy.run("touch", "ran", options=[flag, value])
    assert got.status == 125 and got.error.startswith(f'sandy: {flag}: "{value}": needs a control group: ') and "hint: " in got.error and "--best-effort" in got.error, got
    assert not (sandy.workspace / "ran").exists()
    key = "limits." + flag[2:].replace("-", "_")
    got = sandy.run("touch", "ran", options=[flag, value, "--best-effort", "--json", tmp_path / "o"]).ok()
    assert got.error.startswith("sandy: not enforced by control groups here: limits.memory") and key in got.error
    assert key in outcome(tmp_path / "o")["degraded"] and (sandy.workspace / "ran").exists()  # type: ignore[operator]


def test_the_agent_looks_after_memory(sandy: Cli, tmp_path: pathlib.Path) -> None:
    options = ["--memory", "64M", "--best-effort", "--json", tmp_path / "o"]
    got = sandy.run("python3", "-c", HOLD, "200", "20", options=options)
    end = outcome(tmp_path / "o")
    assert got.status == 137 and end["reason"] == "out_of_memory" and "limits.memory" in end["degraded"]  # type: ignore[operator]
    assert said(got) == "sandy: killed: memory limit 64 MiB, as the agent saw it, by process python3\n"
    # The one that is too large, and not what it is a part of.
    got = sandy.sh(f'python3 -c "{HOLD}" 200 20; echo "status $?"', *options)
    assert got.ok().lines == ["status 137"] and "sandy: 1 process was killed: memory limit 64 MiB" in got.error
    # The control.
    got = sandy.run("python3", "-c", HOLD, "20", "1", options=options)
    assert got.ok().text == "has it\n" and said(got) == "" and "oom_kills" not in outcome(tmp_path / "o")


def test_many_small_ones_count_together(sandy: Cli) -> None:
    script = "import os, time\nfor turn in range(8):\n    if os.fork() == 0:\n        block = b'x' * (20 << 20); time.sleep(20); os._exit(0)\ntry:\n    while True: os._exit(os.wait()[1] >> 8 or 7)\nexcept ChildProcessError: pass"
    got = sandy.run("python3", "-c", script, options=["--memory", "100M", "--best-effort"])
    assert "memory limit 100 MiB" in got.error, got


def test_a_killed_process_is_not_always_one_of_these(sandy: Cli) -> None:
    for script in ("exit 137", "kill -9 $$"):
        got = sandy.sh(script, "--memory", "64M", "--best-effort")
        assert got.status == 137 and said(got) == "", got


def test_processes_have_an_end(sandy: Cli) -> None:
    script = "i=0; while [ $i -lt {} ]; do sleep 20 & i=$((i + 1)); done; echo all"
    got = sandy.sh(script.format(60), "--pids", "20", "--best-effort")
    assert got.status != 0 and "all" not in got.lines and "fork" in got.error, got
    assert sandy.sh(script.format(18), "--pids", "20", "--best-effort").ok().lines == ["all"]
    # Of this sandbox alone, and not of all that the user runs.
    assert sandy.sh("true", "--pids", "8", "--best-effort").status == 0
