"""Our requests against the engines' own request models: by name, from their sources; vLLM's models validate them too.

They lie in the environments of `SPEEDBENCH_VLLM_PYTHON` and `SPEEDBENCH_SGLANG_PYTHON`, which `make test-peers` makes.
"""

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest

from bench.engines.base import Ask, Sampling
from bench.engines.registry import ENGINES


def roots() -> list[Path]:
    """Where the packages of the engines lie."""
    named = [os.environ[name] for name in ("SPEEDBENCH_VLLM_PYTHON", "SPEEDBENCH_SGLANG_PYTHON") if name in os.environ]
    # The link itself is followed nowhere: the environment is where it lies.
    return [root for python in named for root in Path(python).absolute().parents[1].glob("lib/python3*/site-packages")]


def source(path: str) -> Path | None:
    return next((root / path for root in roots() if (root / path).is_file()), None)


pytestmark = pytest.mark.peers

ASK = Ask("m", Sampling(seed=3), (1, 2), ({"role": "user", "content": "x"},), "salt", {"enable_thinking": False})

MODELS = {
    "vllm": [((), "vllm/entrypoints/openai/completion/protocol.py", "CompletionRequest")],
    "vllm-chat": [((), "vllm/entrypoints/openai/chat_completion/protocol.py", "ChatCompletionRequest")],
    "vllm-generate": [
        ((), "vllm/entrypoints/scale_out/token_in_token_out/protocol.py", "GenerateRequest"),
        (("sampling_params",), "vllm/sampling_params.py", "SamplingParams"),
    ],
    "sglang": [
        ((), "sglang/srt/managers/io_struct.py", "GenerateReqInput"),
        (("sampling_params",), "sglang/srt/sampling/sampling_params.py", "SamplingParams"),
    ],
}


def fields(path: Path, name: str) -> set[str]:
    """The annotated fields of a class, and of its bases in the same package."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        return set()
    own = {n.target.id for n in classes[name].body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id != name:
            own |= fields(path, base.id) or imported(path, tree, base.id)
    return own


def imported(path: Path, tree: ast.Module, name: str) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            other = source(node.module.replace(".", "/") + ".py")
            return fields(other, name) if other else set()
    return set()


@pytest.mark.parametrize("name", MODELS)
def test_every_field_that_we_send_is_one_of_the_engine(name):
    payload = ENGINES[name].payload(ASK)
    for keys, path, model in MODELS[name]:
        model_source = source(path)
        assert model_source is not None, f"{path}: not there: run `make test-peers`, which installs the engine"
        part = payload
        for key in keys:
            part = part[key]
        known = fields(model_source, model)
        assert known, f"{model} has no fields in {model_source}"
        assert set(part) <= known, f"unknown to {model}: {sorted(set(part) - known)}"


def faults(asks: list[tuple[str, str, dict]]) -> list[str]:
    python = os.environ.get("SPEEDBENCH_VLLM_PYTHON")
    assert python, "run `make test-peers`, which installs vLLM"
    script = Path(__file__).parents[1] / "peers" / "validate_requests.py"
    done = subprocess.run(
        [python, script], input=json.dumps(asks), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("vllm")])
def test_vllm_takes_our_requests_and_changes_nothing_in_them(name):
    asks = []
    for keys, path, model in MODELS[name]:
        part = ENGINES[name].payload(ASK)
        for key in keys:
            part = part[key]
        asks.append((path.removesuffix(".py").replace("/", "."), model, part))
    assert faults(asks) == [""] * len(asks)


def test_vllm_refuses_what_is_no_number():
    protocol = "vllm.entrypoints.openai.completion.protocol"
    (fault,) = faults([(protocol, "CompletionRequest", {"prompt": [1], "max_tokens": "many"})])
    assert "max_tokens" in fault
