"""Sentences of six kinds from packages that any Debian machine with Python can have."""

from __future__ import annotations

import gettext
import gzip
import html
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

PACKAGES = (
    "debian-policy",
    "debian-reference-en",
    "debian-reference-ja",
    "debian-reference-zh-cn",
    "debmake-doc",
    "developers-reference-ja",
    "developers-reference-ru",
    "installation-guide-amd64",
    "libreoffice-l10n-th",
    "manpages",
    "manpages-dev",
    "manpages-ja",
    "manpages-ru",
    "manpages-zh",
    "perl-doc",
)
"""Debian packages whose files are read; fetched by name with apt, unpacked, not installed."""

LANGUAGES = ("en", "code", "zh", "ja", "th", "ru")
_SCRIPTS = {
    "zh": re.compile("[\u4e00-\u9fff]"),
    "ja": re.compile("[\u3040-\u30ff]"),
    "th": re.compile("[\u0e01-\u0e5b]"),
    "ru": re.compile("[\u0400-\u04ff]"),
}
_MIN_WORDS = {"en": 6, "code": 12, "zh": 10, "ja": 10, "th": 10, "ru": 5}
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u9fff]|[^\W_]+")
_MAX_CHARACTERS = 700
_MAX_BYTES = 24 << 20


def sentences(cache: Path) -> dict[str, list[str]]:
    """Return distinct sentences by language, each list in the order of its files."""
    root = _unpacked(cache)
    found: dict[str, dict[str, str]] = {name: {} for name in LANGUAGES}
    held = dict.fromkeys(LANGUAGES, 0)
    for language, text in _texts(root):
        for piece in _split(language, text):
            kind = language or _language(piece)
            if kind and held[kind] < _MAX_BYTES:
                words = _WORD.findall(piece.lower())
                if len(words) >= _MIN_WORDS[kind] and found[kind].setdefault(" ".join(words), piece) is piece:
                    held[kind] += len(piece.encode())
    return {name: list(texts.values()) for name, texts in found.items()}


def _unpacked(cache: Path) -> Path:
    root = cache / "packages"
    root.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        target = root / name
        if target.is_dir():
            continue
        subprocess.run(["apt-get", "download", "-qq", name], cwd=cache, check=True, capture_output=True)
        scratch = root / f".{name}"
        subprocess.run(["dpkg-deb", "-x", str(next(cache.glob(f"{name}_*.deb"))), str(scratch)], check=True)
        scratch.rename(target)
    return root


def _texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield language ("" where the script tells) and text of each file."""
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        if ".mo" in path.suffixes:
            yield from (("", text) for text in _catalogue(path))
        elif "/man/" in str(path) and path.suffix == ".gz":
            yield "", _without_macros(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
        elif path.suffix in (".html", ".txt", ".pod") or path.name.endswith((".txt.gz", ".html.gz")):
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            yield "", _without_tags(raw.decode("utf-8", "replace"))
    library = sysconfig.get_paths()
    size = 0
    for place in dict.fromkeys((library["stdlib"], library["purelib"])):
        for path in sorted(Path(place).rglob("*.py")):
            if size < 2 * _MAX_BYTES:
                yield "code", path.read_text("utf-8", "replace")
                size += path.stat().st_size


def _catalogue(path: Path) -> list[str]:
    with path.open("rb") as stream:
        catalogue: dict[str, str] = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
    return [text for text in catalogue.values() if isinstance(text, str)]


def _without_macros(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith((".", "'"))]
    return re.sub(r"\\f.|\\[-&|^]|\\\(..", "", "\n".join(lines))


def _without_tags(text: str) -> str:
    text = re.sub(r"(?is)<(script|style)\b.*?</\1>", " ", text)
    return html.unescape(re.sub(r"(?s)<[^>]*>", " ", text))


def _split(language: str, text: str) -> Iterator[str]:
    if language == "code":
        for block in re.split(r"\n(?=(?:    )?(?:async def|def|class) )", text):
            yield block.strip("\n")[:_MAX_CHARACTERS]
        return
    joined = re.sub(r"(?<=[\u3040-\u9fff])\s*\n\s*(?=[\u3040-\u9fff])", "", text)
    for piece in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n|\s{3,}", joined):
        cleaned = " ".join(piece.split())
        if cleaned:
            yield cleaned[:_MAX_CHARACTERS]


def _language(text: str) -> str:
    for name in ("ja", "th", "ru", "zh"):
        if 3 * len(_SCRIPTS[name].findall(text)) > len(text) * (1 if name == "ja" else 1.5):
            return name
    return "en" if text.isascii() and sum(c.isalpha() or c == " " for c in text) > 0.85 * len(text) else ""
