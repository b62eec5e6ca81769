"""The group "File transfer API" of the cases."""

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import resource
import time

import pytest

from deepagents_sandbox import Sandbox, SandboxFileError


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [1, 18 << 10, 19 << 10, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_b087_what_is_reported_is_there(be: Sandbox, ws: str, size: int) -> None:
    data = os.urandom(size)
    assert be.upload_files([(f"{ws}/f", data)])[0].error is None
    assert be.execute(f"sha256sum < {ws}/f").output == f"{sha(data)}  -\n"


def test_b087_a_full_or_read_only_target(ws: str) -> None:
    with Sandbox(tmp_size="1M") as sandbox:
        [full] = sandbox.upload_files([("/tmp/big", bytes(3 << 20))])
        assert full.error is not None
        [read_only] = sandbox.upload_files([("/usr/big", b"x")])
        assert read_only.error is not None
        assert sandbox.execute("ls -A /tmp; ls /usr/big").exit_code != 0
        assert "big" not in sandbox.execute("ls -A /tmp").output


def test_b089_a_bad_file_spoils_no_batch(be: Sandbox, ws: str) -> None:
    be.execute(f"mkdir {ws}/dir; echo s > {ws}/secret; chmod 0 {ws}/secret")
    paths = [f"{ws}/ok1", "/proc/x", f"{ws}/dir/", "rel.txt", f"{ws}/ok2"]
    uploads = be.upload_files([(path, str(n).encode()) for n, path in enumerate(paths)])
    assert [r.path for r in uploads] == paths
    assert (uploads[0].error, uploads[4].error) == (None, None)
    assert uploads[1].error is not None
    assert (uploads[2].error, uploads[3].error) == ("is_directory", "invalid_path")
    paths = [f"{ws}/ok1", f"{ws}/none", ws, f"{ws}/secret", f"{ws}/ok1/below", "/etc/shadow", f"{ws}/ok2"]
    downloads = be.download_files(paths)
    assert [r.path for r in downloads] == paths
    assert [r.content for r in downloads] == [b"0", None, None, None, None, None, b"4"]
    assert [r.error for r in downloads[:5]] == [None, "file_not_found", "is_directory", "permission_denied", "file_not_found"]
    assert downloads[5].error in ("file_not_found", "permission_denied")


def test_b090_any_bytes(be: Sandbox, ws: str) -> None:
    contents = [bytes(range(256)) * 1000, b"", b"\r\n\0\x1a\x04", b"x" * 10_000_000]
    files = [(f"{ws}/{n}", content) for n, content in enumerate(contents)]
    assert [r.error for r in be.upload_files(files)] == [None] * 4
    assert [r.content for r in be.download_files([path for path, _ in files])] == contents
    assert be.execute(f"stat -c %s {ws}/1").output == "0\n"


def test_b090_ten_thousand_small_files(be: Sandbox, ws: str) -> None:
    before = time.monotonic()
    files = [(f"{ws}/d{n % 100}/{n}", str(n).encode()) for n in range(10_000)]
    assert not [r for r in be.upload_files(files) if r.error is not None]
    assert be.execute(f"find {ws} -type f | wc -l").output == "10000\n"
    assert [r.content for r in be.download_files([path for path, _ in files])] == [content for _, content in files]
    assert time.monotonic() - before < 120  # some seconds, unless the machine is very busy


def test_b092_odd_names(be: Sandbox, ws: str) -> None:
    be.execute(f"mkdir {ws}/real; ln -s /usr {ws}/a; ln -s {ws}/real {ws}/link")
    refused = ["../x", "~x/y", "", "/", f"{ws}/../../etc/x", f"{ws}/a/x"]
    responses = be.upload_files([(path, b"x") for path in refused])
    assert not [r for r in responses if r.error is None], responses
    assert [r.error for r in responses[:3]] == ["invalid_path"] * 3
    good = {
        f"{ws}//b/./c": f"{ws}/b/c",
        f"{ws}/n1/n2/f": f"{ws}/n1/n2/f",
        f"{ws}/link/../d": f"{ws}/d",
        f"{ws}/ü\n'\"": f"{ws}/ü\n'\"",
    }
    assert [r.error for r in be.upload_files([(path, b"x") for path in good])] == [None] * 4
    assert [r.content for r in be.download_files(list(good.values()))] == [b"x"] * 4
    assert be.execute(f"stat -c %a {ws}/n1 {ws}/n1/n2").output == "755\n755\n"


def test_b093_owner_mode_and_links(be: Sandbox, ws: str) -> None:
    script = b"#!/bin/sh\necho ran\n"
    be.upload_files([(f"{ws}/f", script)])
    response = be.execute(f"cd {ws}; test $(stat -c %u f) = $(id -u) && stat -c %a f && echo '#' >> f && chmod +x f && ./f")
    assert response.output == "644\nran\n"
    be.upload_files([(f"{ws}/f", script)])
    assert be.execute(f"stat -c %a {ws}/f").output == "755\n"  # an existing file keeps its mode
    be.execute(f"cd {ws}; ln f hard; ln -s f soft; echo ro > ro; chmod 444 ro")
    assert [r.error for r in be.upload_files([(f"{ws}/hard", b"new"), (f"{ws}/ro", b"new")])] == [None, "permission_denied"]
    assert be.execute(f"cat {ws}/f; cat {ws}/ro").output == "newro\n"  # a hard link stays one
    be.upload_files([(f"{ws}/soft", b"via")])
    assert be.execute(f"cd {ws}; cat f; test -L soft && echo link").output == "vialink\n"


def test_b094_special_files_are_refused_at_once(be: Sandbox, ws: str) -> None:
    be.execute(f"cd {ws}; mkfifo p; ln -s /dev/zero z; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"")
    before = time.monotonic()
    paths = [f"{ws}/p", f"{ws}/z", f"{ws}/s", "/dev/random", "/proc/kmsg"]
    for response in be.download_files(paths):
        assert response.content is None
        assert response.error is not None
    assert be.upload_files([(f"{ws}/p", b"x")])[0].error is not None
    assert be.read(f"{ws}/p").error == f"File '{ws}/p': not_a_file"
    assert time.monotonic() - before < 5


def test_b094_a_size_cap_is_named(be: Sandbox, ws: str) -> None:
    be.execute(f"truncate -s 200G {ws}/big")
    target = io.BytesIO()
    with pytest.raises(SandboxFileError, match="large"):
        be.download(f"{ws}/big", target, max_bytes=1000)
    assert target.getvalue() == b""


def test_streams_keep_content_and_mode(be: Sandbox, ws: str, tmp_path: pathlib.Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "f").chmod(0o755)
    assert be.upload(tmp_path / "f", f"{ws}/f") == len(data)
    assert be.execute(f"sha256sum < {ws}/f; stat -c %a {ws}/f").output == f"{sha(data)}  -\n755\n"
    assert be.download(f"{ws}/f", tmp_path / "g") == len(data)
    assert (tmp_path / "g").read_bytes() == data
    with pytest.raises(SandboxFileError, match="file_not_found"):
        be.download(f"{ws}/none", tmp_path / "h")
    with pytest.raises(SandboxFileError):
        be.upload(io.BytesIO(data), "/usr/f")
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


async def test_streams_in_asyncio(be: Sandbox, ws: str) -> None:
    data = os.urandom(3_000_000)
    assert await be.aupload(io.BytesIO(data), f"{ws}/f") == len(data)
    target = io.BytesIO()
    assert await be.adownload(f"{ws}/f", target) == len(data)
    assert target.getvalue() == data


STREAM_SIZE = 1 << 30 if os.environ.get("SANDY_TEST_FULL") == "1" else 256 << 20
"""1 GiB is the size of the promise; the normal run is content with less."""


class Zeros(io.RawIOBase):
    """A source of many bytes, and a sink that counts them."""

    def __init__(self) -> None:
        self.left = self.written = STREAM_SIZE

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return bytes(size)

    def write(self, data: object) -> int:
        size = len(memoryview(data))  # type: ignore[arg-type]
        self.written -= size
        return size


def resident(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def test_large_streams_take_constant_memory(be: Sandbox, ws: str) -> None:
    serve = be._serve._child.pid  # type: ignore[attr-defined]
    source = Zeros()
    be.download_files([f"{ws}/none"])
    before = resident(os.getpid()), resident(serve)
    assert be.upload(source, f"{ws}/big") == STREAM_SIZE  # type: ignore[arg-type]
    assert be.execute(f"stat -c %s {ws}/big").output == f"{STREAM_SIZE}\n"
    assert be.download(f"{ws}/big", source) == STREAM_SIZE  # type: ignore[arg-type]
    assert source.written == 0
    after = resident(os.getpid()), resident(serve)
    assert after[0] - before[0] < 32 << 20
    assert after[1] - before[1] < 32 << 20
