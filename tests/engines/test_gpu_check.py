"""The GPU check at a size for a CPU, through its script."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.inprocess_client import python

SCRIPT = Path(__file__).parents[2] / "bench" / "gpu_check.sh"


def check(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OUT": str(out), "PYTHON": str(Path(python()).absolute()), "OMP_NUM_THREADS": "1"}
    # Run elsewhere, with no path of ours: the script needs nothing but its own folder.
    env.pop("PYTHONPATH", None)
    command = ["sh", str(SCRIPT), *arguments]
    return subprocess.run(command, env=env, cwd=out.parent, capture_output=True, text=True, timeout=300, check=False)


def test_every_cell_is_measured_and_greedy_answers_are_the_plain_ones(tmp_path):
    done = check(tmp_path / "out", "--tiny", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / "gpu_check.json").read_text())
    assert results["lossless"]["verdict"] == "equal"
    assert results["lossless"]["answers"] == 8
    controls = results["float32_controls"]
    assert controls["acceptance_length"]["drafter_is_target"] == results["draft_length"] + 1
    assert all(controls["greedy_equals_plain"].values())
    cells = {(c["bucket"], c["temperature"], c["mode"]): c for c in results["cells"]}
    assert len(cells) == 2 * 2 * 3
    for (_, _, mode), cell in cells.items():
        assert cell["step_ms"] > 0
        assert cell["verify_ms"] <= cell["step_ms"]
        if mode == "draft":
            assert cell["draft_ms"] + cell["verify_ms"] <= cell["step_ms"]
            assert cell["acceptance_length"] >= 1
    assert not list((tmp_path / "out").glob("*.part"))


def test_cells_that_the_time_does_not_allow_say_so(tmp_path):
    check(tmp_path / "out", "--tiny", "--device", "cpu", "--limit-s", "0")
    results = json.loads((tmp_path / "out" / "gpu_check.json").read_text())
    assert all("not_run" in cell for cell in results["cells"])
    assert results["lossless"]["verdict"] == "not shown"


@pytest.mark.parametrize(
    ("arguments", "says"), [(["--device", "cpu"], "--tiny"), (["--tiny", "--dist", "nowhere"], "--dist")]
)
def test_what_cannot_be_checked_is_refused_in_one_line(tmp_path, arguments, says):
    done = check(tmp_path / "out", *arguments, "--device", "cpu")
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
