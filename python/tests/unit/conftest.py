"""Unit tests run without the programs and without a network: a fake server in this process answers."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fake_serve import FakeServe

from sandy import _process


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuses every socket but Unix ones."""
    pytest_socket = pytest.importorskip("pytest_socket")
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServe]:
    """The server that sandboxes of this test get."""
    fake = FakeServe()
    monkeypatch.setattr(_process, "spawn_serve", fake.spawn)
    monkeypatch.setattr(_process, "_current", None)
    yield fake
    for started in list(_process._serves):
        started.shut_down()
    for thread in fake.threads:
        thread.join(5)
        assert not thread.is_alive()
