"""Run by vLLM's interpreter: validates requests with vLLM's own models; one JSON object in, a list of faults out."""

import importlib
import json
import sys


def fault(module: str, name: str, values: dict[str, object]) -> str:
    """What the model says against the values, "" if nothing."""
    model = getattr(importlib.import_module(module), name)
    try:
        parsed = model.model_validate(values) if hasattr(model, "model_validate") else model(**values)
    except Exception as error:  # noqa: BLE001 - whatever a model says against a request is its fault's text
        return f"{name}: {error}"
    lost = [key for key, value in values.items() if key in vars(parsed) and not _same(getattr(parsed, key), value)]
    return f"{name}: changed {lost}" if lost else ""


def _same(parsed: object, value: object) -> bool:
    """Whether the model holds what was sent; nested models are compared by the keys that were sent."""
    if isinstance(value, dict) and not isinstance(parsed, dict):
        return all(_same(getattr(parsed, key), inner) for key, inner in value.items())
    return parsed == value or not isinstance(value, (int, float, str, bool))


json.dump([fault(*ask) for ask in json.load(sys.stdin)], sys.stdout)
