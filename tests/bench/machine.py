"""What processes on this machine use."""

from __future__ import annotations

import os
import pathlib


def children(pid: int) -> list[int]:
    """Processes whose parent it is."""
    return [child for child, parent in _parents().items() if parent == pid]


def descendants(pid: int) -> list[int]:
    """Its children, theirs, and so on."""
    parents = _parents()
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _parents() -> dict[int, int]:
    out = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                out[int(entry)] = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue  # it has just ended
    return out


def pss_kib(pid: int) -> int | None:
    """Its proportional share of memory (proc_pid_smaps(5)); None where that can't be read."""
    return _smaps(pid, "Pss")


def rss_kib(pid: int) -> int | None:
    """Its resident memory; None where that can't be read."""
    return _smaps(pid, "Rss")


def _smaps(pid: int, key: str) -> int | None:
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(key + ":")), None)


def state_left() -> int:
    """Directories of sandboxes in the state directory."""
    state = pathlib.Path(os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local/state") / "sandy"
    return len(list(state.glob("sandbox-*")))
