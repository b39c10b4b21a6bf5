"""What was read of a unit and what was not."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RowCounts:
    """What was read and what was not.

    Attributes
    ----------
    rows
        Rows met, documents or not; of a text file, one.
    documents, num_bytes
        Documents scanned and their UTF-8 bytes.
    skipped
        Rows that were not scanned: reason to number and first row, from 1 within the unit. The reason `unreadable: …`
        means that the rest of the file was not read.
    repaired
        Rows that were scanned with replacement characters, likewise.
    """

    rows: int = 0
    documents: int = 0
    num_bytes: int = 0
    skipped: dict[str, tuple[int, int]] = field(default_factory=dict)
    repaired: dict[str, tuple[int, int]] = field(default_factory=dict)

    def skip(self, reason: str, row: int, count: int = 1) -> None:
        """Count rows that were not scanned."""
        before, first = self.skipped.get(reason, (0, row))
        self.skipped[reason] = (before + count, min(first, row))

    def repair(self, reason: str, row: int) -> None:
        """Count a row that was scanned with replacement characters."""
        before, first = self.repaired.get(reason, (0, row))
        self.repaired[reason] = (before + 1, min(first, row))
