"""The toy pair on llama.cpp: acceptance, loops and ends of answers, by kind of text and by length of the prompt.

    python tests/perf/toy_pair.py DIST

DIST is a build with a qualitative split. Greedy, at most 128 tokens, three drafts. Prints one JSON object.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.gates import loops
from bench.prompts import load_chat_format
from bench.toy.files import gguf_file, hf_folder
from curation.load import read_config

MAX_TOKENS, DRAFT_LENGTH = 128, 3
SERVER = """
import sys
from pathlib import Path
from bench.embedded.options import EmbeddedOptions
from bench.embedded.server import start
draft = Path(sys.argv[2]) if sys.argv[2] else None
server, url = start(EmbeddedOptions(Path(sys.argv[1]), 0, draft, draft_length=3, ngram=int(sys.argv[3])))
print(url, flush=True)
sys.stdin.read()
"""


def answers(prompts: Iterable[Sequence[int]], model: Path, draft: Path | None, ngram: int = 0) -> list[dict[str, Any]]:
    """Return what llama.cpp says to each prompt, and its timings."""
    command = [sys.executable, "-c", SERVER, str(model), str(draft or ""), str(ngram)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        return [_asked(url, prompt) for prompt in prompts]


def _asked(url: str, prompt: Sequence[int]) -> dict[str, Any]:
    body = {"prompt": list(prompt), "n_predict": MAX_TOKENS, "temperature": 0.0, "return_tokens": True}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=300) as reply:
        value: dict[str, Any] = json.loads(reply.read())
        return value


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of some answers; the first token of each comes of the prefill, which is no step."""
    n = Counter(answers=len(found))
    for value in found:
        accepted = value["timings"].get("draft_n_accepted", 0)
        n.update(looping=loops(value["tokens"]), ended=value["stop_type"] == "eos")
        n.update(tokens=len(value["tokens"]), steps=len(value["tokens"]) - accepted - 1)
    decoded = n["tokens"] - n["answers"]
    return {
        "answers": n["answers"],
        "looping": n["looping"],
        "ended_by_themselves": n["ended"],
        "mean_tokens": round(n["tokens"] / n["answers"], 1),
        "tokens_per_step": round(decoded / n["steps"], 3),
    }


def main() -> None:
    """Measure and print."""
    rows = read_config(sys.argv[1], "qualitative", allow_placeholders=True).to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        chat = load_chat_format(hf_folder("target", cache), {})
        target, draft = (gguf_file(model, cache) for model in ("target", "draft"))  # type: ignore[arg-type]
        prompts = [(row["category"], chat.first_ids(row["turns"][0])) for row in rows]
        prompts = [(category, ids) for category, ids in prompts if len(ids) < 8192 - MAX_TOKENS]
        ids_only = [ids for _, ids in prompts]
        plain, drafted = answers(ids_only, target, None), answers(ids_only, target, draft)
        kinds = defaultdict(list)
        for (category, _), value in zip(prompts, drafted, strict=True):
            kinds[category].append(value)
        result = {
            "left_out_too_long": len(rows) - len(prompts),
            "draft": summary(drafted),
            "plain": summary(plain),
            "equal_with_and_without_draft": sum(
                a["tokens"] == b["tokens"] for a, b in zip(plain, drafted, strict=True)
            ),
            "ngram": summary(answers(ids_only, target, None, DRAFT_LENGTH)),
            "random_draft": summary(answers(ids_only, target, gguf_file("random_draft", cache))),
            "target_as_draft": summary(answers(ids_only, target, target)),
            "by_category": {category: summary(found) for category, found in sorted(kinds.items())},
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
