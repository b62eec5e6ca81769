from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import sandy
from sandy import SandboxStartError
from sandy._programs import find_sandy


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """No program anywhere; tests add one."""
    monkeypatch.delenv("SANDY_PROGRAMS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sandy, "__path__", [str(tmp_path / "package")])
    monkeypatch.chdir(tmp_path)
    for name in ("bin", "named", "package/_programs"):
        (tmp_path / name).mkdir(parents=True, mode=0o755)
    return tmp_path


def make(program: pathlib.Path, mode: int = 0o755) -> pathlib.Path:
    program.write_text('#!/bin/sh\necho it is $0 "$@"\nexit 7\n')
    program.chmod(mode)
    return program


def test_the_order(nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = make(nowhere / "bin/sandy")
    assert find_sandy() == on_path
    packaged = make(nowhere / "package/_programs/sandy")
    assert find_sandy() == packaged
    named = make(nowhere / "named/sandy")
    monkeypatch.setenv("SANDY_PROGRAMS", str(nowhere / "named"))
    assert find_sandy() == named


def test_a_failure_lists_every_place(nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(nowhere / "sandy")  # in the current directory
    make(nowhere / "bin/sandy", 0o644)
    monkeypatch.setenv("PATH", f".::{nowhere}/bin:{nowhere}/other")
    with pytest.raises(SandboxStartError) as caught:
        find_sandy()
    text = str(caught.value)
    for place in (
        f"{nowhere}/package/_programs/sandy",
        "'.' (PATH): skipped",
        "'' (PATH): skipped",
        f"{nowhere}/bin/sandy (PATH): not an executable file",
        f"{nowhere}/other/sandy (PATH)",
    ):
        assert place in text
    assert "hint: " in text


def test_a_named_directory_is_the_only_place(nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(nowhere / "bin/sandy")
    monkeypatch.setenv("SANDY_PROGRAMS", str(nowhere / "named"))
    with pytest.raises(SandboxStartError, match="SANDY_PROGRAMS="):
        find_sandy()
    monkeypatch.setenv("SANDY_PROGRAMS", "bin")
    with pytest.raises(SandboxStartError, match="absolute"):
        find_sandy()


@pytest.mark.parametrize("writable", ["bin", "bin/sandy"])
def test_what_others_can_write_is_skipped(nowhere: pathlib.Path, writable: str) -> None:
    make(nowhere / "bin/sandy")
    assert find_sandy()
    (nowhere / writable).chmod(0o777)
    with pytest.raises(SandboxStartError, match="writable by others"):
        find_sandy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_others_is_skipped(nowhere: pathlib.Path) -> None:
    os.chown(make(nowhere / "bin/sandy"), 12345, 12345)
    with pytest.raises(SandboxStartError, match="belongs to user 12345"):
        find_sandy()


def run_module(programs: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(pathlib.Path(__file__).parents[2] / "src")
    environment = {"SANDY_PROGRAMS": str(programs), "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, "-m", "sandy", *arguments], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def test_the_module_becomes_the_program(nowhere: pathlib.Path) -> None:
    make(nowhere / "named/sandy")
    done = run_module(nowhere / "named", "run", "--", "a b")
    assert (done.returncode, done.stdout) == (7, f"it is {nowhere}/named/sandy run -- a b\n")
    done = run_module(nowhere / "bin", "run")
    assert done.returncode == 125
    assert done.stderr.startswith("sandy: the program sandy: not found")


def test_deepagents_missing_is_said_with_its_cure() -> None:
    source = str(pathlib.Path(__file__).parents[2] / "src")
    code = "import sys; sys.modules['deepagents'] = None; import sandy; import deepagents_sandbox"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: deepagents_sandbox needs deepagents: pip install 'deepagents-sandbox[deepagents]'" in done.stderr


def test_the_plain_package_imports_nothing_foreign() -> None:
    source = str(pathlib.Path(__file__).parents[2] / "src")
    code = (
        "import sys; before = set(sys.modules); import sandy; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; print(sorted(new - sys.stdlib_module_names))"
    )
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['sandy']\n", "")
