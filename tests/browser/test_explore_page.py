"""The explore page in a real browser: Debian's chromium, headless, with a script that does what a reader does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from curation.explore import explore_dist
from tests.curation.explore_build import HOSTILE, RIGHT_TO_LEFT, explore_build, id_of

pytestmark = pytest.mark.browser

CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
]

# What a reader does; `look` notes what is then on the page under a name.
READER = """
const noted = {};
const $ = (selector) => document.querySelector(selector);
const send = (element, event) => element.dispatchEvent(event);
const press = (key) =>
  send(document.activeElement, new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const choose = (facet, text) => {
  const select = $(`select[name=${facet}]`);
  select.value = [...select.options].find((option) => option.textContent.startsWith(text)).value;
  send(select, new Event("input", { bubbles: true }));
};
const type = (text) => {
  $("#search").value = text;
  send($("#search"), new Event("input", { bubbles: true }));
};
const look = (name, extra = {}) => {
  const [count, detail] = [$("#count").textContent, $("#detail").innerText];
  noted[name] = { count, detail, listed: $("#list").children.length, ...extra };
};
window.addEventListener("load", async () => {
  try {
    STEPS
  } catch (error) {
    noted.error = String(error.stack);
  }
  const result = document.createElement("pre");
  result.id = "noted";
  result.textContent = JSON.stringify(noted);
  document.body.append(result);
});
"""

STEPS = """
    look("opened");
    choose("category", "math"); look("math");
    choose("language", "no ("); look("norwegian");
    $("#filters").reset(); await new Promise((done) => setTimeout(done, 50)); look("reset");
    choose("difficulty", "none stated"); look("no difficulty");
    $("#filters").reset(); await new Promise((done) => setTimeout(done, 50));
    document.body.focus(); press("/"); look("slash", { focus: document.activeElement.id });
    type("hens LEGS three"); look("search");
    press("ArrowDown"); look("into the list", { focus: document.activeElement.textContent });
    document.activeElement.click(); look("opened by key", { focus: document.activeElement.id, hash: location.hash });
    look("pictured", { circles: document.querySelectorAll("#detail figure circle").length });
    $("#detail .near button").click(); look("neighbour", { focus: document.activeElement.id });
    press("Escape"); look("escaped", { focus: document.activeElement.id });
    type("zebra"); look("nothing found");
    type(""); press("ArrowDown"); press("ArrowDown");
    look("second", { focus: document.activeElement.textContent });
    type("window.pwned"); $("#list button").click();
    const turn = $("#detail .turn").textContent;
    look("hostile", { turn, pwned: window.pwned ?? null, images: document.images.length });
    type("middle"); $("#list button").click(); look("cut");
    look("layout", { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth });
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium")
    assert found, "chromium is absent: `make test-browser` installs it"
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("explore")
    explore_dist(explore_build(root / "out").full, root / "page.html")
    return root / "page.html"


def read(chromium: str, page: Path, steps: str, *options: str, fragment: str = "") -> dict:
    """Return what a reader noted on a page."""
    script = READER.replace("STEPS", steps)
    acted = page.with_name("acted.html")
    acted.write_text(page.read_text("utf-8").replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    profile = page.parent / "profile"
    command = [chromium, *CHROMIUM, f"--user-data-dir={profile}", *options, "--dump-dom", f"{acted.as_uri()}{fragment}"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    noted = json.loads(unescape(re.search(r'<pre id="noted">(.*?)</pre>', shown, re.DOTALL)[1]))
    assert "error" not in noted, noted["error"]
    return noted


@pytest.fixture(scope="module")
def noted(chromium, page) -> dict:
    return read(chromium, page, STEPS, "--window-size=1200,900")


def test_filters_narrow_and_reset_widens(noted):
    counts = {name: (seen["count"], seen["listed"]) for name, seen in noted.items()}
    assert counts["opened"] == ("6 of 6 rows", 6)
    assert counts["math"] == ("2 of 6 rows", 2)
    assert counts["norwegian"] == ("1 of 6 rows", 1)
    assert counts["reset"] == ("6 of 6 rows", 6)
    assert counts["no difficulty"] == ("4 of 6 rows", 4)


def test_search_wants_every_word_and_no_case(noted):
    assert noted["search"]["count"] == "1 of 6 rows"
    assert noted["nothing found"]["count"] == "0 of 6 rows"


def test_the_keyboard_is_enough(noted):
    assert noted["slash"]["focus"] == "search"
    assert "How many legs have three hens?" in noted["into the list"]["focus"]
    assert noted["opened by key"]["focus"] == "detail"
    assert noted["opened by key"]["hash"] == f"#qualitative%2F{id_of('gsm8k:g1')}"
    assert noted["escaped"]["focus"] in ("search", "")
    assert noted["second"]["listed"] == 6
    assert noted["second"]["focus"] != noted["into the list"]["focus"]


def test_a_row_shows_its_text_its_neighbours_and_what_was_dropped_for_it(noted):
    detail = noted["opened by key"]["detail"]
    assert "How many legs have three hens?" in detail
    assert "0.985 math, not chosen gsm8k:g2: Count the legs of four hens." in detail
    assert "gsm8k:copy: dedup_near, near_duplicate, score 0.875" in detail
    assert noted["pictured"]["circles"] == 1
    assert RIGHT_TO_LEFT in noted["neighbour"]["detail"], "a chosen neighbour leads to its row"


def test_hostile_text_is_read_and_not_run(noted):
    assert noted["hostile"]["turn"] == HOSTILE.replace("\u202e", "")
    assert noted["hostile"]["pwned"] is None
    assert noted["hostile"]["images"] == 0


def test_what_is_left_out_of_a_long_turn_is_said(noted):
    assert "code points left out]" in noted["cut"]["detail"]


def test_nothing_is_wider_than_the_window(noted):
    assert noted["layout"]["overflow"] <= 0


def test_a_phone_shows_the_page_in_one_column_and_a_link_opens_its_row(chromium, page):
    steps = """
    const listing = $("#listing").getBoundingClientRect(), detail = $("#detail").getBoundingClientRect();
    look("phone", { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
                    below: detail.top >= listing.bottom });
    """
    fragment = f"#qualitative%2F{id_of('gsm8k:g3')}"
    seen = read(chromium, page, steps, "--window-size=390,844", fragment=fragment)["phone"]
    assert seen["width"] <= 520
    assert seen["overflow"] <= 0
    assert seen["below"]
    assert RIGHT_TO_LEFT in seen["detail"]


@pytest.mark.parametrize(("setting", "is_dark"), [(0, True), (1, False)])
def test_the_page_follows_the_readers_choice_of_dark_or_light(chromium, page, setting, is_dark):
    steps = """
    const colours = ["backgroundColor", "color"].map((name) => getComputedStyle(document.body)[name]);
    look("colours", { colours });
    """
    seen = read(chromium, page, steps, f"--blink-settings=preferredColorScheme={setting}")["colours"]["colours"]
    paper, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in seen)
    assert (paper < ink) is is_dark
    assert abs(paper - ink) > 400, "dark on light, or light on dark"
