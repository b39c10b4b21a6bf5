"""The pictures of a card: the same bytes for the same facts, and none where there is nothing to show."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import subprocess
import sys

import matplotlib
from PIL import Image

from cards.plots import draw_plots, plot_facts
from tests.cards.made_up_facts import FACTS, MATH, QUALITATIVE

NAMES = ["plots/isl.png", "plots/diversity.png", "plots/languages.png", "plots/difficulty.png"]
DIGESTS = (
    "import hashlib, sys; sys.path.insert(0, '.');"
    "from cards.plots import draw_plots; from tests.cards.made_up_facts import FACTS;"
    "print(*(hashlib.sha256(p).hexdigest() for p in draw_plots(FACTS).values()))"
)


def test_another_process_and_another_taste_give_the_same_bytes():
    here = [hashlib.sha256(picture).hexdigest() for picture in draw_plots(FACTS).values()]
    with matplotlib.rc_context({"font.size": 30, "figure.facecolor": "red", "savefig.dpi": 30}):
        assert [hashlib.sha256(picture).hexdigest() for picture in draw_plots(FACTS).values()] == here
    there = subprocess.run([sys.executable, "-c", DIGESTS], check=True, capture_output=True, text=True).stdout.split()
    assert there == here


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were():
    with matplotlib.rc_context({"font.size": 30}):
        draw_plots(FACTS)
        assert matplotlib.rcParams["font.size"] == 30


def test_every_picture_is_a_png_without_a_date_and_has_words():
    pictures = draw_plots(FACTS)
    assert list(pictures) == NAMES
    for data in pictures.values():
        image = Image.open(io.BytesIO(data))
        image.load()
        assert set(image.info) <= {"dpi"}
        assert len(image.convert("L").getcolors()) > 2, "not blank"
    assert all(fact.alt for fact in plot_facts(tuple(pictures)))


def test_what_is_not_known_is_not_drawn():
    silent = dataclasses.replace(MATH, languages=(("", 3),), difficulties=(("", 3),))
    facts = dataclasses.replace(FACTS, categories=(), configs=(dataclasses.replace(QUALITATIVE, categories=(silent,)),))
    assert list(draw_plots(facts)) == ["plots/isl.png"]


def test_another_figure_gives_another_picture():
    changed = dataclasses.replace(MATH, difficulties=(("easy", 2), ("hard", 1)))
    facts = dataclasses.replace(FACTS, configs=(dataclasses.replace(QUALITATIVE, categories=(changed,)),))
    assert draw_plots(facts)["plots/difficulty.png"] != draw_plots(FACTS)["plots/difficulty.png"]
