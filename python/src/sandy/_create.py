"""The request that makes a sandbox, and what its answer says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandy import _kept_server
from sandy._arguments import check_text, wrong_type
from sandy._errors import PolicyError, ProtocolError, SandboxGoneError, SandboxStartError
from sandy._exchange import request, start
from sandy._place import Place, decode_path
from sandy._process import current_serve
from sandy._wire import split_args

if TYPE_CHECKING:
    from sandy._exchange import Reply
    from sandy._server import Server

CREATE_PATIENCE: Final = 120.0

_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]) ?)+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])", re.ASCII)
_MAX_IDLE: Final = 366 * 86_400_000


class Created(NamedTuple):
    """What the program says of a sandbox."""

    place: Place
    degraded: tuple[str, ...]
    published: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Keep:
    """How a sandbox is to outlive its creator: with a name, for so many milliseconds without use, and over what workspace."""

    name: str | None = None
    idle_ms: int | None = None
    resume: str | None = None


def create(words: tuple[bytes, ...], *, asks: bool) -> tuple[Server, Created]:
    """Makes a sandbox that ends with this process.

    Raises:
        SandboxStartError: If it can't start.
    """
    serve = current_serve()
    try:
        reply = serve.run(request(start("create", words, patience=CREATE_PATIENCE, asks=asks or None)))
        return serve, _created(reply)
    except SandboxGoneError as error:
        raise SandboxStartError("the sandbox", str(error), "sandy doctor shows what this machine lacks") from error


def create_kept(words: tuple[bytes, ...], keep: Keep, *, asks: bool) -> tuple[Server, Created]:
    """Makes one that does not.

    Raises:
        SandboxStartError: If it can't start, or its name or id can't be had.
    """
    opening = start(
        "create",
        words,
        patience=CREATE_PATIENCE,
        asks=asks or None,
        keep=True,
        name=keep.name,
        idle_ms=keep.idle_ms,
        resume=keep.resume,
    )
    try:
        connection, reply = _kept_server.start_kept(request(opening))
        try:
            created = _created(reply)
        except BaseException:
            connection.close()
            raise
        return _kept_server.KeptServer(created.place.id, None, connection), created
    except SandboxGoneError as error:
        raise SandboxStartError("the sandbox", str(error), "sandy doctor shows what this machine lacks") from error


def describe(server: Server, sandbox: str) -> Created:
    """What `create` said of a sandbox that runs.

    Raises:
        SandboxGoneError: If it does not.
    """
    reply = server.run(request(start("describe", sandbox=sandbox)))
    if reply.error is not None:
        raise SandboxGoneError(reply.detail or f"sandbox {sandbox} is gone")
    return _created(reply)


def check_kept(keep: bool, name: object, idle_timeout: object, identity: object) -> Keep | None:
    """The options of a kept sandbox; None for one that is not kept.

    Raises:
        TypeError: If one has a wrong type.
        ValueError: If they make no sense.
    """
    if not keep and identity is None:
        if name is not None or idle_timeout is not None:
            msg = f"{'idle_timeout' if name is None else 'name'} is for a sandbox that is kept: add keep=True"
            raise ValueError(msg)
        return None
    return Keep(
        None if name is None else check_text("name", name),
        None if idle_timeout is None else _milliseconds(idle_timeout),
        None if identity is None else check_text("id", identity),
    )


def _milliseconds(idle: object) -> int:
    if isinstance(idle, str) and _DURATION.fullmatch(idle):
        value = round(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(idle)))
    elif isinstance(idle, (int, float)) and not isinstance(idle, bool) and idle >= 0:
        value = round(min(idle, _MAX_IDLE) * 1000)
    elif isinstance(idle, (str, int, float)) and not isinstance(idle, bool):
        msg = f'idle_timeout is {idle!r}: it must be a number of seconds, or a text such as "30m"'
        raise ValueError(msg)
    else:
        raise wrong_type("idle_timeout", idle, 'a number of seconds, or a str such as "30m"')
    return value


def _created(reply: Reply) -> Created:
    # "start" is for what this machine lacks, and "policy" for what is wrong wherever it runs.
    if reply.error == "policy":
        raise PolicyError.from_text(reply.detail)
    if reply.error is not None:
        raise SandboxStartError.from_text(reply.detail or f"the sandbox: {reply.error}")
    identity, degraded, strings = reply.end.get("sandbox"), reply.end.get("degraded", []), split_args(reply.last)
    if not isinstance(identity, str) or not isinstance(degraded, list) or len(strings) != 2:  # noqa: PLR2004 - as in the protocol
        msg = f"an impossible answer to create: {reply.end!r}"
        raise ProtocolError(msg)
    return Created(Place(identity, *map(decode_path, strings)), tuple(map(str, degraded)), _ports(reply.end.get("published", {})))


def _ports(published: Any) -> Mapping[int, int]:  # noqa: ANN401 - checked here
    if not isinstance(published, dict) or not all(key.isdecimal() and type(value) is int for key, value in published.items()):
        msg = f"published is {published!r}"
        raise ProtocolError(msg)
    return MappingProxyType({int(key): value for key, value in published.items()})
