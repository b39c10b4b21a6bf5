"""How often each expert of a mixture-of-experts model was chosen, layer by layer."""

from __future__ import annotations

from typing import Any

from bench.inprocess.protocol import SettingError


class ExpertCounts:
    """Counts the experts that the routers of a model choose, the prefill's apart from those of the steps after it.

    It reads the routers that the library itself reads for `output_router_logits`; that switch as such is not set, for
    it also computes a loss, which generation has no use for. Every token that is fed is counted, rejected drafts too.
    """

    def __init__(self, model: Any) -> None:
        self._top_k = _top_k(model)
        self._routers = _routers(model)
        self.in_prefill = True
        self._counts: dict[bool, list[list[int]]] = {}
        self.reset()
        for layer, (module, index) in enumerate(self._routers):
            module.register_forward_hook(self._hook(layer, index))

    def reset(self) -> None:
        """Count from zero."""
        self._counts = {phase: [[] for _ in self._routers] for phase in (False, True)}

    def to_json(self) -> dict[str, Any]:
        """Return ``layers`` and ``prefill_layers``: for each layer with experts, how often each was chosen."""
        return {"layers": self._counts[False], "prefill_layers": self._counts[True], "top_k": self._top_k}

    def _hook(self, layer: int, index: int) -> Any:
        def count(_module: Any, _args: Any, output: Any) -> None:
            import torch

            logits = output[index] if isinstance(output, (tuple, list)) else output
            chosen = _chosen(output, logits, self._top_k)
            counts = torch.bincount(chosen.flatten(), minlength=logits.shape[-1]).tolist()
            layers = self._counts[self.in_prefill]
            layers[layer] = [a + b for a, b in zip(layers[layer] or [0] * len(counts), counts, strict=True)]

        return count


def _chosen(output: Any, logits: Any, top_k: int) -> Any:
    """Return the indices that a router gives with its logits (some choose within groups), else the top ones."""
    import torch

    if isinstance(output, (tuple, list)):
        for value in output:
            if torch.is_tensor(value) and not value.is_floating_point() and value.shape[-1] == top_k:
                return value
    return logits.topk(top_k, dim=-1).indices


def _top_k(model: Any) -> int:
    config = model.config
    for name in ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts"):
        value = getattr(config, name, None)
        if value:
            return int(value)
    raise SettingError(f"--experts: {type(config).__name__} does not say how many experts a token takes")


def _routers(model: Any) -> list[tuple[Any, int]]:
    """Return the routers in the order of the layers, and where in their output the logits are."""
    recorder = next(
        (
            module._can_record_outputs["router_logits"]
            for module in model.modules()
            if "router_logits" in (getattr(module, "_can_record_outputs", None) or {})
        ),
        None,
    )
    if recorder is None:
        raise SettingError(f"--experts: transformers records no router of {type(model).__name__}")
    kind, index = getattr(recorder, "target_class", recorder), getattr(recorder, "index", 0)
    part = getattr(recorder, "layer_name", None) or ""
    return [(module, index) for name, module in model.named_modules() if isinstance(module, kind) and part in name]
