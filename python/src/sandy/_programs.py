"""Finds the `sandy` program, which finds its helpers beside itself.

The order, and why:
1. the directory named by SANDY_PROGRAMS: somebody said so; no other place is tried then,
2. the package's own `_programs` directory: the programs that this version was tested with,
3. PATH: a distribution's package. Only absolute directories that nobody else can write to count, so that no project
   directory and no shared one can put its own `sandy` in front. The current directory is never searched.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sandy._errors import SandboxStartError

VARIABLE = "SANDY_PROGRAMS"
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
        program = _packaged(searched) or _on_path(searched)
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


def _on_path(searched: list[str]) -> Path | None:
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(entry):
            searched.append(f"{entry!r} (PATH): skipped, because it is not an absolute path")
            continue
        program = _program_in(Path(entry), "PATH", searched)
        if program is None:
            continue
        fault = _writable_by_others(Path(entry)) or _writable_by_others(program)
        if fault is None:
            return program
        searched[-1:] = [f"{program} (PATH): skipped, because {fault}"]
    return None


def _program_in(directory: Path, source: str, searched: list[str]) -> Path | None:
    program = directory / "sandy"
    searched.append(f"{program} ({source})")
    try:
        status = program.stat()
    except OSError:
        return None
    if stat.S_ISREG(status.st_mode) and os.access(program, os.X_OK):
        return program
    searched[-1] += ": not an executable file"
    return None


def _writable_by_others(path: Path) -> str | None:
    """Why somebody else could have put this file or directory there, or None."""
    try:
        status = path.stat()
    except OSError as error:
        return f"{path}: {error.strerror}"
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()):
        return f"{path} is writable by others"
    return None
