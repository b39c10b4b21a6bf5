"""Every source, one line each.

Written out rather than discovered: the lines can be read, searched and type-checked. A test fails when a file of
`adapters/` is missing here.
"""

from __future__ import annotations

from sources.base import Source

QUALITATIVE: tuple[Source, ...] = ()
"""The sources of the qualitative split, in the order of the paper's Table 4."""

SOURCES: dict[str, Source] = {s.spec.name: s for s in QUALITATIVE}
"""All sources by name."""
