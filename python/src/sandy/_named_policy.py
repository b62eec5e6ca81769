"""Policies that have names. The program finds them: there is one place that knows where, and whom to trust there."""

from __future__ import annotations

import os
from typing import NamedTuple

from sandy._errors import PolicyError, ProtocolError, SandboxGoneError, SandboxStartError
from sandy._exchange import request, start
from sandy._process import current_serve
from sandy._wire import split_args


class PolicyFile(NamedTuple):
    """A policy's file, and what is in it."""

    file: bytes
    text: bytes


def find_policy(name: str) -> PolicyFile:
    """The policy of that name.

    Raises:
        PolicyError: If there is none, or it can't be trusted; the text lists every place that was searched.
        SandboxStartError: If the program can't be asked.
    """
    try:
        reply = current_serve().run(request(start("policy", (name.encode(), os.getcwdb()))))
    except SandboxGoneError as error:
        raise SandboxStartError("the sandbox", str(error), "sandy doctor shows what this machine lacks") from error
    if reply.error is not None:
        raise PolicyError.from_text(reply.detail)
    strings = split_args(reply.last)
    if len(strings) != 1:
        msg = f"an impossible answer to policy: {reply.end!r}"
        raise ProtocolError(msg)
    return PolicyFile(strings[0], bytes(reply.last.payload[len(strings[0]) :]))
