"""How often `fit_to_length` misses, and what it costs beside one encoding of its results.

Prints `fits`, `misses`, `naive_misses` (of decode(encode(text)[:n]), which loses characters and tokens), and
`time_ratio_8k` and `time_ratio_32k`: seconds of the fits over seconds of one tiktoken encoding of their results.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import time
from collections.abc import Callable
from importlib import import_module, resources

import numpy as np

from curation.kernels.length import fit_to_length
from curation.recipe import TokenizerConfig
from curation.tokenizer import Tokenizer, load_tokenizer

LANGUAGES = (
    "ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "gu", "he", "hi", "hu",
    "id", "it", "ja", "ko", "mk", "nl", "no", "pl", "pt", "ru", "ta", "th", "tr", "vi", "zh-cn",
)  # fmt: skip
MODULES = ("argparse", "asyncio.base_events", "datetime", "decimal", "inspect", "pathlib", "subprocess", "typing")
PROSE = "the of and to in that was his he it with is for as had you not be her on at by which have or from this him"
EMOJI = ("🧭", "👩‍🚀", "🏳️‍🌈", "🇩🇪", "👍🏽", "😀", "❤️", " ok", " see you", "!", " ", "lol", "\n")
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\u3000", "\u00a0", "\x85", "x", "foo", "if:", "9")
TAILS = ("", "\n\nGo on from here.", " x")
NAIVE_TOKENS_BEHIND = 32
HEADS = ("", "Read this.\n\n", "Frage: ")


def words(rng: np.random.Generator, choices: list[str] | tuple[str, ...], size: int, joint: str = "") -> str:
    return joint.join(np.asarray(choices, dtype=object)[rng.integers(0, len(choices), size)])


def language(rng: np.random.Generator, code: str, chars: int) -> str:
    """Words drawn from the n-grams by which langdetect knows a language."""
    profile = json.loads((resources.files("langdetect") / "profiles" / code).read_text("utf-8"))["freq"]
    grams = [g.strip() for g in sorted(profile) if len(g) == 3 and g.strip()] or [
        g for g in sorted(profile) if g.strip()
    ]
    spaced = code not in ("ja", "th", "zh-cn")
    parts = ["".join(grams[i] for i in rng.integers(0, len(grams), rng.integers(1, 4))) for _ in range(chars // 5)]
    stops = rng.random(len(parts))
    marks = (", ", ". ") if spaced else ("，", "。")
    return "".join(
        p + (marks[0] if s < 0.06 else marks[1] if s < 0.12 else " " if spaced else "")
        for p, s in zip(parts, stops, strict=True)
    )


def corpora(chars: int) -> dict[str, str]:
    """Return deterministic texts of at least `chars` code points each."""
    rng = np.random.default_rng(20260401)
    code = "\n".join(inspect.getsource(import_module(m)) for m in MODULES)
    vocabulary = sorted({w for w in code.replace("_", " ").split() if w.isalpha()})
    prose = words(rng, PROSE.split() * 8 + vocabulary, chars // 4, " ").replace(" the that ", ".\n\nThe ")
    texts = {
        "prose": prose,
        "code": code * math.ceil(chars / len(code)),
        "emoji": words(rng, EMOJI, chars),
        "whitespace": words(rng, SPACES, chars),
    }
    texts |= {code: language(rng, code, chars) for code in LANGUAGES}
    return texts


def fits(tokenizer: Tokenizer, texts: dict[str, str], total: int) -> dict[str, int]:
    """Fit `total` random windows to lengths log-uniform in 16 to 2,048; count wrong ones."""
    rng = np.random.default_rng(7)
    names = sorted(texts)
    misses = naive = padded = 0
    for i in range(total):
        text = texts[names[i % len(names)]]
        n = round(2 ** rng.uniform(4, 11))
        start = int(rng.integers(0, len(text) - 8 * n))
        source = text[start : start + 8 * n]
        head, tail = HEADS[i % 3], TAILS[i // 3 % 3]
        fitted = fit_to_length(tokenizer, n, head=head, body=source, tail=tail)
        ids = tokenizer.encode_ordinary(fitted.text)
        whole = fitted.text.startswith(head + source[: fitted.body_chars]) and fitted.text.endswith(tail)
        misses += len(ids) != n or not whole or "\ufffd" in fitted.text
        padded += fitted.pad_tokens > 0
        # The first n ids of a text do not depend on what stands far behind them.
        cut = tokenizer.encode_ordinary(source[: fitted.body_chars + 16 * NAIVE_TOKENS_BEHIND])[:n]
        cut_text = tokenizer.decode_bytes(cut).decode("utf-8", "replace")  # type: ignore[attr-defined]
        naive += len(tokenizer.encode_ordinary(cut_text)) != len(cut) or "\ufffd" in cut_text
    return {"misses": misses, "naive_misses": naive, "padded": padded}


def seconds(function: Callable[[], object]) -> float:
    before = time.perf_counter()
    function()
    return time.perf_counter() - before


def time_ratio(tokenizer: Tokenizer, texts: dict[str, str], n: int, total: int) -> tuple[float, int]:
    """Return seconds of `total` fits over seconds of encoding the results once, and the misses."""
    names = sorted(texts)
    fit_s = encode_s = 0.0
    misses = 0
    for i in range(total):
        body = texts[names[i % len(names)]]
        body = body[(i * 97) % 1_000 :]
        results = []
        fit_s += seconds(
            lambda b=body, r=results: r.append(  # type: ignore[misc]
                fit_to_length(tokenizer, n, head="Read this.\n\n", body=b, tail="\n\nGo on from here.")
            )
        )
        ids: list[list[int]] = []
        encode_s += seconds(lambda t=results[0].text, r=ids: r.append(tokenizer.encode_ordinary(t)))  # type: ignore[misc]
        misses += len(ids[0]) != n
    return fit_s / encode_s, misses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fits", type=int, default=100_000)
    parser.add_argument("--long-fits", type=int, default=200)
    args = parser.parse_args()
    tokenizer = load_tokenizer(TokenizerConfig())
    texts = corpora(260_000)
    began = time.perf_counter()
    counts = fits(tokenizer, texts, args.fits)
    ratio_8k, missed_8k = time_ratio(tokenizer, texts, 8_000, args.long_fits)
    ratio_32k, missed_32k = time_ratio(tokenizer, texts, 32_000, args.long_fits)
    report = {
        "fits": args.fits + 2 * args.long_fits,
        "misses": counts["misses"] + missed_8k + missed_32k,
        "time_ratio_8k": round(ratio_8k, 3),
        "time_ratio_32k": round(ratio_32k, 3),
        "naive_misses": counts["naive_misses"],
        "padded": counts["padded"],
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
