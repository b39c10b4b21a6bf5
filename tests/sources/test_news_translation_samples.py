"""The parquet samples of CNN/DailyMail and OPUS-100 are what their script writes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).with_name("make_news_translation_samples.py")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def _read(made: dict[str, Any], *parts: str) -> pa.Table:
    # By its own path: a folder named `key=value` must not become a column.
    return pq.ParquetFile(made["SAMPLES"].joinpath(*parts)).read()


def test_news_samples_are_those_of_the_script(made: dict[str, Any]) -> None:
    assert _read(made, "cnn_dailymail", "3.0.0", "test-00000-of-00001.parquet").equals(made["articles"]())


def test_translation_samples_are_those_of_the_script(made: dict[str, Any]) -> None:
    folders = {p.name for p in (made["SAMPLES"] / "opus_100").iterdir()}
    assert folders == set(made["TRANSLATIONS"])
    for config in made["TRANSLATIONS"]:
        table = _read(made, "opus_100", config, "test-00000-of-00001.parquet")
        assert table.equals(made["translations"](config)), config


def test_articles_have_the_length_of_short_news(made: dict[str, Any]) -> None:
    assert len(made["ARTICLES"]) >= 14
    assert all(60 <= len(article.split()) <= 200 for article in made["ARTICLES"])
