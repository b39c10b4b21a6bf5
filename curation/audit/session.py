"""One audit from its options to its results."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.audit.errors import AuditError
from curation.audit.index import BenchmarkIndex, load_index
from curation.audit.plan import Plan, make_plan
from curation.audit.results import Results, merge, write_prompts, write_results
from curation.audit.run import Job, pending_units, run_units, start
from curation.audit.scanning import use_fast
from curation.kernels import audit_fold, audit_hash
from curation.kernels.audit_rules import RULES
from sources.cache_root import cache_root

logger = logging.getLogger(__name__)

_SMALL = 32 << 20
"""Below so many bytes a second process costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `speedbench audit run`."""

    corpus: Sequence[str]
    benchmark: str
    out: Path
    text: Sequence[str] = ()
    rule: str = "adaptive"
    shard: tuple[int, int] = (0, 1)
    workers: int | None = None
    engine: str = "local"
    address: str | None = None
    kernel: str = "auto"
    semantic: bool = False
    embedder: str = "v1-offline"
    clean_text: str | None = None
    uncalibrated: bool = False
    clean: Path | None = None
    classes: Sequence[str] = ("exact", "format", "near")


def run_audit(request: Request) -> Results | None:
    """Run one audit, or one shard of it; return its results, or None for a shard of several.

    Raises
    ------
    AuditError
        If an option, the corpus or the folder cannot be used.
    """
    plan, index = prepare_run(request)
    if request.shard[1] > 1:
        return None
    if request.semantic:
        _run_semantic(request, plan, index)
    return merge_audit([request.out], request.out, request.clean, request.classes)


def prepare_run(request: Request) -> tuple[Plan, BenchmarkIndex]:
    """Plan an audit, run the units of its shard that are not done, and return what was looked for in what."""
    _refuse(request)
    rule, cache = RULES[request.rule], cache_root()
    index = load_index(request.benchmark, rule, cache)
    plan = make_plan(request.corpus, _settings(request, index))
    start(plan, request.out)
    write_prompts(request.out, index, rule.ngram)
    units = pending_units(plan, request.out, request.shard)
    job = Job(plan, str(cache / "audit" / index.key[:32]), str(request.out), _fast(request.kernel, plan))
    if request.engine == "ray":
        from curation.audit.ray_engine import run_on_ray

        run_on_ray(job, units, index.overlap, request.address)
    else:
        run_units(job, units, _workers(request.workers, plan), index.overlap)
    return plan, index


def _run_semantic(request: Request, plan: Plan, index: BenchmarkIndex) -> None:
    from curation.audit.semantic import run_semantic
    from curation.embedding import embed_texts, load_embedder
    from curation.recipe import load_recipe

    embedder = load_embedder(load_recipe(request.embedder).embedder)
    embedder.check()
    workers = _workers(request.workers, plan)
    run_semantic(
        plan,
        index,
        request.out,
        request.clean_text,
        lambda texts: embed_texts(list(texts), embedder, workers=workers),
        embedder.id,
    )


def merge_audit(folders: Sequence[Path], out: Path, clean: Path | None, classes: Sequence[str]) -> Results:
    """Put the shards of an audit together, write its results, and the cleaned corpus if `clean` names a folder."""
    from curation.audit.report import write_report

    results = merge(folders)
    write_results(out, results)
    write_report(out, results)
    if clean is not None:
        from curation.audit.clean import write_clean

        write_clean(clean, out, results, classes)
    return results


def _refuse(request: Request) -> None:
    if request.clean is not None and request.shard[1] > 1:
        raise AuditError("--clean needs all shards: give it to `speedbench audit merge`")
    if request.semantic and request.shard[1] > 1:
        raise AuditError("--semantic needs all shards: run it without --shard")
    if request.semantic and not (request.clean_text or request.uncalibrated):
        raise AuditError(
            "--semantic: the embedder is not calibrated; name text known to be clean with --clean-text, "
            "or say --uncalibrated"
        )


def _settings(request: Request, index: BenchmarkIndex) -> dict[str, object]:
    return {
        "benchmark": request.benchmark,
        "benchmark_sha256": index.digest,
        "rule": request.rule,
        "rule_source": RULES[request.rule].source,
        "text": list(request.text),
        "semantic": request.semantic,
        "normaliser": audit_fold.VERSION,
        "hash": audit_hash.VERSION,
        "unicode": audit_fold.unicode_version(),
    }


def _fast(kernel: str, plan: Plan) -> bool:
    if kernel == "numba":
        return True
    return kernel == "auto" and use_fast(sum(f.num_bytes for f in plan.files))


def _workers(asked: int | None, plan: Plan) -> int:
    if asked is not None:
        return asked
    return 1 if sum(f.num_bytes for f in plan.files) < _SMALL else os.cpu_count() or 1
