#!/usr/bin/env python3
"""Runs a command in a Debian guest that build.sh made, as the user `tester` in a session of logind's, or as root.

usage: tests/vm/run.py [--suite bookworm|trixie] [--share DIRECTORY] [--root] [--timeout SECONDS] [--cold] COMMAND [ARGUMENT...]

One word is a shell's line, several are a command with its arguments. DIRECTORY is copied to /payload in the guest, the command's working directory.
The first run boots the guest and saves its state, with the session open; others start from that, each with a disk of its own. Exit status: the
command's, 124 after the time limit (300 s), 125 where the guest itself did not work.

The guest runs under QEMU's software emulation (TCG), as KVM can't be had everywhere: a Python loop takes 10 to 20 times as long as outside.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any

PAYLOAD_BYTES = 512 << 20
KERNEL_WORDS = (
    "console=ttyS0 quiet loglevel=3 panic=-1 audit=0 mitigations=off nokaslr no_timer_check cryptomgr.notests random.trust_cpu=on "
    "systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 i8042.noaux rcupdate.rcu_expedited=1 psi=1"
)
BOOT_SECONDS = 180


class GuestError(Exception):
    """The guest did not work; nothing is known of the command."""


def directory_of(suite: str) -> pathlib.Path:
    return pathlib.Path(os.environ.get("SANDY_VM_DIR") or pathlib.Path(__file__).resolve().parents[2] / "build/vm") / suite


def write_payload(path: pathlib.Path, share: str | None, words: list[str], user: str) -> None:
    """A tar archive that is the guest's second disk."""
    line = words[0] if len(words) == 1 else shlex.join(words)
    with path.open("wb") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            if share:
                archive.add(share, arcname=".")
            for name, text in (("command", line + "\n"), ("user", user)):
                entry = tarfile.TarInfo(f".vm/{name}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        if file.tell() > PAYLOAD_BYTES:
            raise GuestError(f"{share} is too large: over {PAYLOAD_BYTES >> 20} MiB")
        file.truncate(PAYLOAD_BYTES)


class Monitor:
    """QEMU's, by QMP."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rw")
        self._file.readline()
        self("qmp_capabilities")

    def __call__(self, command: str, **arguments: Any) -> Any:
        self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._file.flush()
        while True:
            answer = json.loads(self._file.readline() or '{"error": "qemu is gone"}')
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise GuestError(f"{command}: {answer['error']}")


class Guest:
    """One virtual machine, from its start, fresh or from a saved state, to its end."""

    def __init__(self, suite: str, work: pathlib.Path, payload: pathlib.Path, *, saved: bool, keep_disk: bool = False) -> None:
        home = directory_of(suite)
        self.work = work
        state = home / "state"
        disk, form = (state / "root.qcow2", "qcow2") if saved or keep_disk else (home / "root.img", "raw")
        command = [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max,la57=off", "-smp", "2", "-m", "1024",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", home / "kernel", "-initrd", home / "initrd", "-append", KERNEL_WORDS,
            "-drive", f"id=root,file={disk},format={form},if=none,snapshot={'off' if keep_disk else 'on'},cache=unsafe", "-device", "virtio-blk-pci,drive=root,serial=root",
            "-drive", f"id=payload,file={payload},format=raw,if=none,readonly=on", "-device", "virtio-blk-pci,drive=payload,serial=payload",
            "-device", "virtio-serial-pci", "-device", "virtio-rng-pci", "-serial", f"file:{work}/console", "-qmp", f"unix:{work}/monitor,server=on,wait=off",
        ]
        for name in ("control", "out", "err"):
            command += ["-chardev", f"socket,id={name},path={work}/{name},server=on,wait=off", "-device", f"virtserialport,chardev={name},name=sandy.{name}"]
        if saved:
            command += ["-incoming", f"exec:cat {state}/memory"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(work)}, start_new_session=True)
        self.monitor = Monitor(self.connect("monitor"))
        self.control, self.out, self.err = (self.connect(name) for name in ("control", "out", "err"))

    def connect(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        for _ in range(1000):
            try:
                connection.connect(f"{self.work}/{name}")
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.01)
            else:
                return connection
        raise GuestError(f"qemu did not start ({name})")

    def wait_until_ready(self) -> None:
        self.control.settimeout(BOOT_SECONDS)
        try:
            if b"READY" not in self.control.recv(64):
                raise GuestError("the guest did not boot")
        except TimeoutError:
            raise GuestError(f"the guest did not boot within {BOOT_SECONDS} s") from None

    def resume(self) -> None:
        while (status := self.monitor("query-status")["status"]) == "inmigrate":
            time.sleep(0.01)
        if status != "running":
            self.monitor("cont")

    def save(self, path: pathlib.Path) -> None:
        self.monitor("stop")
        self.monitor("human-monitor-command", **{"command-line": "migrate_set_parameter max-bandwidth 4G"})
        self.monitor("migrate", uri=f"exec:cat > {path}")
        while (status := self.monitor("query-migrate")["status"]) != "completed":
            if status == "failed":
                raise GuestError("its state can't be saved")
            time.sleep(0.05)

    def run(self, limit: float) -> int:
        """Lets the guest run its command and passes on what that writes. The exit status; 124: it took too long."""
        nonce = os.urandom(8).hex()
        mark = b"\0EOF-" + nonce.encode() + b"\n"
        self.control.sendall(f"GO {time.time():.3f} {nonce}\n".encode())
        self.control.setblocking(True)
        selector = selectors.DefaultSelector()
        held = {self.out: b"", self.err: b"", self.control: b""}
        for connection in held:
            selector.register(connection, selectors.EVENT_READ)
        targets = {self.out: sys.stdout.buffer, self.err: sys.stderr.buffer}
        ended: set[socket.socket] = set()
        status: int | None = None
        end = time.monotonic() + limit
        while status is None or len(ended) < len(targets):
            if time.monotonic() > end:
                print(f"the guest's command took more than {limit:.0f} s", file=sys.stderr)
                return 124
            if self.process.poll() is not None:
                raise GuestError(f"qemu ended ({self.process.returncode})")
            for key, _ in selector.select(0.5):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                data = connection.recv(1 << 16)
                if not data:
                    selector.unregister(connection)
                    continue
                held[connection] += data
                if connection is self.control:
                    lines = held[connection].split(b"\n")
                    held[connection] = lines.pop()
                    for line in lines:
                        if line.startswith(b"STATUS "):
                            status = int(line.split()[1])
                    continue
                text, found, rest = held[connection].partition(mark)
                if found:
                    held[connection] = rest
                    ended.add(connection)
                else:
                    # The mark's beginning may be there already.
                    cut = next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)
                    held[connection] = text[len(text) - cut :]
                    text = text[: len(text) - cut]
                targets[connection].write(text)
                targets[connection].flush()
        return status

    def end(self) -> None:
        self.process.kill()  # its disk is thrown away
        self.process.wait()

    def console(self) -> str:
        try:
            return "".join((self.work / "console").read_text(errors="replace").splitlines(keepends=True)[-15:])
        except OSError:
            return ""


def state_key(suite: str) -> str:
    """What a saved state belongs to: this image, this qemu, this machine's processor."""
    home = directory_of(suite)
    version = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    model = next((line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    image = (home / "root.img").stat()
    return json.dumps([(home / "made-from").read_text(), image.st_mtime_ns, version, model, KERNEL_WORDS, pathlib.Path(__file__).read_text()])


def save_state(suite: str) -> None:
    """Boots the guest and keeps its memory and disk as they are when the session is open."""
    home = directory_of(suite)
    state = home / "state"
    state.mkdir(exist_ok=True)
    (state / "key").unlink(missing_ok=True)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", home / "root.img", "-F", "raw", state / "root.qcow2"], check=True)
    with tempfile.TemporaryDirectory(prefix="sandy-vm.") as name:
        work = pathlib.Path(name)
        payload = work / "payload.tar"
        with payload.open("wb") as file:
            file.truncate(PAYLOAD_BYTES)
        guest = Guest(suite, work, payload, saved=False, keep_disk=True)
        try:
            guest.wait_until_ready()
            guest.save(state / "memory")
        except GuestError as error:
            raise GuestError(f"{error}\n{guest.console()}") from None
        finally:
            guest.end()
    (state / "key").write_text(state_key(suite))


def has_state(suite: str) -> bool:
    try:
        return (directory_of(suite) / "state/key").read_text() == state_key(suite)
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], epilog="See the head of this file.")
    parser.add_argument("--suite", choices=["bookworm", "trixie"], default="bookworm")
    parser.add_argument("--share", help="a directory that is copied to /payload")
    parser.add_argument("--root", action="store_true", help="as root, outside any session")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--cold", action="store_true", help="boot, also where there is a saved state")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        parser.error("no command")
    if not (directory_of(options.suite) / "root.img").exists():
        print(f"no guest in {directory_of(options.suite)}: run tests/vm/build.sh {options.suite}", file=sys.stderr)
        return 125
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the guest ends with us
    try:
        if not options.cold and not has_state(options.suite):
            save_state(options.suite)
        with tempfile.TemporaryDirectory(prefix="sandy-vm.") as name:
            work = pathlib.Path(name)
            write_payload(work / "payload.tar", options.share, words, "root" if options.root else "tester")
            guest = Guest(options.suite, work, work / "payload.tar", saved=not options.cold)
            try:
                guest.wait_until_ready() if options.cold else guest.resume()
                return guest.run(options.timeout)
            except GuestError as error:
                raise GuestError(f"{error}\n{guest.console()}") from None
            finally:
                guest.end()
    except GuestError as error:
        print(f"tests/vm/run.py: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
