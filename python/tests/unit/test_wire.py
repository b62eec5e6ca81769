from __future__ import annotations

import json
import struct

import pytest

from sandy import ProtocolError
from sandy._wire import MAX_HEADER, MAX_REPLY_PAYLOAD, MAX_REQUEST_PAYLOAD, Frame, FrameParser, encode_prefix, split_args


def frame(header: object, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<II", len(text), len(payload)) + text + payload


def parse(data: bytes, step: int) -> list[Frame]:
    parser, frames, at = FrameParser(), [], 0
    while True:
        got = parser.next_frame()
        if got is not None:
            frames.append(got)
            continue
        if at == len(data):
            assert not parser.pending
            return frames
        space = parser.space()
        assert len(space) > 0
        piece = data[at : at + min(step, len(space))]
        space[: len(piece)] = piece
        parser.advance(len(piece))
        at += len(piece)


SIZES = (0, 1, 8, 65_535, 65_536, 70_000, 73_728, 200_000, MAX_REPLY_PAYLOAD)


@pytest.mark.parametrize("step", [1_000, 4_096, 65_536, 10_000_000])
def test_frames_survive_any_cut(step: int) -> None:
    sent = [({"id": n, "ev": "data"}, bytes([n]) * size) for n, size in enumerate(SIZES)] * 2
    got = parse(b"".join(frame(header, payload) for header, payload in sent), step)
    assert [(f.header, bytes(f.payload)) for f in got] == sent


def test_frames_byte_by_byte() -> None:
    sent = [({"id": n}, b"x" * n) for n in range(20)]
    assert [(f.header, f.payload) for f in parse(b"".join(frame(*pair) for pair in sent), 1)] == sent


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<II", 1, 0) + b"x",
        struct.pack("<II", MAX_HEADER + 1, 0) + b"{",
        struct.pack("<II", 2, MAX_REPLY_PAYLOAD + 1) + b"{}",
        struct.pack("<II", 4, 0) + b"null",
        struct.pack("<II", 2, 0) + b"{]",
        struct.pack("<II", 2, 0) + b"\xff\xff",
        frame([]),
        struct.pack("<II", 60_000, 0) + b'{"a":' + b"[" * 59_995,
    ],
)
def test_broken_frames_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(data, 10_000_000)


def test_the_largest_header_fits() -> None:
    text = b'{"a":"' + b"x" * (MAX_HEADER - 8) + b'"}'
    assert len(text) == MAX_HEADER
    [got] = parse(struct.pack("<II", MAX_HEADER, 3) + text + b"abc", 70_000)
    assert got.payload == b"abc"


def test_requests_have_limits() -> None:
    with pytest.raises(ValueError, match="header"):
        encode_prefix({"a": "x" * MAX_HEADER}, 0)
    with pytest.raises(ValueError, match="too many"):
        encode_prefix({}, MAX_REQUEST_PAYLOAD + 1)


def test_split_args() -> None:
    assert split_args(Frame({"args": [1, 0, 2]}, b"abc")) == [b"a", b"", b"bc"]
    assert split_args(Frame({}, b"abc")) == []
    for args in ([4], [-1], ["1"], 3, [True]):
        with pytest.raises(ProtocolError):
            split_args(Frame({"args": args}, b"abc"))
