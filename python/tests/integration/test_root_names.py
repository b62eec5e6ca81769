"""Top-level names belong to the workspace, also where that is a directory of the caller's, on a mount of its own."""

from __future__ import annotations

import os
import pathlib
import time

from deepagents_sandbox import Sandbox


def content(sandbox: Sandbox, path: str) -> str:
    data = sandbox.read(path).file_data
    assert data is not None
    return data["content"]


def test_what_a_command_makes_in_the_root_is_the_workspaces(tmp_path: pathlib.Path) -> None:
    with Sandbox(workspace=tmp_path) as sandbox:
        response = sandbox.execute(
            "echo hi > /out.txt; mkdir -p /tree/deep; echo 1 > /tree/deep/f; ln -s f /tree/deep/link; cp /bin/true /program"
        )
        assert response.exit_code == 0, response.output
        response = sandbox.execute("cat out.txt /out.txt; cat tree/deep/link; /program && ./program && echo ran")
        assert response.output == "hi\nhi\n1\nran\n"
        assert content(sandbox, "/out.txt") == "hi"
        sandbox.execute("echo more >> /out.txt; cp /out.txt /tmp/x; mv /tmp/x /out.txt")
        sandbox.execute("rm program")
    assert (tmp_path / "out.txt").read_text() == "hi\nmore\n"
    assert (tmp_path / "tree/deep/f").read_text() == "1\n"
    assert os.readlink(tmp_path / "tree/deep/link") == "f"
    assert sorted(os.listdir(tmp_path)) == ["out.txt", "tree"]


def test_dot_dot_to_the_root(tmp_path: pathlib.Path) -> None:
    with Sandbox(workspace=tmp_path) as sandbox:
        for path in ("/workspace/../one", "../two", "/tmp/../three"):
            assert sandbox.write(path, "x").error is None
        assert sandbox.upload_files([("/workspace/../four", b"x")])[0].error is None
        assert content(sandbox, "/one") == "x"
    assert sorted(os.listdir(tmp_path)) == ["four", "one", "three", "two"]


def test_what_cannot_be_moved_makes_no_loop(tmp_path: pathlib.Path) -> None:
    with Sandbox(workspace=tmp_path) as sandbox:
        sandbox.execute("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/sock')\"; truncate -s 1G /huge")
        sandbox.execute("mkdir /both both; touch /both/a both/b")
        before = tmp_path.stat().st_mtime_ns
        time.sleep(1)
        assert tmp_path.stat().st_mtime_ns == before
        assert sandbox.execute("ls / | grep -cE '^(sock|huge|both)$'").output == "3\n"
        assert sandbox.execute("ls /huge /sock").exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["both"]
