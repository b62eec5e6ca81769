"""Checks of what callers give: a wrong type is a TypeError that names the argument, what is wanted, and what came."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

MAX_TIMEOUT: Final = 10 * 366 * 24 * 3600
MAX_KEEP: Final = 67_108_864
"""Bytes of output that a sandbox keeps at most of a command and stream: 64 MiB."""

_SHOWN: Final = 60


def wrong_type(name: str, value: object, wanted: str) -> TypeError:
    """The error to raise."""
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}…"
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__} ({shown})")


def check_text(name: str, value: object, wanted: str = "a str") -> str:
    """A text.

    Raises:
        TypeError: If it is something else.
    """
    if not isinstance(value, str):
        raise wrong_type(name, value, wanted)
    return value


def check_flag(name: str, value: object) -> bool:
    """True or False, and not what merely counts as one: merge="no" would be true.

    Raises:
        TypeError: If it is something else.
    """
    if not isinstance(value, bool):
        raise wrong_type(name, value, "True or False")
    return value


def check_count(name: str, value: Any, wanted: str = "an int") -> int:  # noqa: ANN401 - what has __index__ has no type
    """A whole number, of any type that says it is one.

    Raises:
        TypeError: If it is something else.
    """
    if not isinstance(value, bool) and hasattr(type(value), "__index__"):
        return int(value.__index__())
    raise wrong_type(name, value, wanted)


def check_seconds(timeout: object) -> float:
    """A time limit.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is out of range.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong_type("timeout", timeout, "a number of seconds")
    if not 0 <= timeout <= MAX_TIMEOUT:
        msg = f"timeout is {timeout!r}: it must be a number of seconds from 0 (no limit) to {MAX_TIMEOUT}"
        raise ValueError(msg)
    return timeout


def check_keep(max_output_bytes: object) -> int:
    """How much output to keep.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is out of range.
    """
    keep = check_count("max_output_bytes", max_output_bytes, "a number of bytes, as an int")
    if not 0 <= keep <= MAX_KEEP:
        msg = f"max_output_bytes is {keep}: it must be from 0 to {MAX_KEEP} (64 MiB); on_output gets more, as it comes"
        raise ValueError(msg)
    return keep


def check_list(name: str, values: Any, of: str) -> list[Any]:  # noqa: ANN401 - checked here
    """The items of a list, or of what else gives items.

    Raises:
        TypeError: If it is none. A lone string gives letters, so that read="/" would quietly mean something else.
    """
    if isinstance(values, (str, bytes, os.PathLike)):
        msg = f"{name} takes a list: write {name}=[{values!r}]"
        raise TypeError(msg)
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise wrong_type(name, values, f"a list of {of}")
    return list(values)


def check_texts(name: str, values: object) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: If it is something else.
    """
    return [check_text(f"{name}[{at}]", value) for at, value in enumerate(check_list(name, values, "str"))]


def check_path(name: str, value: Any) -> Any:  # noqa: ANN401 - checked here
    """A path of this machine, in one of the types that Python has for them.

    Raises:
        TypeError: If it is something else.
    """
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong_type(name, value, "a path (str, bytes or os.PathLike)")
    return value


def check_variables(name: str, env: object) -> dict[str, str]:
    """Variables and their values.

    Raises:
        TypeError: If it is no mapping of texts to texts.
    """
    if not isinstance(env, Mapping):
        raise wrong_type(name, env, 'a mapping such as {"NAME": "value"}')
    for variable, value in env.items():
        check_text(f"a name in {name}", variable)
        check_text(f"{name}[{variable!r}]", value)
    return dict(env)


def encode_text(name: str, text: str) -> bytes:
    """The bytes of a text; those that came from bytes that are not UTF-8 (surrogateescape) become these bytes again.

    Raises:
        ValueError: If it has other lone surrogates, which no bytes stand for.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        msg = f"{name} is not valid text: {error}"
        raise ValueError(msg) from error


def encode_word(name: str, text: str) -> bytes:
    """The same, for what a system call takes.

    Raises:
        ValueError: Also if it has a NUL, which would end it.
    """
    if "\0" in text:
        msg = f"{name} has a NUL: {text!r}"
        raise ValueError(msg)
    return encode_text(name, text)


def encode_command(command: str | Sequence[str]) -> tuple[bytes, ...]:
    """A program and its arguments, or one shell command line.

    Raises:
        TypeError: If it is something else.
        ValueError: If it is empty, or a word has a NUL.
    """
    if isinstance(command, str):
        return (encode_text("command", command),)
    if isinstance(command, (bytes, bytearray, memoryview, Mapping, os.PathLike)) or not isinstance(command, Iterable):
        raise wrong_type("command", command, "a str (a shell command line) or a list of str (a program and its arguments)")
    words = tuple(encode_word(f"command[{at}]", word) for at, word in enumerate(check_texts("command", command)))
    if not words:
        msg = "command is empty: it needs at least the name of a program"
        raise ValueError(msg)
    return words
