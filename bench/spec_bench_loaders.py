"""Loads the models of a Spec-Bench checkout (github.com/hemingkx/Spec-Bench) for `python -m bench.inprocess specbench`.

There each method's model is made in the script's own main block; here each is a function that returns the model, its
tokenizer and the further arguments of the method's forward function. The checkout is on the import path. Standard
library only until a loader runs, in the checkout's own environment.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

Loaded = tuple[Any, Any, dict[str, Any]]


def _causal(folder: str, dtype: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, **_placed(torch, dtype)).eval()


def _placed(torch: Any, dtype: str) -> dict[str, Any]:
    return {"torch_dtype": getattr(torch, dtype), "low_cpu_mem_usage": True, "device_map": "auto"}


def _tokenizer(folder: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def load_plain(model: str, *, dtype: str = "float16") -> Loaded:
    """Return the target alone, for `evaluation.inference_baseline:baseline_forward`."""
    return _causal(model, dtype), _tokenizer(model), {}


def load_sps(model: str, *, draft: str, dtype: str = "float16") -> Loaded:
    """Return target and drafter, for `evaluation.inference_sps:sps_forward`.

    The checkout's decoding loop takes the place of that of transformers, under the name that this version calls it by.
    """
    from transformers import GenerationMixin

    decoding = import_module("model.sps.decoding").assisted_decoding
    hidden = "_assisted_decoding"
    setattr(GenerationMixin, hidden if hasattr(GenerationMixin, hidden) else "assisted_decoding", decoding)
    return _causal(model, dtype), _tokenizer(model), {"drafter": _causal(draft, dtype)}


def load_eagle(model: str, *, draft: str, tree: str = "mc_sim_7b_63", dtype: str = "float16") -> Loaded:
    """Return EAGLE's model over the target, for `evaluation.inference_eagle:ea_forward`, greedy."""
    import torch

    made = import_module("model.eagle.ea_model").EaModel.from_pretrained(
        base_model_path=model, ea_model_path=draft, **_placed(torch, dtype)
    )
    choices = getattr(import_module("model.eagle.choices"), tree)
    return made.eval(), made.get_tokenizer(), {"tree_choices": choices, "logits_processor": None}


def load_medusa(
    model: str, *, draft: str, tree: str = "mc_sim_7b_63", heads: int = 4, dtype: str = "float16"
) -> Loaded:
    """Return Medusa's model over the target, for `evaluation.inference_medusa:medusa_forward`; `draft`: its heads."""
    import torch

    made = import_module("model.medusa.medusa_model").MedusaModel.from_pretrained(
        draft, model, medusa_num_heads=heads, **_placed(torch, dtype)
    )
    choices = getattr(import_module("model.medusa.medusa_choices"), tree)
    return made.eval(), made.get_tokenizer(), {"medusa_choices": choices}


def load_pld(model: str, *, dtype: str = "float16") -> Loaded:
    """Return the target with the checkout's search by prompt lookup, for `evaluation.inference_pld:pld_forward`."""
    made = _causal(model, dtype)
    made.greedy_search_pld = import_module("model.pld.pld").greedy_search_pld.__get__(made, type(made))
    return made, _tokenizer(model), {}


def load_rest(
    model: str, *, datastore: str, num_draft: int = 64, max_token_span: int = 16, dtype: str = "float16"
) -> Loaded:
    """Return REST's model and its datastore, for `evaluation.inference_rest:rest_forward`.

    Parameters
    ----------
    datastore
        Index file that the checkout's `model/rest/datastore` writes; read by its package `draftretriever`.
    max_token_span
        Longest suffix that is looked up; the shortest is 2, the longest is tried first.
    """
    import torch

    made = import_module("model.rest.rest.model.rest_model").RestModel.from_pretrained(model, **_placed(torch, dtype))
    reader = import_module("draftretriever").Reader(index_file_path=datastore)
    spans = list(range(max_token_span, 1, -1))
    return made.eval(), made.get_tokenizer(), {"datastore": reader, "num_draft": num_draft, "token_spans": spans}


def load_lookahead(model: str, *, level: int = 5, window: int = 7, guess: int = 7, dtype: str = "float16") -> Loaded:
    """Return the target under Lookahead decoding, for `evaluation.inference_lookahead:lookahead_forward`.

    The environment must hold `USE_LADE=1` ahead of the start; the sizes are those of Spec-Bench's own script.
    """
    lade = import_module("model.lade.utils")
    lade.augment_all()
    lade.config_lade(LEVEL=level, WINDOW_SIZE=window, GUESS_SET_SIZE=guess, DEBUG=0, USE_FLASH=0, DIST_WORKERS=1)
    return load_plain(model, dtype=dtype)
