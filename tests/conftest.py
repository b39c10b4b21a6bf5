"""What holds for every test, and where the real records are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No test may pass or fail by how busy the machine is.
settings.register_profile("speedbench", deadline=None)
settings.load_profile("speedbench")

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "mirror"


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder of real records, or a skip that says how to give one."""
    folder = Path(os.environ.get("SPEEDBENCH_MIRROR") or _BESIDE)
    if not folder.is_dir():
        pytest.skip("real records are absent; SPEEDBENCH_MIRROR names their folder (laid out as <org>/<name>/<path>)")
    return folder
