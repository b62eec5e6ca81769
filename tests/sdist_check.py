"""The sdist has all that a wheel is built from: every source file, a configuration that CMake accepts, and a program that is compiled from it.

usage: sdist_check.py SDIST REPOSITORY DIRECTORY     (DIRECTORY: made anew, and filled)

All programs are compiled from it by a release (.github/workflows/release.yml); here it is the smallest, as the other suites compile all
from the same files.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tomllib

sdist, repository, directory = (pathlib.Path(argument) for argument in sys.argv[1:])
IGNORED = {"__pycache__", "build"}


def files_below(top: pathlib.Path) -> dict[str, bytes]:
    found = {}
    for at, directories, names in os.walk(top):
        directories[:] = [name for name in directories if name not in IGNORED]
        for name in names:
            path = pathlib.Path(at, name)
            found[str(path.relative_to(top))] = path.read_bytes()
    return found


shutil.rmtree(directory, ignore_errors=True)
directory.mkdir(parents=True)
with tarfile.open(sdist) as archive:
    assert len({member.mtime for member in archive.getmembers()}) == 1, "times of their own"
subprocess.run(["tar", "-xzf", sdist, "-C", directory], check=True)
(top,) = directory.iterdir()

for folder in ("src", "proxy", "cmake", "seccomp-policies", "packaging"):
    assert files_below(top / "programs" / folder) == files_below(repository / folder), folder
assert files_below(top / "src") == files_below(repository / "python/src")
for name in ("CMakeLists.txt", "VERSION", "LICENSE"):
    assert (top / "programs" / name).read_bytes() == (repository / name).read_bytes()
assert not (top / "VERSION").is_symlink() and not (top / "LICENSE").is_symlink()
with (top / "pyproject.toml").open("rb") as file:
    settings = tomllib.load(file)["tool"]["scikit-build"]

build = directory / "build"
define = [f"-D{name}={value}" for name, value in settings["cmake"]["define"].items()]
subprocess.run(["cmake", "-G", "Ninja", "-S", top / "programs", "-B", build, "-DCMAKE_BUILD_TYPE=Release", *define], check=True, stdout=subprocess.DEVNULL)
subprocess.run(["cmake", "--build", build, "--target", "sandy-launch"], check=True, stdout=subprocess.DEVNULL)
version = (repository / "VERSION").read_text().strip()
said = subprocess.run([build / "bin/sandy-launch", "--version"], capture_output=True, text=True, check=True).stdout
assert said == f"sandy-launch {version}\n", said
print(f"3 passed: {sdist.name}, {sdist.stat().st_size >> 10} KiB")
