"""Who else could have put a program where it is: what src/host/replaceable.h is for the programs themselves."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

_NOBODY = 65534
_MAX_LINKS = 40
_TOP = 2  # "/" and its directories: as many parts of a path


def replaceable_by_others(program: Path) -> str | None:
    """Why somebody else could have put this program there, or None.

    Somebody else is neither root, nor this user, nor who owns this very file, whose code runs already. What it really is, each
    link that is followed to it, and every directory above one of these must be theirs, and writable by nobody else.
    """
    owners = {0, os.geteuid(), _owner_of_this_package()}
    try:
        places = list(_way(program))
    except OSError as error:
        return f"{program}: {error.strerror}"
    for path in {path: None for place in places for path in (place, *place.parents)}:
        fault = _fault(path, owners)
        if fault is not None:
            return fault
    return None


def _way(program: Path) -> Iterator[Path]:
    # Each link on the way to an absolute path's file, each directory that ".." leaves again, and the file (path_resolution(7)).
    at, names, links = Path("/"), list(reversed(program.parts[1:])), 0
    while names:
        name = names.pop()
        if name == "..":
            yield at
            at = at.parent
            continue
        at /= name
        if at.is_symlink() and links < _MAX_LINKS:
            links += 1
            yield at
            target = Path(os.readlink(at))
            at = Path("/") if target.is_absolute() else at.parent
            names += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    yield at


def _owner_of_this_package() -> int:
    try:
        return os.stat(__file__).st_uid
    except OSError:  # in an archive
        return 0


def _fault(path: Path, owners: set[int]) -> str | None:
    try:
        status = path.lstat()
    except OSError as error:
        return f"{path}: {error.strerror}"
    # Whose the root is, theirs is all that is seen here: in a user namespace with a range of users the system's may look as if
    # it were nobody's.
    if len(path.parts) > 1 and status.st_uid not in owners and not _is_unseen_administrator(status.st_uid, path):
        return f"{path} belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        return None  # its mode means nothing
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None  # nobody can replace there what is another's
    if status.st_mode & stat.S_IWOTH or _may_group_write(path, status):
        return f"{path} is writable by others"
    return None


def _is_unseen_administrator(owner: int, path: Path) -> bool:
    # In a user namespace without the system's users their files look as if they were nobody's (user_namespaces(7)), as other
    # users' do. Only the administrator makes something at the root, in /usr or in /etc.
    if owner != _NOBODY or not (len(path.parts) <= _TOP or path.parts[1] in ("usr", "etc")):
        return False
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return False
    ranges = [[int(number) for number in line.split()] for line in lines]
    return all(not first <= _NOBODY < first + count for first, _, count in ranges)


def _may_group_write(path: Path, status: os.stat_result) -> bool:
    if not status.st_mode & stat.S_IWGRP:
        return False
    # With an access control list the group bits are the most that anybody gets of it (acl(5)), and say nothing of the group.
    try:
        listed = "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        listed = error.errno != errno.ENOTSUP  # what can't be known counts as one
    return listed or not _is_group_of_one(status.st_gid, status.st_uid)


def _is_group_of_one(group: int, user: int) -> bool:
    # Where each user has a group of their own with the same name (Debian's adduser), files are often writable for it.
    try:
        who, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    if who.pw_gid != group or who.pw_name != entry.gr_name or not set(entry.gr_mem) <= {who.pw_name}:
        return False
    return all(other.pw_gid != group or other.pw_uid == user for other in pwd.getpwall())
