"""One laboratory for all tests of real engines: a server is started once a mode and gone before the next one starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engines.lab import Lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Real engines through our own recipes; the environment of vLLM and transformers is named by the caller."""
    assert os.environ.get("SPEEDBENCH_VLLM_PYTHON"), "SPEEDBENCH_VLLM_PYTHON names the interpreter; `make test-engines`"
    return Lab(tmp_path_factory.mktemp("engines"))
