from __future__ import annotations

import base64
import json
import os
import pathlib
from typing import Any

import pytest
from fake_serve import FakeServe

from sandy import PolicyError, ProtocolError, Sandbox


def sent(serve: FakeServe) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads(serve.requests("create")[-1].args[0])
    return policy


def test_nothing_asked_for_is_nothing_sent(serve: FakeServe) -> None:
    Sandbox()
    assert sent(serve) == {"version": 1}


def test_every_keyword_has_its_key(serve: FakeServe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSED", "p")
    monkeypatch.delenv("UNSET", raising=False)
    Sandbox(
        workspace="/w",
        read=["/r", pathlib.Path("/r2")],
        write=[b"/w2"],
        deny=["/d"],
        env={"A": "b"},
        pass_env=["PASSED", "UNSET"],
        seccomp="strict",
        hostname="box",
        allow_domains=["a.example"],
        deny_domains=["b.a.example"],
        allow_private=["10.0.0.1:80"],
        publish=["8080:3000"],
        memory="2G",
        swap=0,
        cpus=1.5,
        pids=100,
        io_read="10M",
        io_write=5,
        wall_time="10m",
        open_files=64,
        file_size="1G",
        tmp_size="64M",
        log_size="2M",
        best_effort=True,
    )
    assert sent(serve) == {
        "version": 1,
        "filesystem": {
            "workspace": {"path": "/w", "mode": "bind", "mount": "/workspace"},
            "read": ["/r", "/r2"],
            "write": ["/w2"],
            "deny": ["/d"],
        },
        "network": {
            "mode": "allowlist",
            "allow": ["a.example"],
            "deny": ["b.a.example"],
            "allow_private": ["10.0.0.1:80"],
            "publish": ["8080:3000"],
        },
        "seccomp": "strict",
        "environment": {"set": {"A": "b", "PASSED": "p"}},
        "process": {"hostname": "box"},
        "limits": {
            "memory": "2G",
            "swap": 0,
            "cpus": 1.5,
            "pids": 100,
            "io_read": "10M",
            "io_write": 5,
            "wall_time": "10m",
            "open_files": 64,
            "file_size": "1G",
            "tmp_size": "64M",
            "log_size": "2M",
            "best_effort": True,
        },
    }


def test_the_program_is_told_where_a_policy_was_read_from(
    serve: FakeServe, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text('{"version": 1}')
    Sandbox(policy="p.json")
    Sandbox(policy=b"p.json")
    Sandbox(policy={"version": 1})
    assert [request.args[1:] for request in serve.requests("create")] == [[os.fsencode(tmp_path / "p.json")]] * 2 + [[]]


def test_an_empty_allowlist_is_not_a_missing_one(serve: FakeServe) -> None:
    Sandbox(allow_domains=[])
    assert sent(serve)["network"] == {"mode": "allowlist", "allow": []}


def test_a_published_port_alone_is_a_network_in_which_nothing_is(serve: FakeServe) -> None:
    Sandbox(publish=["3000"])
    assert sent(serve)["network"] == {"mode": "allowlist", "publish": ["3000"]}


def test_paths_of_any_bytes(serve: FakeServe, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.chdir(tmp_path)
    raw = b"/a\xff\nb"
    Sandbox(read=[raw, os.fsdecode(raw), "rel/x", "~/x", b"~/x", "/with ü"], seccomp="./my.json")
    encoded = {"bytes": base64.b64encode(raw).decode()}
    # As bytes, "~" means itself.
    assert sent(serve)["filesystem"]["read"] == [encoded, f"{tmp_path}/rel/x", "~/x", f"{tmp_path}/~/x", "/with ü"]
    assert sent(serve)["seccomp"] == {"file": f"{tmp_path}/./my.json"}


def test_relative_paths_are_from_here_wherever_they_stand(
    serve: FakeServe, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = {"bytes": base64.b64encode(b"rel").decode()}
    here = {"bytes": base64.b64encode(os.fsencode(tmp_path) + b"/rel").decode()}
    files: list[Any] = ["my.json", pathlib.Path("my.json"), b"my.json", {"file": "my.json"}, {"file": pathlib.Path("my.json")}]
    for seccomp in files:
        Sandbox(seccomp=seccomp)
        assert sent(serve)["seccomp"] == {"file": f"{tmp_path}/my.json"}
    Sandbox(seccomp={"file": raw})
    assert sent(serve)["seccomp"] == {"file": here}
    Sandbox(seccomp={"base": "strict", "unsafe_ptrace": True})
    assert sent(serve)["seccomp"] == {"base": "strict", "unsafe_ptrace": True}
    Sandbox(workspace="w", read=[pathlib.Path("~/x")])
    assert sent(serve)["filesystem"]["workspace"]["path"] == f"{tmp_path}/w"
    assert sent(serve)["filesystem"]["read"] == ["~/x"]
    policy = {
        "filesystem": {
            "workspace": {"path": "w"},
            "read": ["r", raw, pathlib.Path("p"), {"bytes": "no base64"}],
            "write": ["~/w", "/w"],
            "deny": (b"d",),
        },
        "seccomp": {"file": "my.json"},
        "process": {"cwd": "/inside"},
    }
    Sandbox(policy=policy)
    assert sent(serve) == {
        "version": 1,
        "filesystem": {
            "workspace": {"path": f"{tmp_path}/w"},
            "read": [f"{tmp_path}/r", here, f"{tmp_path}/p", {"bytes": "no base64"}],
            "write": ["~/w", "/w"],
            "deny": [f"{tmp_path}/d"],
        },
        "seccomp": {"file": f"{tmp_path}/my.json"},
        "process": {"cwd": "/inside"},
    }


def test_a_base_policy_is_added_to(serve: FakeServe, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("P", "now")
    base = {"version": 1, "filesystem": {"read": ["/a", "rel"]}, "limits": {"pids": 5}, "environment": {"pass": ["P"]}}
    (tmp_path / "policy.json").write_text(json.dumps(base))
    for policy in (base, "policy.json", tmp_path / "policy.json"):
        Sandbox(policy=policy, read=["/b", "/a"], pids=5, memory="1G", env={"X": "y"})
        assert sent(serve) == {
            "version": 1,
            "filesystem": {"read": ["/a", f"{tmp_path}/rel", "/b"]},
            "limits": {"pids": 5, "memory": "1G"},
            "environment": {"set": {"X": "y", "P": "now"}},
        }
    assert base["filesystem"] == {"read": ["/a", "rel"]}


@pytest.mark.parametrize(
    ("policy", "keywords", "names"),
    [
        ({"limits": {"memory": "1G"}}, {"memory": "2G"}, ["memory=", "limits.memory"]),
        ({"filesystem": {"workspace": {"mode": "private"}}}, {"workspace": "/w"}, ["workspace", "filesystem.workspace.mode"]),
        ({"environment": {"set": {"A": "1"}}}, {"env": {"A": "2"}}, ["env", "environment.set"]),
        ({"seccomp": "default"}, {"seccomp": "strict"}, ["seccomp=", "policy's seccomp"]),
        ({"limits": 3}, {"memory": "2G"}, ["limits", "no object"]),
        ({"filesystem": {"read": "/a"}}, {"read": ["/b"]}, ["read", "filesystem.read"]),
    ],
)
def test_contradictions_name_both(serve: FakeServe, policy: dict[str, Any], keywords: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Sandbox(policy=policy, **keywords)
    assert all(name in str(caught.value) for name in names)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 1, "version": 1}', "[" * 100_000, '{"a": "' + "x" * 1_100_000 + '"}']
)
def test_files_that_are_no_policy(serve: FakeServe, tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(ValueError, match=r"policy\.json"):
        Sandbox(policy=tmp_path / "policy.json")


@pytest.mark.parametrize("keep", [-1, 67_108_865])
def test_senseless_caps(serve: FakeServe, keep: int) -> None:
    with pytest.raises(ValueError, match="max_output_bytes"):
        Sandbox(max_output_bytes=keep)


def test_a_number_that_is_none_in_json(serve: FakeServe) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Sandbox(cpus=float("nan"))


def test_a_word_is_a_policys_name(serve: FakeServe, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = b"/shipped/python-data.json"
    text = b'{"version": 1, "limits": {"file_size": "1G"}, "filesystem": {"read": ["data"]}}'
    serve.on["policy"] = lambda request: request.end(file + text, args=[len(file)])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python-data").write_text('{"version": 1, "seccomp": "strict"}')
    Sandbox(policy="python-data", memory="2G")
    assert serve.requests("policy")[0].args == [b"python-data", os.fsencode(tmp_path)]
    limits = {"file_size": "1G", "memory": "2G"}
    assert sent(serve) == {"version": 1, "limits": limits, "filesystem": {"read": [str(tmp_path / "data")]}}
    # Where it was read from, which no command may change.
    assert serve.requests("create")[-1].args[1] == file
    for path in ("./python-data", pathlib.Path("python-data"), b"python-data", str(tmp_path / "python-data")):
        Sandbox(policy=path)
        assert sent(serve) == {"version": 1, "seccomp": "strict"}
        assert serve.requests("create")[-1].args[1] == os.fsencode(tmp_path / "python-data")
    assert len(serve.requests("policy")) == 1


def test_a_name_that_stands_for_nothing(serve: FakeServe) -> None:
    serve.on["policy"] = lambda request: request.end(error="policy", detail='policy "x": there is none\nhint: sandy policy list')
    with pytest.raises(PolicyError, match="there is none") as caught:
        Sandbox(policy="x")
    assert caught.value.fix == "sandy policy list"
    serve.on["policy"] = lambda request: request.end(b"", args=[])
    with pytest.raises(ProtocolError):
        Sandbox(policy="x")
    serve.on["policy"] = lambda request: request.end(b"/f[]", args=[2])
    with pytest.raises(ValueError, match=r"/f.*not a JSON object"):
        Sandbox(policy="x")
    assert not serve.requests("create")
