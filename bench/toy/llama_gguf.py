"""A Llama in a Hugging Face folder as a gguf file, its byte-level BPE inside. Reads and writes files.

The names, and the order of the rows of the query and key projections, are those of llama.cpp's `llama` architecture: it
rotates neighbouring pairs where transformers rotates halves, so the rows of each head are interleaved.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import BenchError
from bench.toy.weights import read_weights

_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(folder: Path, path: Path) -> None:
    """Write the model of `folder` to `path`, weights as float32.

    Raises
    ------
    BenchError
        If the `gguf` package is not installed.
    """
    try:
        import gguf
    except ImportError:
        raise BenchError("the gguf package is not installed; pip install 'speedbench[llamacpp]'") from None
    config = json.loads((folder / "config.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(path, "llama")
    _add_shape(writer, config)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, folder, config, control=gguf.TokenType.CONTROL, normal=gguf.TokenType.NORMAL)
    for name, tensor in _tensors(read_weights(folder / "model.safetensors"), config).items():
        writer.add_tensor(name, np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, config: dict[str, Any]) -> None:
    writer.add_name("speedbench toy")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])


def _add_tokenizer(writer: Any, folder: Path, config: dict[str, Any], *, control: int, normal: int) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    ids: dict[str, int] = tokenizer["model"]["vocab"]
    ids |= {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens = sorted(ids, key=ids.__getitem__)
    writer.add_tokenizer_model("gpt2")
    # How the text is cut before it is merged: the pattern of GPT-2, which `ByteLevel` uses.
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if number in special else normal for number in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(settings["chat_template"])


def _tensors(weights: dict[str, NDArray[np.float32]], config: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Return the tensors under llama.cpp's names; the output matrix is the embedding's, so it has no tensor."""
    found = {
        "token_embd.weight": weights["model.embed_tokens.weight"],
        "output_norm.weight": weights["model.norm.weight"],
    }
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        for name, short in _LAYER_NAMES.items():
            tensor = weights[f"model.layers.{layer}.{name}.weight"]
            found[f"blk.{layer}.{short}.weight"] = _interleaved(tensor, heads[short]) if short in heads else tensor
    return found


def _interleaved(matrix: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """Return the rows of each head as (0, d/2, 1, d/2 + 1, ...), shape kept."""
    rows, columns = matrix.shape
    return matrix.reshape(num_heads, 2, rows // num_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
