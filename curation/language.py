"""The language that langdetect sees in a text, the same in every process, order and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from curation.processes import one_thread_pool

HEAD_CHARS = 600
"""Code points of a text that are looked at: more do not change the verdict, and each costs time."""

# Written Norwegian is one language to the detector, whichever norm a source declares.
_SAME = {"nb": "no", "nn": "no"}


@dataclass(frozen=True, slots=True)
class Detected:
    """The likeliest language, as a BCP 47 tag, and its probability in [0, 1]; "" and 0 where nothing tells."""

    language: str
    probability: float


def detect_language(text: str, seed: int) -> Detected:
    """Return the likeliest language of the first `HEAD_CHARS` of a text.

    langdetect draws at random (Shuyo, 2010). Each call starts from the seed anew, so that no verdict depends on the
    texts before it; the seed is the detector's own, so that no other user of the package can change it.
    """
    from langdetect.lang_detect_exception import LangDetectException

    detector = _factory(seed).create()
    detector.append(text[:HEAD_CHARS])
    try:
        best = detector.get_probabilities()
    except LangDetectException:
        return Detected("", 0.0)
    if not best:
        return Detected("", 0.0)
    language, _, region = best[0].lang.partition("-")
    return Detected(f"{language}-{region.upper()}" if region else language, min(float(best[0].prob), 1.0))


def detect_languages(
    texts: Sequence[str], seed: int, *, workers: int = 1, parallel_from: int = 2_000
) -> list[Detected]:
    """Return `detect_language` of each text, by `workers` processes if there are `parallel_from` texts or more."""
    heads = [text[:HEAD_CHARS] for text in texts]
    if workers <= 1 or len(heads) < max(parallel_from, 1):
        return [detect_language(head, seed) for head in heads]
    with one_thread_pool(workers) as pool:
        chunk = max(1, len(heads) // (8 * workers))
        return list(pool.map(partial(detect_language, seed=seed), heads, chunksize=chunk))


def same_language(a: str, b: str) -> bool:
    """Tell whether two BCP 47 tags name one language, whatever their script and region."""
    return primary(a) == primary(b)


@lru_cache(maxsize=1024)
def can_detect(language: str) -> bool:
    """Tell whether langdetect knows a language, given as a BCP 47 tag."""
    return primary(language) in {primary(profile.name) for profile in _profiles()}


def primary(tag: str) -> str:
    """Return the language of a BCP 47 tag, without script and region."""
    language = tag.replace("_", "-").partition("-")[0].lower()
    return _SAME.get(language, language)


@lru_cache(maxsize=4)
def _factory(seed: int) -> Any:
    from langdetect.detector_factory import DetectorFactory

    factory = DetectorFactory()
    factory.load_json_profile([profile.read_text("utf-8") for profile in _profiles()])
    factory.set_seed(seed)
    return factory


@lru_cache(maxsize=1)
def _profiles() -> list[Path]:
    """Return langdetect's files, one a language, by name: its own loader takes them as the file system lists them."""
    from langdetect.detector_factory import PROFILES_DIRECTORY

    return sorted(path for path in Path(PROFILES_DIRECTORY).iterdir() if path.is_file())
