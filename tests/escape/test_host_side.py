"""Rows 41 and 42: no way around the sandbox through our own API, and no reader on the host that follows what a sandbox left."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest
from support import Cli, host

SECRET = "s3cr3t"


@pytest.fixture
def victim(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "victim"
    path.mkdir()
    (path / "key").write_text(SECRET)
    return path


def test_t41_every_operation_is_inside(api: type, victim: pathlib.Path) -> None:
    key = str(victim / "key")
    assert pathlib.Path(key).read_text() == SECRET  # by this user, outside
    with api() as be:
        be.execute(f"ln -s {victim} link; ln -s {key} file; ln -s / root; ln -s /proc/1/root one")
        files = (key, "/workspace/link/key", "/workspace/file", f"/workspace/root{key}", f"/workspace/one{key}", f"/proc/self/root{key}")
        directories = (str(victim), "/workspace/link", f"/workspace/root{victim}")
        for path in files:
            assert be.read(path).error and be.download_files([path])[0].error and be.edit(path, SECRET, "bad").error
            assert SECRET not in str(be.read(path)) + str(be.download_files([path]))
        for path in directories:
            assert SECRET not in str(be.grep(SECRET, path)) and "key" not in str(be.ls(path).entries) and not (be.glob("**/key", path).matches or [])
        for path in files:  # some of these make a file inside, at the same path
            be.write(path, "bad")
            be.upload_files([(path, b"bad")])
            be.delete(path)
        for path in directories:
            be.delete(path)
    assert victim.is_dir() and (victim / "key").read_text() == SECRET
    assert os.listdir(victim) == ["key"]


def test_t42_special_files(api: type) -> None:
    with api() as be:
        be.execute("mkfifo fifo; ln -s /dev/zero zero; ln -s /proc/kmsg kmsg; truncate -s 200G big; ln -s fifo tofifo; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"")
        before = time.monotonic()
        for name in ("fifo", "zero", "kmsg", "tofifo", "sock"):
            assert be.download_files([f"/workspace/{name}"])[0].error, name
            assert be.read(f"/workspace/{name}").error, name
        assert len(str(be.read("/workspace/big"))) < 10 << 20  # a page, or an error
        be.grep("x", "/workspace")
        assert time.monotonic() - before < 20


def test_t42_private_files_are_removed_without_following_links(sandy: Cli, victim: pathlib.Path, home: pathlib.Path) -> None:
    script = (
        f"ln -s {victim} a; mkdir -p d/e && ln -s {victim}/key d/e/f; ln -s / root; ln -s ../../../.. up; mkdir closed && touch closed/x && chmod 0 closed;"
        "mkfifo p; p=deep; for i in $(seq 100); do mkdir $p && cd $p; done; touch x; chmod 0 /var/tmp; chmod 0 ~; true"
    )
    sandy.sh(script, "--private-workspace").ok()
    assert (victim / "key").read_text() == SECRET and os.listdir(victim) == ["key"]
    assert [name for name in os.listdir(sandy.state) if name.startswith("sandbox-")] == []


@pytest.mark.parametrize(
    ("kind", "when"),
    # A link to a directory that was on the way before is the caller's word, as in every shell redirection.
    [("link", "before"), ("link", "during"), ("dangling", "before"), ("dangling", "during"), ("directory_link", "during")],
)
def test_t42_json_outcome_in_the_workspace(sandy: Cli, ws: pathlib.Path, victim: pathlib.Path, when: str, kind: str) -> None:
    # The outcome is written by us, on the host, where the command can write: a link there must not choose another file.
    target = {"link": victim / "key", "dangling": victim / "new", "directory_link": victim}[kind]
    name = "out/outcome.json" if kind == "directory_link" else "outcome.json"
    plant = f"rm -rf {name.split('/')[0]}; ln -s {target} {name.split('/')[0]}"
    if kind == "directory_link":
        (ws / "out").mkdir()
    if when == "before":
        assert host(plant, cwd=ws).status == 0
        got = sandy.run("true", options=["--json", name])
    else:
        got = sandy.sh(plant, "--json", name)
    assert (victim / "key").read_text() == SECRET and os.listdir(victim) == ["key"], got


def test_t42_json_outcome_onto_a_fifo(sandy: Cli, ws: pathlib.Path) -> None:
    before = time.monotonic()
    got = sandy.sh("rm -f outcome.json; mkfifo outcome.json", "--json", "outcome.json", timeout=20)
    assert time.monotonic() - before < 10
    assert got.status == 0
    got = sandy.run("true", options=["--json", "outcome.json"], timeout=20)  # left by the run before
    assert got.status == 125 and "outcome.json" in got.error


def test_t42_json_outcome_to_places_of_the_callers(sandy: Cli, tmp_path: pathlib.Path) -> None:
    # The control: where no sandbox writes, it is just a file; also a link and a device of the caller's.
    path = tmp_path / "outcome.json"
    sandy.run("true", options=["--json", path]).ok()
    assert json.loads(path.read_text())["exit_status"] == 0
    got = sandy.run("true", options=["--json", "/dev/stdout"]).ok()
    assert json.loads(got.text)["exit_status"] == 0
