"""The group "deepagents file tools" of the cases, and what deepagents' middleware relies on."""

from __future__ import annotations

import os
import pathlib
import shutil
import threading
import time

import pytest
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.utils import EMPTY_CONTENT_WARNING, EMPTY_OLD_STRING_ERROR

from deepagents_sandbox import Sandbox

FULL = os.environ.get("SANDY_TEST_FULL") == "1"
"""Whether to test with the size of the case (200 000 files) instead of a tenth of it."""


def put(be: Sandbox, path: str, data: bytes) -> str:
    [response] = be.upload_files([(path, data)])
    assert response.error is None
    return path


def get(be: Sandbox, path: str) -> bytes:
    [response] = be.download_files([path])
    assert response.content is not None, response.error
    return response.content


def test_b098_colons_in_names(be: Sandbox, ws: str) -> None:
    path = put(be, f"{ws}/log_2026:06:06_30:1.txt", b"30:x:y")
    assert be.grep("30:", ws).matches == [{"path": path, "line": 1, "text": "30:x:y"}]


def test_b099_no_tool_of_the_sandbox_is_needed(be: Sandbox, ws: str) -> None:
    with Sandbox(env={"PATH": "/nonexistent"}) as sandbox:
        assert sandbox.execute("python3 -c 1").exit_code == 127
        assert sandbox.write("/a/b.py", "x = 1\n").error is None
        assert sandbox.edit("/a/b.py", "1", "2").occurrences == 1
        file_data = sandbox.read("/a/b.py").file_data
        assert file_data is not None
        assert file_data["content"] == "x = 2"
        assert [e["path"] for e in sandbox.ls("/a").entries or []] == ["/a/b.py"]
        assert [m["line"] for m in sandbox.grep("x", "/a").matches or []] == [1]
        assert [m["path"] for m in sandbox.glob("*.py", "/a").matches or []] == ["/a/b.py"]
        assert sandbox.delete("/a").error is None


def test_b101_crlf_edit(be: Sandbox, ws: str) -> None:
    path = put(be, f"{ws}/f", b"a\r\nb\r\nc\r\n")
    assert be.edit(path, "a\nb", "X\nY").occurrences == 1
    assert get(be, path) == b"X\r\nY\r\nc\r\n"
    mixed = put(be, f"{ws}/mixed", b"a\r\nb\nlast")
    assert be.edit(mixed, "last", "end").error is None
    assert get(be, mixed) == b"a\r\nb\nend"
    lone = put(be, f"{ws}/lone", b"p\rq\nr\n")
    assert be.edit(lone, "r", "s").error is None
    assert get(be, lone) == b"p\rq\ns\n"
    assert be.edit(put(be, f"{ws}/lf", b"a\nb\n"), "a\r\nb", "c").occurrences == 1


def test_b102_empty_and_ambiguous_old_strings(be: Sandbox, ws: str) -> None:
    path = put(be, f"{ws}/f", b"one two two")
    empty = put(be, f"{ws}/e", b"")
    for target in (path, empty):
        for replace_all in (True, False):
            assert be.edit(target, "", "X", replace_all=replace_all).error == EMPTY_OLD_STRING_ERROR
    assert "multiple times" in str(be.edit(path, "two", "x").error)
    assert "not found" in str(be.edit(path, "three", "x").error)
    assert be.edit(path, "one", "one").error is not None
    assert (get(be, path), get(be, empty)) == (b"one two two", b"")
    assert be.edit(path, "two", "2", replace_all=True).occurrences == 2
    assert get(be, path) == b"one 2 2"


def test_b103_ls_names_errors(be: Sandbox, ws: str) -> None:
    names = r"""file 'a b' "q'\"" "$(printf 'n\nl')" "$(printf 'x\377')" """
    be.execute(f"cd {ws}; mkdir empty no; touch {names}; ln -s gone dangling; chmod 0 no")
    assert be.ls(f"{ws}/none").error == f"Path '{ws}/none': path_not_found"
    assert be.ls(f"{ws}/file").error == f"Path '{ws}/file': not_a_directory"
    assert be.ls(f"{ws}/no").error == f"Path '{ws}/no': permission_denied"
    assert (be.ls(f"{ws}/empty").error, be.ls(f"{ws}/empty").entries) == (None, [])
    entries = be.ls(ws).entries
    assert entries is not None
    listed = {str(entry["path"]).removeprefix(ws + "/"): entry["is_dir"] for entry in entries}
    files = ("a b", "dangling", "file", "n\nl", "q'\"", "x\udcff")
    assert listed == {**dict.fromkeys(files, False), "empty": True, "no": True}
    file_data = be.read(f"{ws}/x\udcff").file_data
    assert file_data is not None  # a name that was listed can be used


def test_b105_no_empty_success(be: Sandbox, ws: str) -> None:
    be.execute(f"cd {ws}; mkdir open shut; echo word > open/f; echo word > shut/f; chmod 0 shut")
    grep, glob = be.grep("word", ws), be.glob("f", ws)
    assert ([m["path"] for m in grep.matches or []], grep.truncated) == ([f"{ws}/open/f"], True)
    assert ([m["path"] for m in glob.matches or []], glob.truncated) == ([f"{ws}/open/f"], True)
    assert glob.truncation_reason == "unreadable"
    assert be.grep("word", f"{ws}/none").error is not None
    assert be.glob("f", f"{ws}/none").error == f"Path '{ws}/none': path_not_found"


async def test_b105_large_trees_are_bounded(be: Sandbox, ws: str) -> None:
    directories = 100 if FULL else 10
    made = be.execute(f"cd {ws}; for d in $(seq {directories}); do mkdir $d; (cd $d; seq 2000 | xargs touch); done", timeout=60)
    assert (made.output, made.exit_code) == ("", 0)
    before = time.monotonic()
    glob = await be.aglob("*", ws)
    assert glob.truncated
    assert (len(glob.matches or []), glob.truncation_reason) == (10_000, "budget")
    grep = await be.agrep("nothing", ws)
    assert (grep.matches, grep.error) == ([], None)
    assert time.monotonic() - before < 40


def test_b107_grep_sees_through_nul(be: Sandbox, ws: str) -> None:
    path = put(be, f"{ws}/n", b"hello\0w\nmatch line\n")
    assert be.grep("match", ws).matches == [{"path": path, "line": 2, "text": "match line"}]
    put(be, f"{ws}/n", b"x" * 1_000_000 + b"needle" + b"y" * 1_000)
    [match] = be.grep("needle", ws).matches or []
    assert "needle" in str(match["text"])
    put(be, f"{ws}/n", b"\xffneedle\xfe\n")
    [match] = be.grep("needle", ws).matches or []
    assert match["text"] == "�needle�"


def test_grep_literal_limited_and_filtered(be: Sandbox, ws: str) -> None:
    for name in ("a.py", "s/b.py", "s/c.txt", ".git/d.py", ".h/e.py"):
        put(be, f"{ws}/{name}", b"a.b\naxb\na.b\n")
    assert len(be.grep("a.b", ws).matches or []) == 8
    exact = be.grep("a.b", ws, max_count=8)
    assert (len(exact.matches or []), exact.truncated) == (8, False)
    capped = be.grep("a.b", ws, max_count=3)
    assert (len(capped.matches or []), capped.truncated) == (3, True)
    assert {m["path"] for m in be.grep("a.b", ws, "s/*.py").matches or []} == {f"{ws}/s/b.py"}
    assert {m["path"] for m in be.grep("a.b", f"{ws}/.git").matches or []} == {f"{ws}/.git/d.py"}
    assert {m["path"] for m in be.grep("a.b", f"{ws}/a.py").matches or []} == {f"{ws}/a.py"}


def test_b108_write_replaces(be: Sandbox, ws: str) -> None:
    path = f"{ws}/new/deep/x"
    for content in ("1", "2", "no newline", "EOF\n", '"""', "", "ü" * 2_500_000):
        assert (be.write(path, content).error, be.write(path, content).path) == (None, path)
        assert get(be, path) == content.encode()
    assert be.write(f"{ws}/new", "x").error is not None


def test_b109_glob_like_the_reference(be: Sandbox, ws: str, tmp_path: pathlib.Path) -> None:
    names = ["a.py", "s/b.py", ".h/c.py", ".d.py", "s/t/d.py", "s/.e/f.py", "s/x.txt", "file1.txt", "file10.txt", ".hidden1"]
    for name in names:
        put(be, f"{ws}/{name}", b"")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    reference = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    patterns = [
        "*.py",
        "**/*.py",
        "s/*.py",
        "/*.py",
        ".*",
        "**",
        "*",
        "s/**",
        "file?.txt",
        "file[1-2].txt",
        "{a,b}.py",
        "[!a]*.py",
    ]
    for pattern in patterns:
        expected = sorted(match["path"] for match in reference.glob(pattern, "/").matches or [])
        result = be.glob(pattern, ws)
        assert result.error is None
        assert [m["path"] for m in result.matches or []] == sorted(f"{ws}{path}" for path in expected), pattern
        assert not any(m["is_dir"] for m in result.matches or [])
    assert be.glob("../*", ws).error is not None


def test_absolute_globs(be: Sandbox, ws: str) -> None:
    for name in ("a.py", "s/b.py", "s/t/c.py", "x.txt"):
        put(be, f"{ws}/{name}", b"word\n")
    found = {f"{ws}/*.py": ["a.py"], f"{ws}/**/*.py": ["a.py", "s/b.py", "s/t/c.py"], f"{ws}/x.txt": ["x.txt"], f"{ws}/no/*": []}
    for pattern, names in found.items():
        for path in (None, "/tmp", ws, f"{ws}/s"):
            result = be.glob(pattern, path)
            assert result.error is None
            assert [m["path"] for m in result.matches or []] == [f"{ws}/{name}" for name in names], (pattern, path)
    assert [m["path"] for m in be.glob("/etc/passw*").matches or []] == ["/etc/passwd"]
    assert [m["path"] for m in be.glob("/s/*.py", ws).matches or []] == [f"{ws}/s/b.py"]  # the reference's meaning
    assert [m["path"] for m in be.grep("word", None, f"{ws}/s/*.py").matches or []] == [f"{ws}/s/b.py"]
    assert [m["path"] for m in be.grep("word", ws, f"{ws}/*.py").matches or []] == [f"{ws}/a.py"]
    assert be.grep("word", f"{ws}/s", f"{ws}/*.py").matches == []
    with Sandbox() as sandbox:  # by the names that a model's file tools use
        sandbox.write("/src/a.py", "word")
        for pattern in ("/src/*.py", "/workspace/src/*.py"):
            assert [m["path"] for m in sandbox.glob(pattern).matches or []] == [pattern.replace("*", "a")]


def test_the_tilde_is_the_home(tmp_path: pathlib.Path) -> None:
    with Sandbox() as be:
        assert be.write("~/d/f", "one\n").error is None
        assert be.upload_files([("~/up", b"up")])[0].error is None
        assert be.execute("cat ~/d/f ~/up; ls -A /workspace").output == "one\nup"
        assert be.read("~/d/f").file_data == {"content": "one", "encoding": "utf-8"}
        assert be.edit("~/d/f", "one", "two").error is None
        assert [m["text"] for m in be.grep("two", "~").matches or []] == ["two"]
        assert [m["path"] for m in be.glob("~/d/*").matches or []] == [f"{be.home}/d/f"]
        assert [e["path"] for e in be.ls("~").entries or []] == [f"{be.home}/d", f"{be.home}/up"]
        be.download("~/d/f", tmp_path / "got")
        assert (tmp_path / "got").read_text() == "two\n"
        assert be.download_files(["~/d/f"])[0].content == b"two\n"
        assert be.run("pwd", cwd="~/d").stdout.decode() == f"{be.home}/d\n"
        assert be.delete("~/d").error is None
        assert be.run("ls ~").stdout == b"up\n"


def test_b109_path_omitted_is_the_workspace() -> None:
    with Sandbox() as sandbox:
        sandbox.write("/a.py", "word")
        assert [m["path"] for m in sandbox.glob("*.py").matches or []] == ["/workspace/a.py"]
        assert [m["path"] for m in sandbox.grep("word").matches or []] == ["/workspace/a.py"]


def test_b110_edit_with_large_strings(be: Sandbox, ws: str) -> None:
    old, new = "中" * 70_000, "x" * 200_000
    path = put(be, f"{ws}/f", f"head\n{old}\ntail\n".encode())
    before = be.execute("ls -A /tmp").output
    assert be.edit(path, old, new).occurrences == 1
    assert get(be, path) == f"head\n{new}\ntail\n".encode()
    assert (be.execute("ls -A /tmp").output, be.execute(f"ls -A {ws}").output) == (before, "f\n")
    for name in ("one", "two"):
        put(be, f"{ws}/{name}", old.encode())
    threads = [threading.Thread(target=be.edit, args=(f"{ws}/{name}", old, name)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (get(be, f"{ws}/one"), get(be, f"{ws}/two")) == (b"one", b"two")


def test_b111_paging_fields(be: Sandbox, ws: str) -> None:
    lines = [f"line {n}" for n in range(2001)]
    path = put(be, f"{ws}/f", "\n".join(lines).encode() + b"\n")
    page = be.read(path)
    assert (page.start_line, page.end_line, page.next_offset, page.total_lines) == (1, 2000, 2000, 2001)
    page = be.read(path, offset=1999, limit=1)
    assert (page.start_line, page.end_line, page.next_offset) == (2000, 2000, 2000)
    assert be.read(path, offset=5000).error == f"File '{path}': Line offset 5000 exceeds file length (2001 lines)"
    page = be.read(path, limit=0)
    assert (page.no_lines_requested, page.file_data) == (True, {"content": "", "encoding": "utf-8"})
    assert be.read(path, offset=-3, limit=1).start_line == 1
    collected, offset = [], 0
    while True:
        page = be.read(path, offset=offset, limit=300)
        assert page.file_data is not None
        collected += str(page.file_data["content"]).split("\n")
        if page.next_offset is None:
            break
        assert page.next_offset == page.end_line
        offset = page.next_offset
    assert collected == lines
    page = be.read(put(be, f"{ws}/g", "\n".join(lines[:2000]).encode()))
    assert (page.end_line, page.next_offset, page.total_lines) == (2000, None, 2000)
    page = be.read(put(be, f"{ws}/h", b"one line"))
    assert (page.start_line, page.end_line, page.next_offset, page.total_lines) == (1, 1, None, 1)
    empty = be.read(put(be, f"{ws}/e", b""))
    assert (empty.file_data, empty.total_lines) == ({"content": EMPTY_CONTENT_WARNING, "encoding": "utf-8"}, None)
    long = put(be, f"{ws}/l", b"\n".join([b"y" * 100_000] * 10))
    page = be.read(long)
    assert page.file_data is not None
    assert len(str(page.file_data["content"])) <= 512_000
    assert page.next_offset == page.end_line
    assert be.read(put(be, f"{ws}/crlf", b"a\r\nb\rc\n")).file_data == {"content": "a\nb\nc", "encoding": "utf-8"}


def test_b112_edit_keeps_mode_and_links(be: Sandbox, ws: str) -> None:
    path = put(be, f"{ws}/s.sh", b"#!/bin/sh\necho one\n")
    be.execute(rf"cd {ws}; chmod 755 s.sh; ln -s s.sh soft; ln s.sh hard; printf '\357\273\277bom\n' > bom")
    be.execute(f"cd {ws}; echo ro > ro; chmod 444 ro")
    assert be.edit(path, "one", "two").error is None
    assert be.edit(f"{ws}/soft", "two", "three").error is None
    assert be.edit(f"{ws}/hard", "three", "four").error is None
    assert be.execute(f"cd {ws}; stat -c '%a %h' s.sh; test -L soft && ./hard").output == "755 2\nfour\n"
    assert be.edit(f"{ws}/bom", "bom", "b").error is None
    assert get(be, f"{ws}/bom") == b"\xef\xbb\xbfb\n"
    assert "ermission denied" in str(be.edit(f"{ws}/ro", "ro", "rw").error)


def test_reading_binary_files(be: Sandbox, ws: str) -> None:
    page = be.read(put(be, f"{ws}/x.png", b"text, but called an image"))
    assert page.file_data is not None
    assert page.file_data["encoding"] == "base64"
    page = be.read(put(be, f"{ws}/x.dat", b"\xff\xfe" * 100))
    assert page.file_data is not None
    assert page.file_data["encoding"] == "base64"
    split = put(be, f"{ws}/x.txt", b"a" * 8190 + "€".encode() + b"\n")
    page = be.read(split)
    assert page.file_data is not None
    assert page.file_data["encoding"] == "utf-8"


def test_delete(be: Sandbox, ws: str) -> None:
    put(be, f"{ws}/d/e/f", b"")
    be.execute(f"ln -s /usr {ws}/d/usr; ln -s gone {ws}/dangling")
    for path in (f"{ws}/d", f"{ws}/dangling"):
        assert (be.delete(path).error, be.execute(f"test -L {path} -o -e {path}").exit_code) == (None, 1)
    assert be.delete(f"{ws}/d").error == f"Error: '{ws}/d' not found"
    assert be.execute("test -d /usr/bin").exit_code == 0
    assert be.delete("/usr/bin").error is not None


def test_names_at_the_root_are_the_workspaces() -> None:
    with Sandbox() as sandbox:
        assert sandbox.write("/foo.py", "print('hi')").error is None
        assert sandbox.execute("python3 foo.py; python3 /foo.py; python3 /workspace/foo.py").output == "hi\n" * 3
        assert sandbox.execute("mkdir -p /large_tool_results && echo big > /large_tool_results/x").exit_code == 0
        for path in ("/large_tool_results/x", "/workspace/large_tool_results/x"):
            file_data = sandbox.read(path).file_data
            assert file_data is not None
            assert file_data["content"] == "big"


def test_large_output_is_left_in_a_file() -> None:
    with Sandbox() as sandbox:
        path = "/large_tool_results/call_1"
        result = sandbox.execute_with_offload("seq 100000; exit 3", path, max_inline_bytes=1000)
        assert (result.offloaded, result.response.exit_code) == (True, 3)
        page = sandbox.read(path, offset=99_998, limit=5)
        assert page.file_data is not None
        assert page.file_data["content"] == "99999\n100000"
        small = sandbox.execute_with_offload("echo hi", path, max_inline_bytes=1000)
        assert (small.offloaded, small.response.output) == (False, "hi\n")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs a file outside of the sandbox to reach for")
def test_links_lead_nowhere_outside(be: Sandbox, ws: str, tmp_path: pathlib.Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t")
    secret.chmod(0o644)
    assert secret.read_text() == "s3cr3t"
    be.execute(f"ln -s {secret} {ws}/link; ln -s {tmp_path} {ws}/dir")
    for path in (f"{ws}/link", f"{ws}/dir/secret", os.fspath(secret), f"/proc/1/root{secret}"):
        assert be.download_files([path])[0].content is None
        assert be.read(path).error is not None
    assert be.write(f"{ws}/link", "x").error is not None or secret.read_text() == "s3cr3t"
    assert secret.read_text() == "s3cr3t"
    assert os.listdir(tmp_path) == ["secret"]
