"""Finds the `sandy` program, which finds its helpers beside itself, and bubblewrap (src/host/programs.h has that order).

The order, and why:
1. the directory named by SANDY_PROGRAMS: somebody said so; no other place is tried then,
2. the package's own `_programs` directory: the programs that this version was tested with,
3. /usr/libexec/sandy: a distribution's package,
4. PATH, its absolute directories: one that was built and installed by hand. The current directory is never searched.

A program is taken only where nobody else could have put it there (see `_trust`), so that no project directory and no shared
one can put its own `sandy` in front.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sandy._errors import SandboxStartError
from sandy._trust import replaceable_by_others

VARIABLE = "SANDY_PROGRAMS"
_DISTRIBUTION = "/usr/libexec/sandy"
_HINT = (
    "reinstall deepagents-sandbox from a wheel, install the distribution's package sandy, "
    "or set SANDY_PROGRAMS to the directory of the built programs"
)


def find_sandy() -> Path:
    """The path of the `sandy` program.

    Raises:
        SandboxStartError: If there is none; the text lists every place that was searched.
    """
    searched: list[str] = []
    named = os.environ.get(VARIABLE)
    if named:
        if not os.path.isabs(named):
            raise SandboxStartError(f"{VARIABLE}={named}", "not an absolute path", "give the full path of the directory")
        program = _program_in(Path(named), f"{VARIABLE}={named}", searched)
    else:
        program = _packaged(searched) or _distributed(searched) or _on_path(searched)
    if program is None:
        places = "".join(f"\n  {place}" for place in searched)
        raise SandboxStartError("the program sandy", f"not found. Searched:{places}", _HINT)
    return program


def _packaged(searched: list[str]) -> Path | None:
    # Every directory of the package: an editable install keeps built files apart from the sources.
    import sandy  # noqa: PLC0415 - the package is complete only after this module was imported

    for directory in sandy.__path__:
        program = _program_in(Path(directory) / "_programs", "the package's own programs", searched)
        if program is not None:
            return program
    return None


def _distributed(searched: list[str]) -> Path | None:
    return _program_in(Path(_DISTRIBUTION), "a distribution's package", searched)


def _on_path(searched: list[str]) -> Path | None:
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(entry):
            searched.append(f"{entry!r} (PATH): skipped, because it is not an absolute path")
            continue
        program = _program_in(Path(entry), "PATH", searched)
        if program is None:
            continue
        if not _is_console_script(program):
            return program
        searched[-1:] = [f"{program} (PATH): skipped, because it is the Python package's own script"]
    return None


def _program_in(directory: Path, source: str, searched: list[str]) -> Path | None:
    program = directory / "sandy"
    place = f"{program} ({source})"
    searched.append(place)
    try:
        status = program.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not os.access(program, os.X_OK):
        searched[-1] += ": not an executable file"
        return None
    fault = replaceable_by_others(program)
    if fault is not None:
        searched[-1] += f": skipped, because {fault}"
        return None
    return program


def _is_console_script(program: Path) -> bool:
    """Whether it is what pip makes for `sandy._cli:main`: becoming that would never end."""
    try:
        with program.open("rb") as file:
            start = file.read(2000)
    except OSError:
        return False
    return start.startswith(b"#!") and b"from sandy._cli import" in start
