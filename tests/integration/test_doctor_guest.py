"""`sandy doctor`, and a start, on a kernel that lacks what the network needs, and on one without cgroup v2; and that the fix that is named works.

Root takes it away: `tests/run.sh --only vm` runs this in the guests, whose kernels have it as modules.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator

import pytest
from support import Cli, host

pytestmark = pytest.mark.root
WITHOUT = pathlib.Path("/etc/modprobe.d/sandy-test.conf")
NETWORK = ("--private-workspace", "--allow-domain", "example.org")


@pytest.fixture(autouse=True)
def guest() -> None:
    # Not by need(): nothing that builds may lose its modules, and what runs there in their place is tests/vm.
    if not pathlib.Path("/usr/local/lib/sandy-vm-agent").exists():
        pytest.skip("takes modules away from the kernel: see tests/vm")


@pytest.fixture
def unloaded() -> Iterator[None]:
    names = host("lsmod | awk '/^(nft_|nf_tables|veth)/ {print $1}'").ok().lines
    for _ in range(4):  # those that use others first
        host(f"for name in {' '.join(names)}; do modprobe -r $name; done")
    yield
    WITHOUT.unlink(missing_ok=True)


def finding(sandy: Cli, name: str) -> dict[str, str]:
    rows = json.loads(host(f"{sandy.program} doctor --json", env=sandy.env).out)
    found = [row for row in (rows["capabilities"] if isinstance(rows, dict) else rows) if row["name"] == name]
    assert len(found) == 1, rows
    return found[0]


@pytest.mark.parametrize(("module", "said"), [("nf_tables", "no nftables"), ("veth", "no veth"), ("nft_chain_nat", "can't redirect")])
def test_a_kernel_without_a_module(sandy: Cli, unloaded: None, module: str, said: str) -> None:
    WITHOUT.write_text(f"install {module} /bin/false\n")
    got = sandy.sh("echo ran", *NETWORK)
    assert got.status == 125 and got.text == "" and said in got.error, got
    fix = re.search(r"sudo (modprobe \w+)", got.error)
    assert fix and fix[1] == f"modprobe {module}", got
    row = finding(sandy, "network allowlist")
    assert row["state"] == "missing" and said in row["detail"] and f"modprobe {module}" in row["fix"], row
    # Without a network it starts.
    assert sandy.sh("echo ran", "--private-workspace").ok().text == "ran\n"
    # What is named, done.
    WITHOUT.unlink()
    host(fix[1]).ok()
    assert sandy.sh("echo ran", *NETWORK).ok().text == "ran\n"
    assert finding(sandy, "network allowlist")["state"] == "ok"


@pytest.mark.parametrize(("mounts", "said"), [("mount -t tmpfs none /sys/fs/cgroup", "no cgroup v2"), ("mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified", "hybrid")])
def test_no_cgroup_v2(sandy: Cli, mounts: str, said: str) -> None:
    inside = f"unshare -m sh -c '{mounts} && exec \"$@\"' sh {sandy.program}"
    got = host(f"{inside} run --private-workspace --memory 64M -- echo ran", env=sandy.env)
    assert got.status == 125 and got.text == "" and said in got.error and "systemd.unified_cgroup_hierarchy=1" in got.error, got
    assert host(f"{inside} run --private-workspace --best-effort --memory 64M -- echo ran", env=sandy.env).ok().text == "ran\n"
    # This guest was booted with what is named.
    assert "systemd.unified_cgroup_hierarchy=1" in pathlib.Path("/proc/cmdline").read_text()
    assert host(f"{sandy.program} run --private-workspace --memory 64M -- echo ran", env=sandy.env).ok().text == "ran\n"
