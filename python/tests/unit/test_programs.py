from __future__ import annotations

import os
import pathlib
import struct
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
    monkeypatch.setattr(sandy._programs, "_DISTRIBUTION", str(tmp_path / "distribution"))
    monkeypatch.setattr(sandy, "__path__", [str(tmp_path / "package")])
    monkeypatch.chdir(tmp_path)
    for name in ("bin", "named", "package/_programs", "distribution"):
        (tmp_path / name).mkdir(parents=True, mode=0o755)
    return tmp_path


def make(program: pathlib.Path, mode: int = 0o755) -> pathlib.Path:
    program.write_text('#!/bin/sh\necho it is $0 "$@"\nexit 7\n')
    program.chmod(mode)
    return program


def test_the_order(nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = make(nowhere / "bin/sandy")
    assert find_sandy() == on_path
    distribution = make(nowhere / "distribution/sandy")
    assert find_sandy() == distribution
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
        f"{nowhere}/package/_programs/sandy (the package's own programs)",
        f"{nowhere}/distribution/sandy (a distribution's package)",
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


PLACES = ["bin", "named", "package/_programs", "distribution"]


@pytest.mark.parametrize("place", PLACES)
def test_what_others_can_write_is_skipped(nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    program = make(nowhere / place / "sandy")
    if place == "named":
        monkeypatch.setenv("SANDY_PROGRAMS", str(program.parent))
    assert find_sandy() == program
    for writable in (program, program.parent, nowhere):  # itself, its directory, and one above
        mode = writable.stat().st_mode
        writable.chmod(0o777)
        with pytest.raises(SandboxStartError, match=f"skipped, because {writable} is writable by others"):
            find_sandy()
        writable.chmod(mode)
    assert find_sandy() == program


def test_a_link_counts_where_it_is_and_where_it_leads(nowhere: pathlib.Path) -> None:
    program = make(nowhere / "named/sandy")
    link = nowhere / "bin/sandy"
    link.symlink_to("../named/sandy")
    assert find_sandy() == link
    for writable in (program.parent, link.parent):
        writable.chmod(0o777)
        with pytest.raises(SandboxStartError, match=f"{writable} is writable by others"):
            find_sandy()
        writable.chmod(0o755)


def test_links_to_links_and_what_they_leave_again_count_too(nowhere: pathlib.Path) -> None:
    program = make(nowhere / "named/sandy")
    for name in ("between", "left"):
        (nowhere / name).mkdir()
    (nowhere / "between/sandy").symlink_to(program)
    (nowhere / "bin/sandy").symlink_to("../left/../between/sandy")
    assert find_sandy()
    for name in ("named", "between", "left", "bin"):
        (nowhere / name).chmod(0o777)
        with pytest.raises(SandboxStartError, match=f"{nowhere / name} is writable by others"):
            find_sandy()
        (nowhere / name).chmod(0o755)


def test_an_access_control_list(nowhere: pathlib.Path) -> None:
    program = make(nowhere / "bin/sandy")
    # acl(5): the owner, user 1, the group, the mask, others.
    entries = [(1, 7, 2**32 - 1), (2, 6, 1), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 4, 2**32 - 1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(program, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"this file system has no access control lists: {error}")
    with pytest.raises(SandboxStartError, match="bin/sandy is writable by others"):
        find_sandy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give links away")
def test_a_link_of_others(nowhere: pathlib.Path) -> None:
    link = nowhere / "bin/sandy"
    link.symlink_to(make(nowhere / "named/sandy"))
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(SandboxStartError, match="bin/sandy belongs to user 12345"):
        find_sandy()


def test_the_packages_own_script_is_not_the_program(nowhere: pathlib.Path) -> None:
    script = make(nowhere / "bin/sandy")
    script.write_text("#!/usr/bin/python3\nimport sys\nfrom sandy._cli import main\nsys.exit(main())\n")
    with pytest.raises(SandboxStartError, match=r"bin/sandy \(PATH\): skipped, because it is the Python package's own script"):
        find_sandy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["bin/sandy", "bin"])
def test_what_belongs_to_others_is_skipped(nowhere: pathlib.Path, place: str) -> None:
    make(nowhere / "bin/sandy")
    os.chown(nowhere / place, 12345, 12345)
    with pytest.raises(SandboxStartError, match="belongs to user 12345"):
        find_sandy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another group")
def test_a_group_of_others_can_write(nowhere: pathlib.Path) -> None:
    make(nowhere / "bin/sandy")
    (nowhere / "bin").chmod(0o775)
    assert find_sandy()  # the group is root's own
    os.chown(nowhere / "bin", 0, 12345)
    with pytest.raises(SandboxStartError, match="bin is writable by others"):
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
