"""Every source, one line each.

Written out rather than discovered: the lines can be read, searched and type-checked. A test fails when a file of
`adapters/` is missing here.
"""

from __future__ import annotations

from sources.adapters import (
    chatrag_bench,
    cnn_dailymail,
    code_contests,
    coser,
    creative_writing,
    gsm8k,
    hle,
    humanevalpack,
    livecodebench,
    mcif,
    mmath,
    mmlu_pro,
    mt_bench,
    mt_bench_101,
    natural_questions,
    opus_100,
    rolebench,
    spec_bench,
    writingbench,
)
from sources.base import Source

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

SOURCES: dict[str, Source] = {s.spec.name: s for s in (*QUALITATIVE, *REFERENCE)}
"""All sources by name."""
