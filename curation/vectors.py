"""The vectors on disk: what was embedded once is never embedded again, and the vector that is kept is the truth.

A folder an embedder; in it shards, each written whole under a temporary name and then renamed, named by its content.
So two writers never meet in one file, and a process that is killed loses only the batch on its way. A shard that does
not match its digest is set aside and its texts are embedded again.

A shard is: the magic line; count and dimensions as two little-endian uint64; the 32-byte SHA-256 of each text; the
vectors, float32, row by row; the SHA-256 of all before it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

_MAGIC = b"speedbench vectors 1\n"
_HEADER = len(_MAGIC) + 16
_DIGEST = 32
_SUFFIX = ".vectors"


def text_key(text: str) -> bytes:
    """Return the 32 bytes by which a text's vector is kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorCache:
    """The vectors of one embedder."""

    def __init__(self, root: Path, embedder_id: str, dimensions: int) -> None:
        self.folder = root / embedder_id
        self.dimensions = dimensions

    def fill(self, places: Mapping[bytes, Sequence[int]], out: Vectors) -> dict[bytes, Sequence[int]]:
        """Write the kept vectors into the rows of `out` that `places` names; return what of `places` is not kept.

        Reads one shard at a time, so it needs no memory beside `out` and the largest shard. Where two shards hold one
        text, the first by name counts, whatever the order in which they were written.
        """
        missing = dict(places)
        for keys, vectors in self._shards() if missing else ():
            for key, vector in zip(keys, vectors, strict=True):
                at = missing.pop(key, None)
                if at is not None:
                    out[np.array(at)] = vector
        return missing

    def missing(self, places: Mapping[bytes, Sequence[int]]) -> dict[bytes, Sequence[int]]:
        """Return what of `places` is not kept."""
        left = dict(places)
        for keys, _ in self._shards() if left else ():
            for key in keys:
                left.pop(key, None)
        return left

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep the vectors of some texts, shape ``(len(keys), dimensions)``.

        Raises
        ------
        ValueError
            If the shape is another, or a vector is not finite.
        """
        if vectors.shape != (len(keys), self.dimensions):
            raise ValueError(f"vectors must have shape {(len(keys), self.dimensions)}, got {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ValueError("vectors must be finite")
        if not keys:
            return
        header = _MAGIC + np.array(vectors.shape, "<u8").tobytes()
        body = header + b"".join(keys) + np.ascontiguousarray(vectors, "<f4").tobytes()
        digest = hashlib.sha256(body)
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with scratch.open("wb") as file:
                file.write(body)
                file.write(digest.digest())
            os.replace(scratch, self.folder / f"{digest.hexdigest()[:32]}{_SUFFIX}")
        finally:
            scratch.unlink(missing_ok=True)

    def _shards(self) -> Iterator[tuple[list[bytes], Vectors]]:
        """Yield keys and vectors of each whole shard, in the order of the names."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            data = path.read_bytes()
            body = memoryview(data)[:-_DIGEST]
            if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[-_DIGEST:]:
                logger.warning("%s: damaged; set aside, its texts are embedded again", path)
                path.replace(path.with_suffix(".damaged"))
                continue
            count, dimensions = (int(n) for n in np.frombuffer(body, "<u8", 2, len(_MAGIC)))
            at = _HEADER + count * _DIGEST
            keys = [data[i : i + _DIGEST] for i in range(_HEADER, at, _DIGEST)]
            yield keys, np.frombuffer(body, "<f4", count * dimensions, at).reshape(count, dimensions)
