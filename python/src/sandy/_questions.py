"""What no rule of a sandbox's network names, and somebody is asked for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from sandy._errors import SandboxError
from sandy._exchange import Send, receive, start

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._server import Server

OnRequest: TypeAlias = Callable[[str], str]

_VERDICTS = ("once", "always", "deny")
_log = logging.getLogger("sandy")


def answer_requests(serve: Server, sandbox: str, on_request: OnRequest) -> None:
    """Answers a sandbox's questions in a thread, until the sandbox ends."""
    threading.Thread(target=_run, args=(serve, sandbox, on_request), name=f"sandy-questions-{sandbox}", daemon=True).start()


def _run(serve: Server, sandbox: str, on_request: OnRequest) -> None:
    try:
        serve.run(_questions(sandbox, on_request))
    except (SandboxError, OSError):
        return  # gone, and with it whoever asked


def _questions(sandbox: str, on_request: OnRequest) -> Exchange[None]:
    yield start("questions", patience=None, sandbox=sandbox)
    while True:
        frame = yield from receive()
        if frame.header.get("ev") == "end":
            return
        target, number = frame.header.get("target"), frame.header.get("question")
        if isinstance(target, str) and type(number) is int:
            yield Send({"op": "answer", "question": number, "verdict": _verdict(target, on_request)})


def _verdict(target: str, on_request: OnRequest) -> str:
    try:
        verdict = on_request(target)
    except Exception:  # noqa: BLE001 - whatever it raises is a denial
        _log.exception("on_request failed for %s, which is denied", target)
        return "deny"
    if verdict in _VERDICTS:
        return verdict
    _log.error("on_request returned %r for %s, which is denied: it returns %s", verdict, target, " or ".join(_VERDICTS))
    return "deny"
