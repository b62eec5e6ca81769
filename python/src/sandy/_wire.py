"""Frames of the wire protocol, version 1 (src/session/PROTOCOL.md), without any input or output."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandy._errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = 1
MAX_HEADER: Final = 65_536
MAX_REQUEST_PAYLOAD: Final = 67_108_864
MAX_REPLY_PAYLOAD: Final = 1_048_576
MAX_ARGS: Final = 65_536
MAX_DATA: Final = 262_144
"""Bytes that one `data` frame may hold."""
WINDOW: Final = 1_048_576
"""Bytes of stream data that may be under way without having been credited."""

LEAST_CHARGE: Final = 256
"""What a stream event takes of the window at least, however few bytes it has."""

_PREFIX: Final = struct.Struct("<II")
_BUFFER_SIZE: Final = 65_536 + 8_192

# Built once: json.dumps() with separators makes a new encoder at every call.
_encode_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode_json = json.JSONDecoder().decode


class Frame(NamedTuple):
    """One frame as it arrived."""

    header: dict[str, Any]
    payload: bytes | bytearray


def encode_prefix(header: Mapping[str, object], payload_size: int) -> bytes:
    """The two lengths and the header of a frame, to be followed by its payload.

    Raises:
        ValueError: If the header or the payload is longer than the protocol allows.
    """
    text = _encode_json(header).encode()
    if len(text) > MAX_HEADER:
        msg = f"too many or too long fields: a header of {len(text)} bytes; at most {MAX_HEADER} are possible"
        raise ValueError(msg)
    if payload_size > MAX_REQUEST_PAYLOAD:
        msg = f"{payload_size} bytes are too many for one request: at most {MAX_REQUEST_PAYLOAD} are possible"
        raise ValueError(msg)
    return _PREFIX.pack(len(text), payload_size) + text


def join_args(args: Sequence[bytes]) -> tuple[list[int], bytes]:
    """The `args` field for these byte strings, and the bytes that the payload starts with."""
    return [len(arg) for arg in args], args[0] if len(args) == 1 else b"".join(args)


def split_args(frame: Frame) -> list[bytes]:
    """The byte strings that a frame's payload starts with.

    Raises:
        ProtocolError: If `args` is no list of lengths that fit into the payload.
    """
    lengths = frame.header.get("args", [])
    if not isinstance(lengths, list) or not all(type(n) is int and n >= 0 for n in lengths):
        msg = "a frame's args is not a list of lengths"
        raise ProtocolError(msg)
    if sum(lengths) > len(frame.payload):
        msg = "a frame's args are longer than its payload"
        raise ProtocolError(msg)
    strings, at = [], 0
    for length in lengths:
        strings.append(bytes(frame.payload[at : at + length]))
        at += length
    return strings


class FrameParser:
    """Cuts received bytes into frames.

    The caller receives into `space()`, reports the number of bytes with `advance()`, and takes frames with `next_frame()`.
    Small frames share one buffer that lives as long as the connection; a payload that doesn't fit gets its own, into which
    the rest is received directly, so that no byte of a big payload is copied twice.
    """

    def __init__(self) -> None:
        """Makes an empty parser."""
        self._view = memoryview(bytearray(_BUFFER_SIZE))
        self._start = 0  # of the bytes not yet parsed
        self._end = 0
        self._big: bytearray | None = None  # the payload that is being received directly
        self._big_header: dict[str, Any] = {}
        self._big_filled = 0

    @property
    def pending(self) -> bool:
        """Whether bytes were received that no frame has used up."""
        return self._big is not None or self._start != self._end

    def space(self) -> memoryview:
        """Where to receive the next bytes; never empty after `next_frame()` gave None."""
        if self._big is not None:
            return memoryview(self._big)[self._big_filled :]
        return self._view[self._end :]

    def advance(self, count: int) -> None:
        """Says that `count` bytes were received into `space()`."""
        if self._big is not None:
            self._big_filled += count
        else:
            self._end += count

    def next_frame(self) -> Frame | None:
        """The next whole frame, or None if more bytes are needed.

        Raises:
            ProtocolError: If a length is over its limit or the header is no JSON object.
        """
        if self._big is not None:
            if self._big_filled < len(self._big):
                return None
            frame = Frame(self._big_header, self._big)
            self._big = None
            return frame
        available = self._end - self._start
        if available < _PREFIX.size:
            self._make_room(_PREFIX.size)
            return None
        header_size, payload_size = _PREFIX.unpack_from(self._view, self._start)
        if not 2 <= header_size <= MAX_HEADER or payload_size > MAX_REPLY_PAYLOAD:  # noqa: PLR2004 - "{}"
            msg = f"a frame with a header of {header_size} and a payload of {payload_size} bytes"
            raise ProtocolError(msg)
        head = _PREFIX.size + header_size
        if available < head:
            self._make_room(head)
            return None
        body = self._start + head
        if available >= head + payload_size:
            header = self._parse_header(self._start + _PREFIX.size, body)
            payload = bytes(self._view[body : body + payload_size])
            self._start = body + payload_size
            if self._start == self._end:
                self._start = self._end = 0
            return Frame(header, payload)
        if head + payload_size <= _BUFFER_SIZE:
            self._make_room(head + payload_size)
            return None
        self._big_header = self._parse_header(self._start + _PREFIX.size, body)
        self._big = bytearray(payload_size)
        self._big_filled = self._end - body
        self._big[: self._big_filled] = self._view[body : self._end]
        self._start = self._end = 0
        return None

    def _parse_header(self, start: int, end: int) -> dict[str, Any]:
        try:
            header = _decode_json(str(self._view[start:end], "utf-8"))
        except (ValueError, RecursionError) as error:
            msg = f"a frame's header is not JSON: {error}"
            raise ProtocolError(msg) from error
        if not isinstance(header, dict):
            msg = "a frame's header is not a JSON object"
            raise ProtocolError(msg)
        return header

    def _make_room(self, needed: int) -> None:
        """Moves what is left to the front where a frame of `needed` bytes would not fit behind it."""
        if self._start and self._start + needed > _BUFFER_SIZE:
            rest = self._end - self._start
            self._view[:rest] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, rest
