"""XML read element by element, without entities, document types or anything fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sources.errors import SourceError

_CHUNK_BYTES = 1 << 16


class _Rows:
    """Builds the outermost elements of one tag as the parser meets them; the rest of the document is passed over."""

    def __init__(self, row_tag: str) -> None:
        self._row_tag = row_tag
        self._builder: TreeBuilder | None = None
        self._depth = 0
        self.finished: list[Element] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._builder is None and tag == self._row_tag:
            self._builder = TreeBuilder()
        if self._builder is not None:
            self._builder.start(tag, attributes)
            self._depth += 1

    def data(self, text: str) -> None:
        if self._builder is not None:
            self._builder.data(text)

    def end(self, tag: str) -> None:
        if self._builder is None:
            return
        self._builder.end(tag)
        self._depth -= 1
        if self._depth == 0:
            self.finished.append(self._builder.close())
            self._builder = None


def xml_elements(path: Path, row_tag: str, file: str) -> Iterator[Element]:
    """Yield the elements of one tag, outermost first; only one chunk of the file and one element are held.

    Raises
    ------
    SourceError
        If the file is not well formed, or has a document type: entities are declared there, and a source needs none.
    """
    rows = _Rows(row_tag)
    parser = _parser(rows, file)
    with path.open("rb") as stream:
        while True:
            chunk = stream.read(_CHUNK_BYTES)
            try:
                parser.Parse(chunk, not chunk)
            except expat.ExpatError as error:
                reason = expat.ErrorString(error.code)
                raise SourceError(f"{file}:{error.lineno}: not XML: {reason} in column {error.offset + 1}") from None
            yield from rows.finished
            rows.finished.clear()
            if not chunk:
                return


def _parser(rows: _Rows, file: str) -> expat.XMLParserType:
    def refuse(*_: Any) -> int:
        raise SourceError(f"{file}: has a document type or an entity of its own, which is not read; remove it")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = rows.start
    parser.CharacterDataHandler = rows.data
    parser.EndElementHandler = rows.end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    return parser
