"""All limits in one sandbox, hit one after another and not hit; and what its neighbours feel of that."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

from limits_support import cgroups, client, on_disk  # noqa: F401
from support import Cli


def test_all_at_once(sandy: Cli, client: Callable[..., Any], on_disk: pathlib.Path) -> None:
    delegated = pathlib.Path(f"/sys/fs/cgroup/user.slice/user-{os.geteuid()}.slice/user@{os.geteuid()}.service/cgroup.controllers").read_text().split()
    io = 'io_read="20M", io_write="4M", ' if "io" in delegated else ""
    script = f"""
said = {{}}
with Sandbox(workspace={str(on_disk)!r}, memory="64M", swap=0, cpus=0.5, pids=30, {io}wall_time=900, open_files=64, file_size="8M", tmp_size="4M", timeout=100) as box:
    def run(name, command, **more):
        ended = box.run(command, **more)
        said[name] = [ended.reason, ended.exit_code, ended.limits_hit, (ended.stdout + ended.stderr).decode()]
    run("nothing", "echo fine")
    run("memory", ["python3", "-c", "bytearray(200 << 20)"])
    run("processes", "i=0; while [ $i -lt 50 ]; do sleep 3 & i=$((i + 1)); done; true")
    while box.stats().processes: time.sleep(0.2)
    run("time", "sleep 60", timeout=1)
    run("cpu", "for i in 1 2 3; do (j=0; while [ $j -lt 60000 ]; do j=$((j + 1)); done) & done; wait")
    run("files", ["python3", "-c", "import os\\nheld = []\\ntry:\\n  while True: held.append(os.open('/dev/null', 0))\\nexcept OSError as error: print(len(held) < 64, error.strerror)"])
    run("file size", "head -c 9M /dev/zero > f; echo $?; rm f")
    run("tmp", "head -c 9M /dev/zero > /tmp/f; echo $?; rm /tmp/f")
    before = time.monotonic()
    run("disk", "dd if=/dev/zero of=g bs=1M count=7 oflag=direct 2>/dev/null; echo $?")
    said["disk took"] = time.monotonic() - before
    run("nothing again", "echo fine")
    said["stats"] = [box.stats().limits, box.stats().oom_kills]
    import subprocess
    said["seen"] = json.loads(subprocess.run([{str(sandy.program)!r}, "stats", "--json", box.id], capture_output=True, check=True).stdout)[0]
show(said)
"""
    said = client(script, timeout=400)
    for name in ("nothing", "nothing again"):
        # (In an emulated guest half a core is little for a shell's start too.)
        said[name][2] = [line for line in said[name][2] if not line.startswith("CPU limit")]
        assert said[name] == ["exited", 0, [], "fine\n"], (name, said[name])
    assert said["memory"][:2] == ["out_of_memory", 137] and said["memory"][2][0].startswith("killed: memory limit 64 MiB, peak 6"), said["memory"]
    assert "process limit 30 reached" in said["processes"][2], said["processes"]
    assert said["time"][0] == "timed_out", said["time"]
    assert any(line.startswith("CPU limit 0.5: held back for ") for line in said["cpu"][2]), said["cpu"]
    assert said["files"][3] == "True Too many open files\n", said["files"]
    assert "too large" in said["file size"][3].lower() or "153" in said["file size"][3], said["file size"]
    assert "No space left" in said["tmp"][3], said["tmp"]
    # Each tells of its own limit alone.
    for name in ("memory", "files", "file size", "tmp", "disk"):
        assert not any("process limit" in line for line in said[name][2]), (name, said[name])
    for name in ("processes", "time", "cpu", "files", "tmp"):
        assert not any("memory limit" in line for line in said[name][2]), (name, said[name])
    assert said["disk"][3] == "0\n" and (not io or said["disk took"] > 1), said
    limits, kills = said["stats"]
    assert kills == 1 and limits["memory"] == 64 << 20 and limits["swap"] == 0 and limits["cpus"] == 0.5 and limits["pids"] == 30
    # What another process reads of the same.
    assert {name: said["seen"].get(f"{name}_limit") for name in limits} == limits, (said["seen"], limits)
    assert {"io_read", "io_write"} <= limits.keys() if io else "io_write" not in limits


def test_neighbours(client: Callable[..., Any]) -> None:
    # Three that do their worst, each in its limits, and one that is to go on: with its network, as the proxy is everybody's. What they cost it is measured by
    # tests/bench/limits.py, where nothing else runs; here it answers, and is ended by none of it.
    script = """
hog = "while True:\\n    try: held = [bytearray(8 << 20) for _ in range(100)]\\n    except MemoryError: pass"
bad = [Sandbox(memory="64M", pids=40, cpus=0.5, timeout=6) for _ in range(3)]
with Sandbox(memory="64M", allow_domains=["nowhere.example"], timeout=100) as good:
    commands = ["f() { f | f & }; f; sleep 60", ["python3", "-c", hog], "for i in 1 2 3 4; do (while :; do :; done) & done; sleep 60"]
    ends = {}
    threads = [threading.Thread(target=lambda n=n: ends.update({n: bad[n].run(commands[n])})) for n in range(3)]
    for thread in threads: thread.start()
    time.sleep(0.5)
    went, blocked = 0, 0
    while any(thread.is_alive() for thread in threads):
        went += good.run(["true"]).ok
        asked = good.run(["python3", "-c", "import socket\\ntry: socket.getaddrinfo('other.example', 80)\\nexcept OSError: print('no')"])
        blocked += asked.stdout == b"no\\n" and len(asked.denials) > 0
        good.stats()
    for thread in threads: thread.join()
    after = [box.run(["echo", "next"]).stdout.decode() for box in bad]
show([went, blocked, [ends[n].reason for n in range(3)], ends[0].limits_hit, ends[1].limits_hit, after])
for box in bad: box.close()
"""
    went, blocked, reasons, bomb, hog, after = client(script, timeout=400)
    assert went >= 2 and blocked == went, (went, blocked)
    assert reasons[0] == reasons[2] == "timed_out" and reasons[1] == "out_of_memory", reasons
    assert "process limit 40 reached" in bomb and "memory limit 64 MiB" in hog[0] and after == ["next\n"] * 3
