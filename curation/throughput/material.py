"""Opened sources read into passages, and the facts that their rows state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from curation.stages.base import Drop
from curation.throughput.rows import SourceFacts
from sources.base import Rejected
from sources.origins import ResolvedFiles, open_source
from sources.passages import Passage, PassageSource

STAGE = "read"


def read_passages(opened: Iterable[tuple[PassageSource, ResolvedFiles]], drops: list[Drop]) -> Iterator[Passage]:
    """Yield the passages of all sources, one in memory at a time; rejected rows and absent files go to `drops`."""
    for source, resolved in opened:
        rejected: list[Rejected] = []
        for item in source.parse(open_source(source.spec, resolved, rejected.append)):
            if isinstance(item, Rejected):
                rejected.append(item)
            else:
                yield item
        name = source.spec.name
        drops += [Drop(f"{name}:{a.path}", STAGE, "the file is absent", a.remedy) for a in resolved.absent]
        rejected.sort(key=lambda r: (r.file, r.line, r.reason))
        drops += [Drop(f"{name}:{r.file}:{r.line}", STAGE, r.reason) for r in rejected]


def source_facts(sources: Iterable[PassageSource], revisions: Mapping[str, str]) -> dict[str, SourceFacts]:
    """Return what the rows of each source state, by the name of the spec; "" for a revision that is not pinned."""
    return {s.spec.name: SourceFacts.of(s, revisions.get(s.spec.name, "")) for s in sources}
