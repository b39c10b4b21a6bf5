"""The toy pair where torch is: transformers computes what the definition says, and the recipe is deterministic."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bench.toy.files import hf_folder
from tests.bench.reference_llama import Llama

LOADED = """
import sys, json, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
torch.set_num_threads(1)
model, tokenizer = (a.from_pretrained(sys.argv[1]) for a in (AutoModelForCausalLM, AutoTokenizer))
ids = tokenizer.apply_chat_template([{"role": "user", "content": sys.argv[2]}], add_generation_prompt=True)
ids = ids if isinstance(ids, list) else ids["input_ids"]
with torch.no_grad():
    logits = model(torch.tensor([ids])).logits[0]
print(json.dumps({"dtype": str(model.dtype), "ids": ids, "logits": logits.tolist()}))
"""
TRAINED = """
import sys
from pathlib import Path
import numpy as np, torch
from bench.toy import plan, train as recipe
from bench.toy.rows import Encoded, Mixture
torch.set_num_threads(1)
stream = np.random.default_rng(0).integers(4, 20, 4000)
encoded = Encoded({"code": stream}, {"code": [[0, 2, *stream[:5], 3, *stream[:9], 1]]})
only_code = Mixture(code=1, manual=0, prose=0, chat=0, chats={"code": 1})
for out in sys.argv[1:]:
    teacher, model = (recipe.build(plan.Shape(64, 64, 1), seed) for seed in (1, 2))
    stage = plan.Stage(only_code, 6, 2, 5e-3, 1e-3, seed=4, warmup_steps=2, every_2k=3, divergence=0.5, spoken=48)
    recipe.train(model, stage, encoded, teacher)
    recipe.round_to_float16(model)
    recipe.write_model(model, plan.Shape(64, 64, 1), Path(out))
"""


def run(program: str, *arguments: str) -> str:
    python = os.environ.get("SPEEDBENCH_VLLM_PYTHON")
    assert python, "SPEEDBENCH_VLLM_PYTHON names the interpreter; `make test-engines`"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [python, "-c", program, *arguments]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=240).stdout


@pytest.mark.parametrize("model", ["target", "draft"])
def test_transformers_loads_float32_and_computes_what_the_definition_says(model: str, tmp_path: Path) -> None:
    folder = hf_folder(model, tmp_path)  # type: ignore[arg-type]
    told = json.loads(run(LOADED, str(folder), "Write a poem about winter.").splitlines()[-1])
    assert told["dtype"] == "torch.float32"
    np.testing.assert_allclose(told["logits"], Llama(folder).logits(told["ids"]), atol=2e-3)


def test_the_recipe_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    run(TRAINED, *map(str, folders))
    first, again = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == again
