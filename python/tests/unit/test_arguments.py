"""What has a wrong type is refused with the argument's name and what is wanted, and nothing is started."""

from __future__ import annotations

import inspect
import io
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from fake_serve import FakeServe

from sandy import Sandbox

CONSTRUCTOR: list[tuple[str, Any, str]] = [
    ("workspace", 5, "a path"),
    ("read", "/x", r"read=\['/x'\]"),
    ("read", 5, "a list of paths"),
    ("read", {"/x": 1}, "a list of paths"),
    ("read", ["/x", 5], r"read\[1\] must be a path"),
    ("write", [None], r"write\[0\] must be a path"),
    ("deny", None, "a list of paths"),
    ("env", ["A=1"], "a mapping"),
    ("env", {"A": 1}, r"env\['A'\] must be a str, not int"),
    ("env", {1: "A"}, "a name in env must be a str"),
    ("pass_env", [1], r"pass_env\[0\]"),
    ("policy", 5, "a policy file"),
    ("policy", {"filesystem": {"read": {1, 2}}}, "a value in policy"),
    ("timeout", "1", "a number of seconds, not str"),
    ("timeout", None, "a number of seconds"),
    ("timeout", True, "a number of seconds"),
    ("max_output_bytes", "1M", "an int"),
    ("max_output_bytes", 1.5, "an int"),
    ("seccomp", 5, "a path"),
    ("hostname", 5, "a str"),
    ("allow_domains", [5], r"allow_domains\[0\]"),
    ("deny_domains", 5, "a list of str"),
    ("allow_private", [None], r"allow_private\[0\]"),
    ("publish", [3000], r"publish\[0\]"),
    ("on_request", "once", r"on_request"),
    ("audit", 5, r"audit"),
    *[
        (name, value, '"512M"')
        for name in (
            "memory",
            "swap",
            "cpus",
            "pids",
            "io_read",
            "io_write",
            "wall_time",
            "open_files",
            "file_size",
            "tmp_size",
            "log_size",
        )
        for value in (True, b"1", [1])
    ],
    ("best_effort", "yes", "True or False"),
    ("keep", "yes", "True or False"),
    ("id", 5, "id must be a str"),
]
# Of a sandbox that is kept; without that they are a ValueError.
KEPT: list[tuple[str, Any, str]] = [
    ("name", 5, "name must be a str"),
    ("idle_timeout", [1], "idle_timeout must be a number of seconds"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), CONSTRUCTOR)
def test_the_constructor(serve: FakeServe, name: str, value: Any, wanted: str) -> None:
    with pytest.raises(TypeError, match=wanted) as caught:
        Sandbox(**{name: value})
    assert name in str(caught.value)
    assert serve.requests("create") == []


@pytest.mark.parametrize(("name", "value", "wanted"), KEPT)
def test_the_constructor_of_kept_ones(name: str, value: Any, wanted: str) -> None:
    with pytest.raises(TypeError, match=wanted):
        Sandbox(keep=True, **{name: value})
    with pytest.raises(ValueError, match=f"{name} is for a sandbox that is kept"):
        Sandbox(**{name: value})


def test_every_keyword_of_the_constructor_is_checked() -> None:
    parameters = [p.name for p in inspect.signature(Sandbox).parameters.values()]
    assert set(parameters) == {name for name, _, _ in CONSTRUCTOR + KEPT}


METHODS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda sandbox: sandbox.run(b"true"), "command must be a str .* not bytes"),
    (lambda sandbox: sandbox.run(5), "command must be"),
    (lambda sandbox: sandbox.run(None), "command must be"),
    (lambda sandbox: sandbox.run({"a": 1}), "command must be"),
    (lambda sandbox: sandbox.run(pathlib.Path("/bin/true")), "command must be"),
    (lambda sandbox: sandbox.run(["true", b"x"]), r"command\[1\] must be a str"),
    (lambda sandbox: sandbox.run("true", stdin=5), "stdin must be bytes"),
    (lambda sandbox: sandbox.run("true", stdin={"a": 1}), "stdin must be bytes"),
    (lambda sandbox: sandbox.run("true", stdin=io.StringIO("x")), "opened in binary mode"),
    (lambda sandbox: sandbox.run("true", cwd=pathlib.Path("/")), "cwd must be a str or None"),
    (lambda sandbox: sandbox.run("true", env=["A=1"]), "env must be a mapping"),
    (lambda sandbox: sandbox.run("true", env={"A": 1}), r"env\['A'\] must be a str"),
    (lambda sandbox: sandbox.run("true", timeout="1"), "timeout must be a number of seconds"),
    (lambda sandbox: sandbox.run("true", max_output_bytes="1"), "max_output_bytes must be"),
    (lambda sandbox: sandbox.run("true", merge="no"), "merge must be True or False"),
    (lambda sandbox: sandbox.run("true", on_output=[]), "on_output must be a callable"),
    (lambda sandbox: sandbox.execute(["true"]), "command must be a str"),
    (lambda sandbox: sandbox.execute("true", timeout="1"), "timeout must be"),
    (lambda sandbox: sandbox.read(5), "file_path must be a str"),
    (lambda sandbox: sandbox.read("/x", "1"), "offset must be"),
    (lambda sandbox: sandbox.read("/x", 0, None), "limit must be"),
    (lambda sandbox: sandbox.write(pathlib.Path("/x"), ""), "file_path must be a str"),
    (lambda sandbox: sandbox.write("/x", b""), "content must be a str"),
    (lambda sandbox: sandbox.edit(5, "a", "b"), "file_path must be"),
    (lambda sandbox: sandbox.edit("/x", b"a", "b"), "old_string must be"),
    (lambda sandbox: sandbox.edit("/x", "a", None), "new_string must be"),
    (lambda sandbox: sandbox.edit("/x", "a", "b", 1), "replace_all must be"),
    (lambda sandbox: sandbox.delete(None), "file_path must be"),
    (lambda sandbox: sandbox.ls(None), "path must be a str"),
    (lambda sandbox: sandbox.glob(None), "pattern must be"),
    (lambda sandbox: sandbox.glob("*", 5), "path must be"),
    (lambda sandbox: sandbox.grep(b"x"), "pattern must be"),
    (lambda sandbox: sandbox.grep("x", 5), "path must be"),
    (lambda sandbox: sandbox.grep("x", None, 5), "glob must be"),
    (lambda sandbox: sandbox.grep("x", max_count="1"), "max_count must be"),
    (lambda sandbox: sandbox.upload_files("/x"), "files takes a list"),
    (lambda sandbox: sandbox.upload_files(["/x"]), r"files\[0\] must be a pair"),
    (lambda sandbox: sandbox.upload_files([("/x", "text")]), r"the content of files\[0\] must be bytes"),
    (lambda sandbox: sandbox.upload_files([(5, b"")]), r"the path of files\[0\]"),
    (lambda sandbox: sandbox.download_files("/x"), "paths takes a list"),
    (lambda sandbox: sandbox.download_files([5]), r"paths\[0\]"),
    (lambda sandbox: sandbox.upload(5, "/x"), "local must be a path"),
    (lambda sandbox: sandbox.upload(io.StringIO("x"), "/x"), "binary mode"),
    (lambda sandbox: sandbox.upload(io.BytesIO(b"x"), 5), "remote must be"),
    (lambda sandbox: sandbox.download(5, "/x"), "remote must be"),
    (lambda sandbox: sandbox.download("/x", 5), "local must be a path"),
    (lambda sandbox: sandbox.download("/x", io.StringIO()), "binary mode"),
    (lambda sandbox: sandbox.download("/x", io.BytesIO(), max_bytes="1"), "max_bytes must be"),
]


@pytest.mark.parametrize(("call", "text"), METHODS)
def test_the_methods(serve: FakeServe, call: Callable[[Any], Any], text: str) -> None:
    sandbox = Sandbox()
    with pytest.raises(TypeError, match=text):
        call(sandbox)
    assert {request.header["op"] for request in serve.seen} <= {"hello", "create", "connect"}
    assert sandbox.run("true").ok


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda sandbox: sandbox.run("true", env={"A B": "1"}), r"env: 'A B' is not the name of a variable"),
        (lambda sandbox: sandbox.run("true", env={"1A": "1"}), "no digit first"),
        (lambda sandbox: sandbox.run("true", env={"Ü": "1"}), "env: 'Ü'"),
        (lambda sandbox: sandbox.run("true", env={"A": "\0"}), r"env\['A'\] has a NUL"),
        (lambda sandbox: sandbox.run("true", env={"A": "\ud800"}), r"env\['A'\] is not valid text"),
        (lambda sandbox: sandbox.run("true", cwd="/\0"), "cwd has a NUL"),
        (lambda sandbox: sandbox.run("true", stdin="\ud800"), "stdin is not valid text"),
        (lambda sandbox: sandbox.run(["a", "\0"]), r"command\[1\] has a NUL"),
        (lambda sandbox: sandbox.run([]), "command is empty"),
        (lambda sandbox: sandbox.download("/x", io.BytesIO(), max_bytes=-1), "max_bytes is -1"),
        (lambda sandbox: sandbox.run("true", max_output_bytes=67_108_865), "67108864 .64 MiB."),
    ],
)
def test_values_without_sense(serve: FakeServe, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(Sandbox())
    assert serve.requests("exec") == []


def test_numbers_of_other_types(serve: FakeServe) -> None:
    class Five:
        def __index__(self) -> int:
            return 5

    Sandbox(max_output_bytes=Five()).execute("true")  # type: ignore[arg-type]
    assert serve.requests("exec")[0].header["keep"] == 5
