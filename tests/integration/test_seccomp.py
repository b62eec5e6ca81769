"""The group "Seccomp" of the cases: what the filter refuses is refused so that ordinary programs go on."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
from collections.abc import Callable

import pytest
from support import Cli, host, need

POLICIES = ["default", "strict"]
ERRNO = "import ctypes; l = ctypes.CDLL(None, use_errno=True); "


def errno_of(sandy: Cli, call: str, policy: str = "default") -> int:
    return int(sandy.run("python3", "-c", f"{ERRNO}r = l.syscall({call}); print(ctypes.get_errno() if r < 0 else 0)", options=["--seccomp", policy]).ok().text)


@pytest.mark.parametrize("policy", POLICIES)
def test_b064_clone3_falls_back(sandy: Cli, policy: str) -> None:
    thread = "import threading as t; x = t.Thread(target=print, args=(1,)); x.start(); x.join()"
    assert sandy.run("python3", "-c", thread, options=["--seccomp", policy]).ok().text == "1\n"
    assert errno_of(sandy, "435, None, 0", policy) == 38  # ENOSYS
    need(shutil.which("curl", path=sandy.env["PATH"]), "curl")
    assert sandy.run("curl", "-sm3", "http://127.0.0.1:1", options=["--seccomp", policy]).status == 7  # not 6: its resolver thread ran


def test_b067_32_bit_entry(sandy: Cli, probe: Callable[..., pathlib.Path]) -> None:
    need(platform.machine() == "x86_64", "x86-64")
    program = probe("hello32", "-m32", "-nostdlib", "-fno-stack-protector")
    control = host(str(program))
    need(control.out == b"hello\n", "a kernel that runs 32-bit programs")
    got = sandy.run(program)
    assert got.status == 159 and "32-bit programs are not supported" in got.error


@pytest.mark.parametrize("policy", POLICIES)
def test_b069_openat2(sandy: Cli, policy: str, ws: pathlib.Path) -> None:
    how = "(ctypes.c_ulonglong * 3)()"
    assert errno_of(sandy, f'437, -100, b"/etc/passwd", {how}, 24', policy) in (0, 38)
    (ws / "f").write_text("x")
    got = sandy.sh("tar cf a.tar f && rm f && mkdir o && tar xf a.tar -C o && cat o/f", "--seccomp", policy).ok()
    assert got.text == "x"


@pytest.mark.parametrize("policy", POLICIES)
def test_b070_modes(sandy: Cli, policy: str) -> None:
    script = (
        "mkfifo -m 640 p; touch f; python3 -c \"import os; os.chmod('f', 0o600)\"; tar cf a.tar f; mkdir o; tar xpf a.tar -C o; chmod u+x f; stat -c %a f p o/f;"
    )
    assert sandy.sh(script, "--seccomp", policy).ok().lines == ["700", "640", "600"]
    old = errno_of(sandy, '90, b"f", 0o4700' if platform.machine() == "x86_64" else '53, -100, b"f", 0o4700, 0', policy)
    new = errno_of(sandy, '452, -100, b"f", 0o4700, 0', policy)
    assert old == 1 and new in (1, 38)  # denied through both


@pytest.mark.parametrize("policy", POLICIES)
def test_b071_statx(sandy: Cli, policy: str) -> None:
    got = sandy.sh("stat / >/dev/null && ls -ld --time=birth / >/dev/null && echo fine", "--seccomp", policy).ok()
    assert got.text == "fine\n"
    number = 332 if platform.machine() == "x86_64" else 291
    assert errno_of(sandy, f'{number}, -100, b"/", 0, 0x7ff, ctypes.create_string_buffer(256)', policy) in (0, 38)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "script",
    [
        "import socket; socket.socketpair()",
        "import asyncio; asyncio.run(asyncio.sleep(0))",
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s')",
        "import multiprocessing.managers as m; m.SyncManager().start()",
        "import multiprocessing as m; p = m.get_context('fork').Pool(2); assert p.map(abs, [-1, -2]) == [1, 2]; p.close(); p.join()",
        "import sqlite3; d = sqlite3.connect('d.db'); d.execute('pragma journal_mode=wal'); d.execute('create table t (x)'); d.commit()",
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())",
        "import socket; s = socket.socket(socket.AF_INET6); s.bind(('::1', 0))",
        "import tempfile, mmap, os; f = tempfile.TemporaryFile(); f.truncate(4096); mmap.mmap(f.fileno(), 4096)",
        "import os; os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1); os.getrandom(1); os.memfd_create('x')",
    ],
)
def test_b073_local_sockets_and_the_like_work(sandy: Cli, policy: str, script: str) -> None:
    if "/tmp/s" in script or "Manager" in script:
        assert not os.path.exists("/tmp/s")
    sandy.run("python3", "-c", script, options=["--seccomp", policy]).ok()


def test_b074_a_nested_browser_sandbox(sandy: Cli) -> None:
    browser = next((name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name, path=sandy.env["PATH"])), None)
    if browser is None:
        pytest.skip("no Chromium here: it is a program of its own, not something that a machine can or can't do")
    got = sandy.run(str(browser), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank", timeout=120)
    assert b"<html>" in got.out, got.error
    nested = sandy.run(str(browser), "--headless", "--disable-gpu", "--dump-dom", "about:blank", timeout=120)
    assert b"<html>" in nested.out or b"sandbox" in nested.err


@pytest.mark.parametrize(("program", "words"), [("git", "init -q r && git -C r status"), ("gcc", "-x c -o p /dev/null -c"), ("node", "-e 1"), ("java", "-version"), ("tmux", "-V")])
def test_ordinary_programs(sandy: Cli, program: str, words: str) -> None:
    need(shutil.which(program, path=sandy.env["PATH"]), program)
    sandy.sh(f"{program} {words}", timeout=120).ok()
