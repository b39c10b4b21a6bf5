"""Sources read into records and passages: every file through one seam, every row that was lost with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from curation.errors import RecipeError
from curation.recipe import Recipe
from curation.stages.base import Drop
from sources.base import Files, Record, Rejected, Source
from sources.origins import Origin, ResolvedFiles, open_source, resolve
from sources.passages import Passage, PassageSource
from sources.registry import SOURCES

STAGE = "read"

SourceT = TypeVar("SourceT", bound=Source | PassageSource)
ItemT = TypeVar("ItemT", Record, Passage)


@dataclass(frozen=True, slots=True)
class OpenSource(Generic[SourceT]):
    """A source of either split, and where its files lie."""

    source: SourceT
    resolved: ResolvedFiles

    @property
    def absent(self) -> tuple[Drop, ...]:
        """A ledger row for each file that the origin does not have."""
        name = self.source.spec.name
        return tuple(Drop(f"{name}:{a.path}", STAGE, "the file is absent", a.remedy) for a in self.resolved.absent)


AnyOpen = OpenSource[Source] | OpenSource[PassageSource]
"""An opened source of either split."""


def open_sources(sources: Iterable[SourceT], origin: Origin, *, allow_short: bool) -> tuple[OpenSource[SourceT], ...]:
    """Resolve the files of all sources before a row of any is read.

    Raises
    ------
    SourceError
        If a file is absent and `allow_short` is false.
    """
    return tuple(OpenSource(s, resolve(origin, s.spec, allow_short=allow_short)) for s in sources)


def chosen_sources(recipe: Recipe, offered: Sequence[SourceT]) -> tuple[SourceT, ...]:
    """Return the sources of the recipe's list that a split can use; all of them where it has none.

    Raises
    ------
    RecipeError
        If the recipe names a source that is not registered.
    """
    unknown = sorted(set(recipe.sources) - set(SOURCES))
    if unknown:
        raise RecipeError(f"recipe {recipe.name}: sources: no source {unknown[0]!r}; see `speedbench sources list`")
    return tuple(s for s in offered if not recipe.sources or s.spec.name in recipe.sources)


def require_sources(sources: Sequence[Source | PassageSource], origin: Origin, *, allow_short: bool) -> None:
    """Refuse, before a byte is fetched, if any source of the build cannot be read; one report of all that cannot.

    Raises
    ------
    SourceError
        Names every source that is gated, moved or out of reach, with what to do.
    """
    from sources.access import check_access, require_access
    from sources.fetch import HubOrigin

    if isinstance(origin, HubOrigin):
        specs = list({s.spec.name: s.spec for s in sources}.values())
        require_access(check_access(specs, origin), allow_short=allow_short)


def file_digests(opened: Iterable[AnyOpen]) -> dict[str, dict[str, str]]:
    """Return source -> path -> SHA-256 of all files, for the manifest and the key of what is made of them."""
    return {o.source.spec.name: dict(o.resolved.digests) for o in opened}


def read_records(opened: Iterable[OpenSource[Source]]) -> tuple[list[Record], list[Drop]]:
    """Parse all sources; return their records, and a ledger row for each absent file and rejected row."""
    drops: list[Drop] = []
    return [record for each in opened for record in _items(each, each.source.parse, drops)], drops


def read_passages(opened: Iterable[OpenSource[PassageSource]], drops: list[Drop]) -> Iterator[Passage]:
    """Yield the passages of all sources, one in memory at a time; lost rows go to `drops`."""
    for each in opened:
        yield from _items(each, each.source.parse, drops)


def _items(
    each: OpenSource[Any], parse: Callable[[Files], Iterator[ItemT | Rejected]], drops: list[Drop]
) -> Iterator[ItemT]:
    name = each.source.spec.name
    rejected: list[Rejected] = []
    for item in parse(open_source(each.source.spec, each.resolved, rejected.append)):
        if isinstance(item, Rejected):
            rejected.append(item)
        else:
            yield item
    drops += each.absent
    rejected.sort(key=lambda r: (r.file, r.line, r.reason))
    drops += [Drop(f"{name}:{r.file}:{r.line}", STAGE, r.reason) for r in rejected]


def revisions(opened: Iterable[AnyOpen]) -> Mapping[str, str]:
    """Return name -> revision of each source: of the spec or the lock, "" while it is not pinned."""
    from sources.lock import source_revision

    return {o.source.spec.name: source_revision(o.source.spec) for o in opened}
