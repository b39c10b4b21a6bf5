"""Every source, one line each.

Written out rather than discovered: the lines can be read, searched and type-checked. A test fails when a file of
`adapters/` is missing here.
"""

from __future__ import annotations

from sources.adapters import (
    bamboo,
    chatrag_bench,
    cnn_dailymail,
    code_contests,
    coser,
    creative_writing,
    gsm8k,
    gutenberg,
    hle,
    humanevalpack,
    livecodebench,
    long_code_arena,
    mcif,
    mmath,
    mmlu_pro,
    mt_bench,
    mt_bench_101,
    natural_questions,
    opus_100,
    repobench_java,
    repobench_python,
    rolebench,
    spec_bench,
    stackselect,
    textsort,
    writingbench,
)
from sources.base import Source
from sources.passages import PassageSource

QUALITATIVE: tuple[Source, ...] = (
    Source(mt_bench.SPEC, mt_bench.parse),
    Source(gsm8k.SPEC, gsm8k.parse),
    Source(natural_questions.SPEC, natural_questions.parse),
    Source(hle.SPEC, hle.parse),
    Source(livecodebench.SPEC, livecodebench.parse),
    Source(code_contests.SPEC, code_contests.parse),
    Source(humanevalpack.SPEC, humanevalpack.parse),
    Source(rolebench.SPEC, rolebench.parse),
    Source(coser.SPEC, coser.parse),
    Source(writingbench.SPEC, writingbench.parse),
    Source(creative_writing.SPEC, creative_writing.parse),
    Source(mt_bench_101.SPEC, mt_bench_101.parse),
    Source(mmlu_pro.SPEC, mmlu_pro.parse),
    Source(mmath.SPEC, mmath.parse),
    Source(opus_100.SPEC, opus_100.parse),
    Source(mcif.SPEC, mcif.parse),
    Source(chatrag_bench.SPEC, chatrag_bench.parse),
    Source(cnn_dailymail.SPEC, cnn_dailymail.parse),
)
"""The sources of the qualitative split, in the order of the paper's Table 4."""

REFERENCE: tuple[Source, ...] = (Source(spec_bench.SPEC, spec_bench.parse),)
"""What is published and compared with, but gives no candidates."""

THROUGHPUT: tuple[PassageSource, ...] = (
    PassageSource(bamboo.SPEC, "high_entropy", bamboo.parse),
    PassageSource(gutenberg.SPEC, "high_entropy", gutenberg.parse),
    PassageSource(writingbench.SPEC, "high_entropy", writingbench.passages),
    PassageSource(stackselect.SPEC, "mixed", stackselect.parse),
    PassageSource(hle.SPEC, "mixed", hle.passages),
    PassageSource(long_code_arena.SPEC, "low_entropy", long_code_arena.parse),
    PassageSource(repobench_python.SPEC, "low_entropy", repobench_python.parse),
    PassageSource(repobench_java.SPEC, "low_entropy", repobench_java.parse),
    PassageSource(textsort.SPEC, "low_entropy", textsort.parse),
)
"""The sources of the throughput split, in the order of the paper's Table 5; HLE and WritingBench feed both splits."""

_ALL: tuple[Source | PassageSource, ...] = (*THROUGHPUT, *QUALITATIVE, *REFERENCE)

SOURCES: dict[str, Source | PassageSource] = {s.spec.name: s for s in _ALL}
"""All sources by name; one that feeds both splits as its qualitative entry."""
