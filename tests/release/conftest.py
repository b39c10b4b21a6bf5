"""A whole small build, its pins, and a Hub that takes releases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.constants
import huggingface_hub.utils._http
import pytest

from tests.hub.fakehub import WRITE_TOKEN, FakeHub, running
from tests.release.tiny_build import copy_of, tiny_build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build that nobody may change; its folder holds `build/` and `lock.toml`."""
    root = tmp_path_factory.mktemp("tiny")
    tiny_build(root)
    return root


@pytest.fixture
def dist(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `dist/` of a copy of the build, with its pins in force."""
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(built / "lock.toml"))
    return copy_of(built, tmp_path / "copy")


@pytest.fixture(scope="session")
def server() -> Iterator[FakeHub]:
    """One loopback Hub."""
    with running() as hub:
        yield hub


@pytest.fixture(scope="module")
def hub_here(server: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeHub]:
    """The Hub, and this process sent there as one that may write; the client's own retries wait for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment(WRITE_TOKEN).items():
            patch.setenv(name, value)
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        patch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path_factory.mktemp("hub-cache")))
        clock = SimpleNamespace(**{**vars(time), "sleep": lambda _seconds: None})
        patch.setattr(huggingface_hub.utils._http, "time", clock)
        yield server


@pytest.fixture
def hub(hub_here: FakeHub) -> FakeHub:
    """The Hub, empty."""
    hub_here.reset()
    return hub_here


@pytest.fixture
def no_wait() -> Callable[[float], None]:
    """Wait for nothing between two tries."""
    return lambda _seconds: None
