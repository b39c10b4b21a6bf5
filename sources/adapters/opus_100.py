"""OPUS-100: sentence pairs to be translated, English-centric, 100 languages (Zhang et al., 2020).

One config a language pair (`de-en`, ..., and 15 zero-shot pairs without English, as `de-fr`); a row holds
`translation`, an object with one text a language code. The single turn is an instruction of ours that names both
languages in words, and the text of one side.

Rules
-----
- Direction: one of the two, drawn by a seeded hash of the record's id, so that about half of the texts are in each
  language of a pair and every sentence is asked for once.
- The language is that of the text that is given. OPUS-100's codes are two-letter ISO 639-1, all registered in BCP 47,
  and are kept: `no`, `sh`, `zh` and the like name a macrolanguage, since the source does not say which of its members
  (Bokmål or Nynorsk, script of Serbo-Croatian or Chinese) a sentence is in; `nb` and `nn` are pairs of their own.
- The sub-category is `translation <from>-<to>`.
- The config is the folder of the file. A row whose object lacks one of the config's two languages is rejected, and so
  is a code without a name in our table.
- There is no native id: it is the digest of the config and the translation. A pair that stands twice in a config is
  rejected the second time.
- The card states no licence, so the text is given by reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, canonical_id, seeded_choice
from sources.licenses import UNKNOWN

SPEC = SourceSpec(
    name="opus_100",
    title="OPUS-100",
    repo="Helsinki-NLP/opus-100",
    revision="805090dc28bf78897da9641cdf08b61287580df9",
    license=UNKNOWN,
    files={"test": FileSpec("*/test-*.parquet", "parquet", {"translation": "struct?"})},
    feeds=("multilingual",),
    citation="""@inproceedings{zhang2020improving,
  title     = {Improving Massively Multilingual Neural Machine Translation and Zero-Shot Translation},
  author    = {Zhang, Biao and Williams, Philip and Titov, Ivan and Sennrich, Rico},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  year      = {2020}
}""",
)

INSTRUCTION = "Translate the text below from {source} into {target}. Give the translation alone.\n\n"

# fmt: off
LANGUAGES = {
    "af": "Afrikaans", "am": "Amharic", "an": "Aragonese", "ar": "Arabic", "as": "Assamese", "az": "Azerbaijani",
    "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "br": "Breton", "bs": "Bosnian", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "dz": "Dzongkha", "el": "Greek", "en": "English",
    "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "fy": "Western Frisian", "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician",
    "gu": "Gujarati", "ha": "Hausa", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "ig": "Igbo", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ku": "Kurdish",
    "ky": "Kyrgyz", "li": "Limburgish", "lt": "Lithuanian", "lv": "Latvian", "mg": "Malagasy", "mk": "Macedonian",
    "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese",
    "nb": "Norwegian Bokmål", "ne": "Nepali", "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian",
    "oc": "Occitan", "or": "Odia", "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "rw": "Kinyarwanda", "se": "Northern Sami", "sh": "Serbo-Croatian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "ta": "Tamil", "te": "Telugu", "tg": "Tajik", "th": "Thai", "tk": "Turkmen", "tr": "Turkish", "tt": "Tatar",
    "ug": "Uyghur", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "wa": "Walloon",
    "xh": "Xhosa", "yi": "Yiddish", "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu",
}
# fmt: on
"""OPUS-100's codes, which are BCP 47 tags, and what our instruction calls them."""


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield every sentence pair in one direction."""
    seen: set[str] = set()
    for row in files.rows("test"):
        config = PurePosixPath(row.file).parent.name
        pair = tuple(config.split("-"))
        reason = _fault(row.get("translation"), config, pair)
        if reason:
            yield row.reject(reason)
            continue
        record = _record(row, config, pair)
        if record.native_id in seen:
            yield row.reject("the same pair was read before")
        else:
            seen.add(record.native_id)
            yield record


def _fault(translation: dict[str, Any] | None, config: str, pair: tuple[str, ...]) -> str:
    if len(pair) != 2 or pair[0] == pair[1]:
        return f"folder {config!r} names no pair of languages"
    unnamed = [code for code in pair if code not in LANGUAGES]
    if unnamed:
        return f"language {unnamed[0]!r} has no name in our table"
    if translation is None:
        return "no translation"
    for code in pair:
        text = translation.get(code)
        if not isinstance(text, str) or not text.strip():
            return f"the {code} text is empty or not a text"
    return ""


def _record(row: Row, config: str, pair: tuple[str, ...]) -> Record:
    texts = {code: row["translation"][code] for code in pair}
    native_id = canonical_id({"config": config, "translation": texts})
    given, wanted = seeded_choice((pair, pair[::-1]), f"{SPEC.name}-direction", native_id)
    instruction = INSTRUCTION.format(source=LANGUAGES[given], target=LANGUAGES[wanted])
    return Record(
        SPEC.name,
        native_id,
        "multilingual",
        turns=(instruction + texts[given],),
        text=texts[given],
        sub_category=f"translation {given}-{wanted}",
        language=given,
        template_id=f"{SPEC.name}/v1",
    )
