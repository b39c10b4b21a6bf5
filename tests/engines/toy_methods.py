"""A package of a Spec-Bench checkout's shape, with real loops of draft and verification, as tests write it out.

Each loop is greedy and runs on as the methods there do: past the end of text and past the budget.
"""

from pathlib import Path

DRAFT_LENGTH = 3

_SOURCE = '''
"""Toy methods: a baseline, a merged prefill, token first, and a tree of two branches."""
import torch
from transformers import AutoModelForCausalLM, DynamicCache

K = 3


class Words:
    def __init__(self, end):
        self.eos_token_id = end

    def decode(self, ids, skip_special_tokens=True):
        return " ".join(map(str, ids))


def load(folder, drafter, end):
    models = [AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32).eval() for name in (folder, drafter)]
    return models[0], Words(end), {"drafter": models[1]}


def keep(cache, places):
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, places], layer.values[:, :, places]


def drafted(drafter, ids, first=None):
    """K greedy tokens of the drafter, the first given or its best."""
    for n in range(K):
        token = drafter(input_ids=ids).logits[0, -1].argmax() if n or first is None else first
        ids = torch.cat([ids, token.view(1, 1)], dim=1)
    return ids[:, -K:]


def matches(drafts, own):
    return int((drafts == own).long().cumprod(0).sum())


def baseline_forward(inputs, model, tokenizer, max_new_tokens, drafter, temperature=0.0, do_sample=False):
    sampling = {"temperature": temperature} if do_sample else {}
    ids = model.generate(
        inputs.input_ids,
        attention_mask=inputs.attention_mask,
        do_sample=do_sample,
        max_new_tokens=max_new_tokens,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=0,
        **sampling,
    )
    new_token = ids.shape[1] - inputs.input_ids.shape[1]
    return ids, new_token, new_token, [1] * new_token


def wasteful_forward(inputs, model, tokenizer, max_new_tokens, drafter):
    """Runs the target more often than it says."""
    for _ in range(2):
        model(input_ids=inputs.input_ids)
    return baseline_forward(inputs, model, tokenizer, max_new_tokens, drafter)


def merged_forward(inputs, model, tokenizer, max_new_tokens, drafter):
    """The forward that reads the prompt checks drafts too."""
    ids, start, cache, lengths = inputs.input_ids, inputs.input_ids.shape[1], DynamicCache(), []
    while True:
        drafts = drafted(drafter, ids)
        fed = torch.cat([ids[:, cache.get_seq_length():], drafts], dim=1)
        own = model(input_ids=fed, past_key_values=cache, use_cache=True).logits[0, -K - 1:].argmax(-1)
        n = matches(drafts[0], own[:K])
        ids = torch.cat([ids, own[None, : n + 1]], dim=1)
        keep(cache, slice(0, ids.shape[1] - 1))
        lengths.append(n + 1)
        new = ids[0, start:].tolist()
        if tokenizer.eos_token_id in new or len(new) >= max_new_tokens:
            return ids, len(new), len(lengths) - 1, lengths


def first_forward(input_ids, model, tokenizer, max_new_token, drafter, max_steps=512):
    """The prefill's token is delivered with the drafts of the first step."""
    ids, start, cache, lengths = input_ids.clone(), input_ids.shape[1], DynamicCache(), []
    free = model(input_ids=ids, past_key_values=cache, use_cache=True).logits[0, -1:].argmax(-1)
    for step in range(max_steps):
        known = torch.cat([ids, free[None]], dim=1)
        drafts = drafted(drafter, known)
        fed = torch.cat([free[None], drafts], dim=1)
        own = model(input_ids=fed, past_key_values=cache, use_cache=True).logits[0].argmax(-1)
        n = matches(drafts[0], own[:K])
        ids, free = torch.cat([known, drafts[:, :n]], dim=1), own[n : n + 1]
        keep(cache, slice(0, ids.shape[1]))
        lengths.append(n + 1)
        new = ids[0, start:].tolist()
        if tokenizer.eos_token_id in new or len(new) > max_new_token:
            break
    return ids, len(new), step, lengths, "a time"


def tree_forward(inputs, model, tokenizer, max_new_tokens, drafter):
    """Two branches from the drafter's two best first tokens, verified in one forward under a tree mask."""
    ids, start, cache, lengths = inputs.input_ids, inputs.input_ids.shape[1], DynamicCache(), []
    free = model(input_ids=ids, past_key_values=cache, use_cache=True).logits[0, -1:].argmax(-1)
    paths = [list(range(K + 1)), [0, *range(K + 1, 2 * K + 1)]]
    while True:
        known, past = torch.cat([ids, free[None]], dim=1), ids.shape[1]
        branches = [drafted(drafter, known, first) for first in drafter(input_ids=known).logits[0, -1].topk(2).indices]
        fed = torch.cat([free[None], *branches], dim=1)
        mask = torch.full((2 * K + 1, past + 2 * K + 1), torch.finfo(torch.float32).min)
        mask[:, :past] = 0
        for path in paths:
            for n, node in enumerate(path):
                mask[node, [past + above for above in path[: n + 1]]] = 0
        depth = torch.tensor([[past + n for n in (*range(K + 1), *range(1, K + 1))]])
        own = model(
            input_ids=fed, attention_mask=mask[None, None], position_ids=depth, past_key_values=cache, use_cache=True
        ).logits[0].argmax(-1)
        counts = [matches(fed[0, path[1:]], own[path[:-1]]) for path in paths]
        path, n = paths[counts[1] > counts[0]], max(counts)
        kept = path[: n + 1]
        ids, free = torch.cat([ids, fed[:, kept]], dim=1), own[path[n]].view(1)
        keep(cache, [*range(past), *(past + node for node in kept)])
        lengths.append(n + 1)
        new = ids[0, start:].tolist()
        if tokenizer.eos_token_id in new or len(new) >= max_new_tokens:
            return ids, len(new), len(lengths), lengths
'''


def write_checkout(folder: Path) -> Path:
    """Write the package and return the checkout."""
    package = folder / "evaluation"
    package.mkdir(parents=True)
    (package / "inference_toy.py").write_text(_SOURCE)
    return folder
