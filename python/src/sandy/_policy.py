"""Builds the policy JSON from keywords and an optional base. Validation is the program's: one place decides what is valid."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from sandy._arguments import check_flag, check_list, check_path, check_text, check_texts, check_variables, encode_text, wrong_type
from sandy._named_policy import find_policy

StrPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Amount: TypeAlias = int | float | str
"""A size ("512M", bytes as a number), a duration ("10m", seconds as a number), or a number of cores."""

_MAX_FILE: Final = 1_048_576
_WORKSPACE_MOUNT: Final = "/workspace"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)


class BasePolicy(NamedTuple):
    """What keywords are added to.

    `file` is where it was read from, absolute: it decides the next start, so no command may change it. None: it is no file.
    """

    policy: dict[str, Any]
    file: bytes | None = None


def load_policy(policy: StrPath | Mapping[str, Any] | None) -> BasePolicy:
    """The base policy as a dict of its own: from a JSON file, one that has a name, a mapping, or nothing.

    Raises:
        PolicyError: If there is no policy of that name, or it can't be trusted.
        ValueError: If the file is too large, not JSON, not an object, or has a key twice.
        OSError: If the file can't be read.
    """
    if policy is None:
        return BasePolicy({"version": 1})
    if isinstance(policy, Mapping):
        # Deep, and sure to be JSON.
        copy: dict[str, Any] = json.loads(json.dumps(policy, default=_policy_value))
        copy.setdefault("version", 1)
        return BasePolicy(_with_absolute_paths(copy))
    if not isinstance(policy, (str, bytes, os.PathLike)):
        raise wrong_type("policy", policy, "a policy's name, the path of a policy file, or a policy as a mapping")
    # The program knows where to look, and whom to trust there.
    if isinstance(policy, str) and _NAME.fullmatch(policy):
        found = find_policy(policy)
        return BasePolicy(_parsed(os.fsdecode(found.file), found.text), found.file)
    name = os.fsdecode(policy)
    with Path(name).open("rb") as file:
        text = file.read(_MAX_FILE + 1)
    return BasePolicy(_parsed(name, text), os.path.abspath(os.fsencode(policy)))


def _parsed(name: str, text: bytes) -> dict[str, Any]:
    if len(text) > _MAX_FILE:
        msg = f"policy {name!r} is larger than {_MAX_FILE} bytes"
        raise ValueError(msg)
    try:
        loaded = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        msg = f"policy {name!r} is not valid JSON: {error}"
        raise ValueError(msg) from error
    if not isinstance(loaded, dict):
        msg = f"policy {name!r} is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the file is wrong, not an argument's type
    return _with_absolute_paths(loaded)


def build_policy(
    base: dict[str, Any],
    *,
    workspace: StrPath | None,
    read: Iterable[StrPath],
    write: Iterable[StrPath],
    deny: Iterable[StrPath],
    env: Mapping[str, str] | None,
    pass_env: Iterable[str],
    allow_domains: Iterable[str] | None,
    deny_domains: Iterable[str],
    allow_private: Iterable[str],
    publish: Iterable[str],
    asks: bool,
    seccomp: str | os.PathLike[str] | Mapping[str, Any] | None,
    hostname: str | None,
    limits: Mapping[str, Amount | bool | None],
) -> bytes:
    """The policy as JSON: the keywords merged over the base.

    Lists are joined. A value that both give differently is a contradiction.

    Raises:
        ValueError: If a keyword contradicts the base; the message names both.
        TypeError: If an argument has a wrong type.
    """
    merge = _Merge(base)
    if workspace is not None:
        merge.value("workspace", "filesystem.workspace.path", path_json("workspace", workspace))
        merge.value("workspace", "filesystem.workspace.mode", "bind")
        merge.default("filesystem.workspace.mount", _WORKSPACE_MOUNT)
    for name, paths in (("read", read), ("write", write), ("deny", deny)):
        merge.items(name, f"filesystem.{name}", _paths(name, paths))
    if allow_domains is not None:
        merge.value("allow_domains", "network.mode", "allowlist")
        merge.items("allow_domains", "network.allow", check_texts("allow_domains", allow_domains), keep_empty=True)
    merge.items("deny_domains", "network.deny", check_texts("deny_domains", deny_domains))
    merge.items("allow_private", "network.allow_private", check_texts("allow_private", allow_private))
    if asks:
        # Alone it is a network in which nothing is but what is asked for.
        merge.value("on_request", "network.mode", "allowlist")
    if published := check_texts("publish", publish):
        merge.value("publish", "network.mode", "allowlist")
        merge.items("publish", "network.publish", published)
    if seccomp is not None:
        merge.value("seccomp", "seccomp", _seccomp_json(seccomp))
    merge.environment({} if env is None else check_variables("env", env), check_texts("pass_env", pass_env))
    if hostname is not None:
        merge.value("hostname", "process.hostname", check_text("hostname", hostname))
    for name, amount in limits.items():
        if amount is not None:
            merge.value(name, f"limits.{name}", _amount(name, amount))
    return json.dumps(merge.policy, allow_nan=False).encode()


def build_limits(limits: Mapping[str, Amount | None]) -> bytes:
    """A policy of nothing but limits, as JSON.

    Raises:
        TypeError: If one has a wrong type.
    """
    given = {name: _amount(name, amount) for name, amount in limits.items() if amount is not None}
    return json.dumps({"version": 1, "limits": given}, allow_nan=False).encode()


def path_json(name: str, path: StrPath) -> str | dict[str, str]:
    """A host path as the policy writes it. Relative ones are from here: the program's current directory is another.

    Raises:
        TypeError: If it is no path; `name` says which.
    """
    plain = os.fspath(check_path(name, path))
    try:
        raw = os.fsencode(plain)
    except UnicodeEncodeError as error:
        msg = f"{name} is not valid text: {error}"
        raise ValueError(msg) from error
    # As bytes, "~" means itself.
    tilde = isinstance(plain, str) and (plain == "~" or plain.startswith("~/"))
    if not tilde and not raw.startswith(b"/"):
        raw = os.path.join(os.getcwdb(), raw) if raw else raw
    return _text_json(raw)


def _with_absolute_paths(policy: dict[str, Any]) -> dict[str, Any]:
    """Makes relative host paths absolute, in place; what has another type than it should is left for the program to refuse."""
    filesystem = policy.get("filesystem")
    if isinstance(filesystem, dict):
        for name in ("read", "write", "deny"):
            rules = filesystem.get(name)
            if isinstance(rules, list):
                filesystem[name] = [_absolute_json(rule) for rule in rules]
        _make_absolute(filesystem.get("workspace"), "path")
    _make_absolute(policy.get("seccomp"), "file")
    return policy


def _make_absolute(table: object, name: str) -> None:
    if isinstance(table, dict) and name in table:
        table[name] = _absolute_json(table[name])


def _absolute_json(path: Any) -> Any:  # noqa: ANN401 - JSON
    """A path of a policy, in each of the two ways to write one: a text, or an object with the bytes in base64."""
    if isinstance(path, str) and path:
        return path_json("policy", path)
    if isinstance(path, dict) and path.keys() == {"bytes"} and isinstance(path["bytes"], str):
        try:
            raw = base64.b64decode(path["bytes"], validate=True)
        except (binascii.Error, ValueError):
            return path
        # What is absolute stays as it is: as bytes, "~" and "*" mean themselves.
        return path if raw.startswith(b"/") or not raw else _bytes_json(os.path.join(os.getcwdb(), raw))
    return path


def _policy_value(value: object) -> object:
    """What a policy as a mapping may have besides JSON's types: paths, and mappings that are no dict.

    Raises:
        TypeError: If it is something else.
    """
    if isinstance(value, (bytes, os.PathLike)):
        return path_json("policy", value)
    if isinstance(value, Mapping):
        return dict(value)
    raise wrong_type("a value in policy", value, "one that JSON has, or a path")


def _paths(name: str, paths: Iterable[StrPath]) -> list[str | dict[str, str]]:
    return [path_json(f"{name}[{at}]", path) for at, path in enumerate(check_list(name, paths, "paths"))]


def _amount(name: str, amount: object) -> Amount | bool:
    if name == "best_effort":
        return check_flag(name, amount)
    if isinstance(amount, bool) or not isinstance(amount, (int, float, str)):
        raise wrong_type(name, amount, 'a number, or a str such as "512M", "10m" or "1.5"')
    return amount


def _text_json(raw: bytes) -> str | dict[str, str]:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _bytes_json(raw)


def _bytes_json(raw: bytes) -> dict[str, str]:
    return {"bytes": base64.b64encode(raw).decode()}


def _seccomp_json(seccomp: str | os.PathLike[str] | Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(seccomp, Mapping):
        policy: dict[str, Any] = json.loads(json.dumps(seccomp, default=_policy_value))
        _make_absolute(policy, "file")
        return policy
    check_path("seccomp", seccomp)
    if isinstance(seccomp, str) and "/" not in seccomp and not seccomp.endswith(".json"):
        return seccomp
    return {"file": path_json("seccomp", seccomp)}


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            msg = f"key {name!r} stands twice"
            raise ValueError(msg)
        members[name] = value
    return members


class _Merge:
    """Puts keywords into a policy, and refuses contradictions."""

    def __init__(self, policy: dict[str, Any]) -> None:
        self.policy = policy

    def value(self, keyword: str, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        """Sets a single value."""
        table, name = self._table(key)
        if name in table and table[name] != value:
            msg = f"{keyword}={value!r} contradicts the policy's {key} = {table[name]!r}: leave one of them out"
            raise ValueError(msg)
        table[name] = value

    def default(self, key: str, value: str) -> None:
        """Sets a value that the base may have set otherwise."""
        table, name = self._table(key)
        table.setdefault(name, value)

    def items(self, keyword: str, key: str, items: list[Any], *, keep_empty: bool = False) -> None:
        """Adds to a list."""
        if not items and not keep_empty:
            return
        table, name = self._table(key)
        before = table.setdefault(name, [])
        if not isinstance(before, list):
            msg = f"{keyword} can't be added to the policy's {key}, which is no list"
            raise ValueError(msg)  # noqa: TRY004 - the policy's content is wrong, not an argument's type
        before.extend(item for item in items if item not in before)

    def environment(self, env: Mapping[str, str], passed: list[str]) -> None:
        """Sets variables, and takes those to be passed from this process as it is now, not as it was at the first sandbox."""
        for name, value in env.items():
            self._variable("env", name, _text_json(encode_text(f"env[{name!r}]", value)))
        names = list(passed)
        table = self.policy.get("environment")
        if isinstance(table, dict) and isinstance(table.get("pass"), list):
            names += table.pop("pass")
        for name in names:
            if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                msg = f"pass_env (environment.pass): {name!r} is not the name of a variable"
                raise ValueError(msg)
            if name in os.environ:
                self._variable("pass_env", name, _text_json(os.fsencode(os.environ[name])))

    def _variable(self, keyword: str, name: str, value: str | dict[str, str]) -> None:
        table, _ = self._table("environment.set.*")
        if name in table and table[name] != value:
            msg = f"{keyword} contradicts another value for {name} (the policy's environment.set, or env): leave one out"
            raise ValueError(msg)
        table[name] = value

    def _table(self, key: str) -> tuple[dict[str, Any], str]:
        *path, name = key.split(".")
        table = self.policy
        for step in path:
            inner = table.setdefault(step, {})
            if not isinstance(inner, dict):
                msg = f"the policy's {step} is no object, so {key} can't be set in it"
                raise ValueError(msg)  # noqa: TRY004 - see above
            table = inner
        return table, name
