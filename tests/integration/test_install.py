"""B124, B125, and the security cases about processes and environment, as a user of the command meets them."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import REPOSITORY, Cli, finish


def test_b124_one_version(sandy: Cli) -> None:
    got = sandy.call("--version").ok().text
    assert re.fullmatch(r"sandy \d+\.\d+\.\d+\S*\n", got)
    assert got == f"sandy {(REPOSITORY / 'VERSION').read_text().strip()}\n"


def test_help_of_every_verb(sandy: Cli) -> None:
    verbs = re.findall(r"^  (\w+) ", sandy.call("--help").ok().text.partition("ubcommands:")[2], re.MULTILINE)
    assert {"run", "shell", "plan", "check", "doctor"} <= set(verbs)
    for verb in verbs:
        assert "Usage:" in sandy.call(verb, "--help").ok().text


@pytest.mark.slow
def test_b125_forty_at_once(sandy: Cli) -> None:
    # Their policies do not mix, and the end of one takes nothing from another. The state directory is new, so they all make it.
    def one(number: int) -> None:
        directory = sandy.workspace / f"w{number}"
        directory.mkdir()
        (directory / "mine").write_text(str(number))
        options = ["--env", f"N={number}", "--hostname", f"h{number}"] + (["--private-workspace"] if number % 4 == 0 else [])
        script = "echo $N $(hostname 2>/dev/null || cat /proc/sys/kernel/hostname); test -e /workspace || cat mine; ls .. | wc -l"
        got = finish(sandy.start("run", *options, "--", "sh", "-c", script, cwd=directory), timeout=120).ok()
        assert got.lines[0] == f"{number} h{number}"
        if number % 4:
            assert got.lines[1] == f"{number}1"

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(one, range(40)))
    left = [name for name in os.listdir(sandy.state) if not name.startswith(("etc-", "etc.paths-", "bwrap-"))]
    assert left == []


@pytest.mark.slow
def test_b125_forty_threads_of_one_client(api: type) -> None:
    failures = []

    def one(number: int) -> None:
        try:
            with api(env={"N": str(number)}) as be:
                be.write("/mine", str(number))
                got = be.execute("echo $N $(cat mine)")
                assert got.output == f"{number} {number}\n", got
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_b131_b130_environment(sandy: Cli) -> None:
    # The attacks are in tests/escape; this is what a user can count on.
    got = sandy.run("env", options=["--env", "A=b=c", "--env", "EMPTY=", "--env", "PASSED", "--env", "ABSENT"], env={"PASSED": "x\ny", "OTHER": "o"}).ok()
    assert {"A=b=c", "EMPTY=", "PASSED=x", "y", f"HOME={sandy.home}", "TMPDIR=/tmp", "USER=sandbox"} <= set(got.lines)
    assert "OTHER" not in got.text and "ABSENT" not in got.text


def test_b136_a_git_file_widens_nothing(sandy: Cli, ws: pathlib.Path, home: pathlib.Path) -> None:
    (home / "secret").write_text("s3cr3t")
    (ws / ".git").write_text(f"gitdir: {home}\n")
    got = sandy.sh(f"cat {home}/secret; echo x > {home}/new", env={"GIT_DIR": str(home)})
    assert b"s3cr3t" not in got.out
    assert sorted(os.listdir(home))[-1] == "secret"


def test_b140_only_own_processes(sandy: Cli) -> None:
    got = sandy.sh("ps -e -o comm= 2>/dev/null || cat /proc/[0-9]*/comm").ok()
    assert set(got.lines) <= {"sandy-agent", "sh", "ps", "cat"}
    assert sandy.run("cat", "/proc/1/comm").ok().text == "sandy-agent\n"


def test_wall_time_ends_the_sandbox(sandy: Cli) -> None:
    process = sandy.start("run", "--wall-time", "1", "--", "sleep", "60")
    got = finish(process, timeout=20)
    assert got.status == 124 and "wall_time" in got.error


def test_tmp_size_is_a_ceiling(sandy: Cli) -> None:
    got = sandy.sh("head -c 3M /dev/zero > /tmp/f; head -c 3M /dev/zero > /dev/shm/f; ls -l /tmp/f | cut -d' ' -f5", "--tmp-size", "1M")
    assert got.error.count("No space left") == 2
    assert got.text.strip() == str(1 << 20)


def test_open_files_and_file_size(sandy: Cli) -> None:
    got = sandy.sh("ulimit -n; head -c 2M /dev/zero > f; stat -c %s f", "--open-files", "64", "--file-size", "1M")
    assert got.lines[0] == "64" and got.lines[-1] == str(1 << 20)


def test_serve_is_no_command_for_people(sandy: Cli) -> None:
    process = subprocess.run([sandy.program, "serve"], env=sandy.env, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    assert process.returncode != 0 and process.stderr
