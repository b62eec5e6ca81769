from __future__ import annotations

import io
import os
import pathlib
import struct
import sys
import tracemalloc
from typing import Any

import pytest
from deepagents.backends.protocol import ReadResult
from deepagents.backends.sandbox import TRUNCATION_MSG, BaseSandbox
from deepagents.backends.utils import EMPTY_CONTENT_WARNING, EMPTY_OLD_STRING_ERROR
from fake_serve import FakeServe, Handler, Request

from deepagents_sandbox import Sandbox
from sandy import Sandbox as PlainSandbox
from sandy import SandboxFileError, SandboxGoneError, _progress


def fails(error: str, **fields: Any) -> Handler:
    return lambda request: request.end(error=error, **fields)


def gives(*payloads: bytes, **end: Any) -> Handler:
    def handler(request: Request) -> None:
        for payload in payloads:
            request.event("data", payload)
        request.end(**end)

    return handler


def test_it_is_what_deepagents_looks_for(serve: FakeServe) -> None:
    sandbox = Sandbox()
    assert isinstance(sandbox, BaseSandbox)
    assert isinstance(sandbox, PlainSandbox)
    assert sandbox.enable_capture_offload
    overridden = set(vars(Sandbox))
    operations = ("execute", "upload_files", "download_files", "read", "write", "edit", "delete", "ls", "glob", "grep")
    assert {f"{a}{name}" for name in operations for a in ("", "a")} <= overridden


@pytest.mark.parametrize(
    ("error", "fields", "text"),
    [
        ("file_not_found", {}, "File '/f': file_not_found"),
        ("is_directory", {}, "File '/f': not_a_file"),
        ("not_a_file", {}, "File '/f': not_a_file"),
        ("permission_denied", {}, "File '/f': permission_denied"),
        ("offset", {"offset": 9, "lines": 3}, "File '/f': Line offset 9 exceeds file length (3 lines)"),
        ("too_large", {}, "File '/f': Binary file exceeds maximum preview size of 512000 bytes"),
        ("io", {"detail": "Input/output error"}, "File '/f': Input/output error"),
    ],
)
def test_read_errors(serve: FakeServe, error: str, fields: dict[str, Any], text: str) -> None:
    serve.on["read"] = fails(error, **fields)
    assert Sandbox().read("/f") == ReadResult(error=text)


def test_read_pages(serve: FakeServe) -> None:
    serve.on["read"] = gives(b"a\n", b"b", encoding="utf-8", total_lines=9, start_line=1, end_line=2, next_offset=2)
    result = Sandbox().read("/f.py", offset=-3, limit=2)
    assert result == ReadResult(
        file_data={"content": "a\nb", "encoding": "utf-8"}, total_lines=9, start_line=1, end_line=2, next_offset=2
    )
    header = serve.requests("read")[0].header
    assert (header["offset"], header["limit"], header["binary"]) == (0, 2, False)


def test_read_special_contents(serve: FakeServe) -> None:
    sandbox = Sandbox()
    serve.on["read"] = gives(encoding="utf-8", empty=True)
    assert sandbox.read("/f") == ReadResult(file_data={"content": EMPTY_CONTENT_WARNING, "encoding": "utf-8"})
    serve.on["read"] = gives(b"\0\xff", encoding="base64")
    assert sandbox.read("/f.png") == ReadResult(file_data={"content": "AP8=", "encoding": "base64"})
    assert serve.requests("read")[-1].header["binary"] is True
    serve.on["read"] = gives(encoding="utf-8", no_lines_requested=True)
    assert sandbox.read("/f", limit=-1) == ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
    assert serve.requests("read")[-1].header["limit"] == 0
    serve.on["read"] = gives(b"x", encoding="utf-8", truncated=True, start_line=1, end_line=1, next_offset=1)
    data = sandbox.read("/f").file_data
    assert data is not None
    assert data["content"] == "x" + TRUNCATION_MSG
    serve.on["read"] = gives(b"x", encoding="utf-8", start_line=2, end_line=1)
    assert "impossible page" in str(sandbox.read("/f").error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("file_not_found", "Error: File '/f' not found"),
        ("permission_denied", "Error: Permission denied editing file '/f'"),
        ("not_a_file", "Error: '/f' is not a regular file"),
        ("is_directory", "Error: '/f' is not a regular file"),
        ("not_a_text_file", "Error: File '/f' is not a text file"),
        ("string_not_found", "Error: String not found in file: 'old'"),
        (
            "multiple_occurrences",
            "Error: String 'old' appears multiple times. Use replace_all=True to replace all occurrences.",
        ),
        ("no_change", "Error editing file '/f': old_string and new_string are the same"),
        ("read_only", "Error editing file '/f': the file system is read-only there"),
    ],
)
def test_edit_errors(serve: FakeServe, error: str, text: str) -> None:
    serve.on["edit"] = fails(error)
    assert Sandbox().edit("/f", "old", "new").error == text


def test_edit_sends_any_size(serve: FakeServe) -> None:
    serve.on["edit"] = gives(occurrences=2)
    result = Sandbox().edit("/f", "中" * 200_000, "new", replace_all=True)
    assert (result.path, result.occurrences, result.error) == ("/f", 2, None)
    request = serve.requests("edit")[0]
    assert request.args == [b"/f", "中".encode() * 200_000, b"new"]
    assert request.header["replace_all"] is True


def test_edit_of_nothing_asks_nobody(serve: FakeServe) -> None:
    assert Sandbox().edit("/f", "", "new", replace_all=True).error == EMPTY_OLD_STRING_ERROR
    assert not serve.requests("edit")


def test_write_and_delete(serve: FakeServe) -> None:
    sandbox = Sandbox()
    assert sandbox.write("/f", "ü") == sandbox.write("/f", "ü")
    assert serve.requests("write")[0].data == "ü".encode()
    assert "not valid text" in str(sandbox.write("/f", "\ud800").error)
    assert sandbox.delete("/f").path == "/f"
    serve.on["write"] = serve.on["delete"] = fails("permission_denied")
    assert sandbox.write("/f", "").error == "Failed to write file '/f': permission_denied"
    assert sandbox.delete("/f").error == "Error deleting file '/f': permission denied"
    serve.on["delete"] = fails("file_not_found")
    assert sandbox.delete("/f").error == "Error: '/f' not found"


def test_listings(serve: FakeServe) -> None:
    sandbox = Sandbox()
    serve.on["ls"] = gives(b"da\nb\0f", b"\xffc\0")
    assert sandbox.ls("/x/").entries == [{"path": "/x/a\nb", "is_dir": True}, {"path": "/x/\udcffc", "is_dir": False}]
    assert sandbox.ls("/").entries == [{"path": "/a\nb", "is_dir": True}, {"path": "/\udcffc", "is_dir": False}]
    assert sandbox.ls("rel").entries == [
        {"path": "/workspace/rel/a\nb", "is_dir": True},
        {"path": "/workspace/rel/\udcffc", "is_dir": False},
    ]
    for error, text in (("file_not_found", "path_not_found"), ("not_a_directory",) * 2, ("permission_denied",) * 2):
        serve.on["ls"] = fails(error)
        assert (sandbox.ls("/x").error, sandbox.ls("/x").entries) == (f"Path '/x': {text}", None)
    serve.on["ls"] = gives(b"da\0fb")
    assert "inside a record" in str(sandbox.ls("/x").error)


def test_glob(serve: FakeServe) -> None:
    sandbox = Sandbox()
    serve.on["glob"] = gives(b"a.py\0s/b.py\0", truncated=False, walk_errors=0)
    result = sandbox.glob("*.py")
    assert result.matches == [{"path": "/workspace/a.py", "is_dir": False}, {"path": "/workspace/s/b.py", "is_dir": False}]
    assert serve.requests("glob")[0].args == [b"/workspace", b"*.py"]
    serve.on["glob"] = gives(b"a\0", truncated=True, truncation_reason="budget", walk_errors=0)
    assert (sandbox.glob("*", "/s").truncated, sandbox.glob("*", "/s").truncation_reason) == (True, "budget")
    serve.on["glob"] = gives(b"a\0", truncated=True, truncation_reason="unreadable", walk_errors=2)
    assert sandbox.glob("*", "/s").truncation_reason == "unreadable"
    serve.on["glob"] = fails("invalid_pattern")
    assert sandbox.glob("../*", "/s").error == "Path '/s': invalid_pattern"


@pytest.mark.parametrize(
    ("pattern", "path", "root", "rest"),
    [
        ("/workspace/*.txt", None, "/workspace", "/*.txt"),
        ("/workspace/*.txt", "/tmp", "/workspace", "/*.txt"),
        ("/workspace/a/**/*.py", "/s", "/workspace/a", "/**/*.py"),
        ("/usr/lib/x.so", None, "/usr/lib", "/x.so"),
        ("//usr/./lib//{a,b/c}", None, "/usr/lib", "/{a,b/c}"),
        ("/usr/", None, "/usr", "/"),
        ("~/*.txt", None, "/home/user", "/*.txt"),
        # As in the reference: "/" is where the search starts.
        ("/*.py", "/s", "/s", "/*.py"),
        ("/a.py", None, "/workspace", "/a.py"),
        ("/**/*.py", None, "/workspace", "/**/*.py"),
        ("a/*.py", None, "/workspace", "a/*.py"),
        ("/usr/../*", None, "/workspace", "/usr/../*"),
    ],
)
def test_absolute_patterns(serve: FakeServe, pattern: str, path: str | None, root: str, rest: str) -> None:
    serve.on["glob"] = gives(b"f\0")
    assert Sandbox().glob(pattern, path).matches == [{"path": f"{root}/f", "is_dir": False}]
    assert [request.args for request in serve.requests("glob")] == [[root.encode(), rest.encode()]]


def test_an_absolute_pattern_without_its_directory_starts_at_the_search(serve: FakeServe) -> None:
    def handler(request: Request) -> None:
        if request.args[0] == b"/s/dir":
            request.event("data", b"sub/f\0")
            request.end()
        else:
            request.end(error="file_not_found")

    serve.on["glob"] = handler
    assert Sandbox().glob("/sub/*", "/s/dir").matches == [{"path": "/s/dir/sub/f", "is_dir": False}]
    assert [request.args for request in serve.requests("glob")] == [[b"/sub", b"/*"], [b"/s/dir", b"/sub/*"]]


@pytest.mark.parametrize(
    ("path", "glob", "root", "rest"),
    [
        (None, "/workspace/s/*.py", "/workspace/s", "/*.py"),
        ("/workspace/s", "/workspace/s/*.py", "/workspace/s", "/*.py"),
        ("/workspace/s", "/workspace/*.py", "/workspace/s", "/workspace/*.py"),  # the search stays where it was asked for
        ("/work", "/workspace/*.py", "/work", "/workspace/*.py"),
        (None, "/*.py", "/workspace", "/*.py"),
    ],
)
def test_grep_with_absolute_globs(serve: FakeServe, path: str | None, glob: str, root: str, rest: str) -> None:
    serve.on["grep"] = gives(b"f\x001\0text\0")
    assert Sandbox().grep("x", path, glob).matches == [{"path": f"{root}/f", "line": 1, "text": "text"}]
    assert [request.args[:3] for request in serve.requests("grep")] == [[root.encode(), b"x", rest.encode()]]


def test_the_tilde_is_the_home_in_every_operation(serve: FakeServe, tmp_path: pathlib.Path) -> None:
    sandbox = Sandbox()
    sandbox.read("~/f")
    sandbox.write("~/f", "")
    sandbox.edit("~/f", "a", "b")
    sandbox.delete("~/f")
    sandbox.ls("~/f")
    sandbox.glob("*", "~/f")
    sandbox.grep("x", "~/f")
    assert sandbox.upload_files([("~/f", b"")])[0].error is None
    assert sandbox.download_files(["~/f"])[0].error is None
    sandbox.upload(io.BytesIO(), "~/f")
    sandbox.download("~/f", tmp_path / "f")
    asked = [request for request in serve.seen if request.header["op"] not in ("hello", "connect", "create", "eof")]
    assert len(asked) == 11
    assert {request.args[0] for request in asked} == {b"/home/user/f"}
    sandbox.run("true", cwd="~")
    assert serve.requests("exec")[0].args[1] == b"/home/user"
    for path in ("./~", "~x", "/a/~", "a/~/b"):  # names like others
        sandbox.read(path)
        assert serve.requests("read")[-1].args == [path.encode()]


def test_grep(serve: FakeServe) -> None:
    sandbox = Sandbox()
    serve.on["grep"] = gives(b"a:1.py\x007\0te", b"xt:\xff\0", truncated=False, walk_errors=0, unreadable=0)
    result = sandbox.grep("te", "/s", "*.py", max_count=3)
    assert result.matches == [{"path": "/s/a:1.py", "line": 7, "text": "text:�"}]
    assert not result.truncated
    request = serve.requests("grep")[0]
    assert request.args == [b"/s", b"te", b"*.py", b".git"]
    assert request.header["max_count"] == 3
    sandbox.grep("te", "/s/.git/")
    assert serve.requests("grep")[1].args == [b"/s/.git/", b"te", b""]
    assert "max_count" not in serve.requests("grep")[1].header
    serve.on["grep"] = gives(truncated=False, walk_errors=0, unreadable=1)
    assert sandbox.grep("te").truncated
    serve.on["grep"] = gives(b"a\0x\0t\0")
    assert "line number" in str(sandbox.grep("te").error)


def test_a_flood_of_matches_is_cut(serve: FakeServe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandy._search.MAX_LISTING", 1000)

    def handler(request: Request) -> None:
        request.event("data", b"a\x001\0" + b"x" * 990 + b"\0a\x002\0")
        request.event("data", b"y" * 100)
        while request.next().header["op"] != "cancel":
            pass
        request.event("data", b"z" * 100)
        request.end(error="cancelled")

    serve.on["grep"] = handler
    result = Sandbox().grep("x")
    assert (result.error, result.truncated) == (None, True)
    assert [match["line"] for match in result.matches or []] == [1]


def test_paths_that_no_file_can_have(serve: FakeServe) -> None:
    sandbox = Sandbox()
    for path in ("", "/a\0b", "/\ud800"):
        assert sandbox.read(path).error == f"File '{path}': invalid_path"
        assert sandbox.ls(path).error == f"Path '{path}': invalid_path"
        assert sandbox.write(path, "").error is not None
        assert sandbox.edit(path, "a", "b").error is not None
        assert sandbox.delete(path).error is not None
        assert sandbox.upload_files([(path, b"")])[0].error == "invalid_path"
        assert sandbox.download_files([path])[0].error == "invalid_path"
    assert {request.header["op"] for request in serve.seen} == {"hello", "create", "connect"}


def test_each_file_of_a_batch_fares_for_itself(serve: FakeServe) -> None:
    answers = {
        b"/no": "file_not_found",
        b"/dir": "not_a_directory",
        b"/is": "is_directory",
        b"/ro": "read_only",
        b"/p": "permission_denied",
    }

    def handler(request: Request) -> None:
        error = answers.get(request.args[0])
        if error is not None:
            request.end(error=error)
            return
        if request.header["op"] == "download":
            request.event("data", b"con")
            request.event("data", b"tent")
        request.end(bytes=7)

    serve.on["write"] = serve.on["download"] = handler
    sandbox = Sandbox()
    paths = ["/ok", "/no", "/dir", "rel", "/is", "/ro", "/p", "/ok2"]
    errors = [
        None,
        "file_not_found",
        "file_not_found",
        "invalid_path",
        "is_directory",
        "the file system is read-only there",
        "permission_denied",
        None,
    ]
    uploads = sandbox.upload_files([(path, b"x") for path in paths])
    assert [(r.path, r.error) for r in uploads] == list(zip(paths, errors, strict=True))
    downloads = sandbox.download_files(paths)
    assert [(r.path, r.error) for r in downloads] == list(zip(paths, errors, strict=True))
    assert [r.content for r in downloads] == [b"content" if error is None else None for error in errors]


@pytest.mark.parametrize("size", [0, 1, 1_048_576, 1_048_577, 5_000_000])
def test_uploads_of_any_size(serve: FakeServe, size: int, tmp_path: pathlib.Path) -> None:
    got = bytearray()

    def handler(request: Request) -> None:
        got[:] = request.data
        owed = 0
        while request.header.get("more"):
            frame = request.next()
            if frame.header["op"] == "eof":
                break
            got.extend(frame.data)
            owed += len(frame.data)
            assert owed <= 1_048_576
            if owed > 500_000:
                request.event("credit", bytes=owed)
                owed = 0
        request.end(bytes=len(got))

    serve.on["write"] = handler
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "f").chmod(0o750)
    sandbox = Sandbox()
    assert sandbox.upload_files([("/f", data)])[0].error is None
    assert got == data
    got.clear()
    assert sandbox.upload(tmp_path / "f", "/f") == size
    assert got == data
    assert serve.requests("write")[-1].header["mode"] == 0o750
    got.clear()
    assert sandbox.upload(io.BytesIO(data), "/f") == size
    assert got == data


def test_the_progress_of_an_upload_on_a_terminal_only(
    serve: FakeServe, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(request: Request) -> None:
        while request.header.get("more") and (frame := request.next()).header["op"] != "eof":
            request.event("credit", bytes=len(frame.data))
        request.end(bytes=0)

    serve.on["write"] = handler
    (tmp_path / "f").write_bytes(bytes(3_300_000))
    sandbox = Sandbox()
    line = "\r\x1b[Ksandy: uploading (MiB): {} of 3"
    for terminal, patience, right in (
        (True, 0.0, line.format(1) + line.format(2) + "\r\x1b[K"),
        (False, 0.0, ""),
        (True, 60.0, ""),
    ):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", [False, True][terminal].__bool__)
        monkeypatch.setattr(_progress, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        sandbox.upload(tmp_path / "f", "/f")
        sandbox.upload(io.BytesIO(b"x"), "/f")
        assert stream.getvalue() == right


def test_streams_take_constant_memory(serve: FakeServe, tmp_path: pathlib.Path) -> None:
    piece, count = bytes(262_144), 400

    def handler(request: Request) -> None:
        window = 1_048_576
        for _ in range(count):
            while window < len(piece):
                window += request.next().header["bytes"]
            request.event("data", piece)
            window -= len(piece)
        request.end(bytes=len(piece) * count)

    serve.on["download"] = handler
    sandbox = Sandbox()
    sandbox.download("/f", tmp_path / "warm")
    tracemalloc.start()
    assert sandbox.download("/f", tmp_path / "f") == len(piece) * count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000
    assert (tmp_path / "f").stat().st_size == len(piece) * count


def test_a_failed_download_leaves_what_was_there(serve: FakeServe, tmp_path: pathlib.Path) -> None:
    target = tmp_path / "f"
    target.write_text("before")
    serve.on["download"] = gives(b"part", error="io", detail="Input/output error")
    sandbox = Sandbox()
    with pytest.raises(SandboxFileError) as caught:
        sandbox.download("/f", target)
    assert (caught.value.path, caught.value.code) == ("/f", "Input/output error")
    assert target.read_text() == "before"
    serve.on["download"] = lambda request: request.peer.raw(struct.pack("<II", 1, 1))
    with pytest.raises(SandboxGoneError):
        sandbox.download("/f", target)
    assert os.listdir(tmp_path) == ["f"]


def test_local_trouble_is_an_os_error_and_not_the_sandboxs(serve: FakeServe, tmp_path: pathlib.Path) -> None:
    sandbox = Sandbox()
    with pytest.raises(FileNotFoundError):
        sandbox.upload(tmp_path / "none", "/f")
    with pytest.raises(FileNotFoundError):
        sandbox.download("/f", tmp_path / "none" / "f")

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    serve.on["download"] = gives(b"x", bytes=1)
    with pytest.raises(OSError, match="No space"):
        sandbox.download("/f", Full())
    assert sandbox.execute("true").exit_code == 0


def test_a_download_knows_first_what_it_can_not_write(serve: FakeServe, tmp_path: pathlib.Path) -> None:
    sandbox = Sandbox()
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("dir")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "dir": (IsADirectoryError, "that is a directory; name the file to write in it"),
        "dir/": (IsADirectoryError, "that is a directory"),
        "link": (IsADirectoryError, "that is a directory"),
        "new/": (IsADirectoryError, "that names a directory"),
        "pipe": (FileExistsError, "that is no regular file"),
        "file/x": (NotADirectoryError, "file/x"),
        "none/x": (FileNotFoundError, "a file can't be made in the directory of: '.*none/x'"),
    }
    for name, (error, text) in cases.items():
        with pytest.raises(error, match=text) as caught:
            sandbox.download("/f", f"{tmp_path}/{name}")
        assert "part" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="the local path is empty"):
        sandbox.download("/f", "")
    assert serve.requests("download") == []
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dir", "file", "link", "pipe"]
