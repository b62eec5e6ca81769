"""An installed wheel works by itself: no other package, no SANDY_PROGRAMS. Run by tests/run.sh in a virtual environment.

usage: wheel_check.py WHEEL
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

import sandy

PROGRAMS = ["sandy", "sandy-agent", "sandy-attack", "sandy-launch", "sandy-proxy"]
# Those that are linked in, but Boost, whose terms ask for no copy.
LIBRARIES = ["libc-ares", "libc6", "libcli11", "libidn2", "libpsl", "libseccomp", "libstdc++", "libunistring", "nlohmann-json3"]
OLDEST_GLIBC = 34  # of 2.34: what the wheel is to run with if it was built with Debian 12's 2.36

package = pathlib.Path(sandy.__file__).parent
wheel = pathlib.Path(sys.argv[1])


def check_environment() -> None:
    assert "SANDY_PROGRAMS" not in os.environ
    assert importlib.util.find_spec("deepagents") is None, "the environment is not bare, so this proves nothing"


def needed_glibc(program: pathlib.Path) -> int:
    """NN of the newest 2.NN that the program asks for; 0 for a static one."""
    text = subprocess.run(["readelf", "--version-info", "--wide", program], capture_output=True, text=True, check=True).stdout
    return max((int(number) for number in re.findall(r"GLIBC_2\.(\d+)", text)), default=0)


def check_tag() -> None:
    names = re.fullmatch(r"(deepagents_sandbox)-([^-]+)-(py3)-(none)-manylinux_2_(\d+)_(\w+)\.whl", wheel.name)
    assert names, wheel.name
    assert (names[2], names[6]) == (sandy.__version__, platform.machine())
    tags = importlib.metadata.distribution("deepagents-sandbox").read_text("WHEEL") or ""
    assert re.findall(r"^Tag: (.*)$", tags, re.MULTILINE) == [f"py3-none-manylinux_2_{names[5]}_{names[6]}"], tags
    assert "Root-Is-Purelib: false" in tags
    needed = max(needed_glibc(package / "_programs" / program) for program in PROGRAMS)
    assert needed == int(names[5]), f"the programs need glibc 2.{needed}, and the tag says 2.{names[5]}"
    if int(platform.libc_ver()[1].split(".")[1]) <= 36:
        assert needed == OLDEST_GLIBC, f"needs glibc 2.{needed}: see src/older_glibc"


def check_content() -> None:
    programs = package / "_programs"
    files = {str(path.relative_to(programs)) for path in programs.rglob("*") if path.is_file()}
    assert {path for path in files if "/" not in path} == set(PROGRAMS), files
    assert {f"share/seccomp/{name}.json" for name in ("default", "proxy", "strict")} <= files, files
    assert {f"policies/{name}.json" for name in ("git-clone-and-build", "no-network", "node-web", "python-data")} <= files, files
    assert {f"licenses/{name}.txt" for name in LIBRARIES} <= files, files
    for program in PROGRAMS:
        mode = (programs / program).stat().st_mode
        assert mode & 0o6022 == 0, f"{program} is writable by others, or has set-id bits: {mode:o}"
        assert mode & 0o111 == 0o111, f"{program} can't be run by all: {mode:o}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len({entry.date_time for entry in archive.infolist()}) == 1, "times of their own"
    wanted = r"(sandy|deepagents_sandbox)/(\w+/)*\w+\.py|(sandy|deepagents_sandbox)/py\.typed|sandy/_programs/.*|deepagents_sandbox-[^/]*\.dist-info/.*"
    assert [name for name in names if not name.endswith("/") and not re.fullmatch(wanted, name)] == []
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    metadata = importlib.metadata.metadata("deepagents-sandbox")
    assert {"deepagents", "bwrap"} <= set(metadata.get_all("Provides-Extra") or [])


def check_sandbox() -> str:
    assert sandy.__version__ != "0+unknown"
    with sandy.Sandbox() as sandbox:
        outcome = sandbox.run(["sh", "-c", "echo from $(id -un)"], timeout=60)
        assert (outcome.reason, outcome.exit_code) == ("exited", 0), outcome
        sandbox.write("/a.txt", "written")
        assert sandbox.read("/a.txt").error is None
    with sandy.Sandbox(policy="python-data") as sandbox:
        assert sandbox.run(["sh", "-c", "echo $MPLBACKEND"], timeout=60).stdout == b"Agg\n"
    return str(outcome.stdout.decode().strip())


check_environment()
check_tag()
check_content()
said = check_sandbox()
print(f"4 passed: {wheel.name}, {wheel.stat().st_size >> 10} KiB, {said}")
