"""The page of a result in a real browser: on a phone, in the dark, in print, and with names that would take it over."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from bench.report.page import write_report
from tests.bench.report_runs import make_results
from tests.browser.test_explore_page import CHROMIUM, chromium  # noqa: F401

pytestmark = pytest.mark.browser

# The page stands in a frame, for the window of a headless browser is never as narrow as a phone.
FRAME = """<!DOCTYPE html><body style="margin:0">
<iframe src="{src}" style="border:0;width:{width}px;height:900px"></iframe>
<script>
addEventListener("message", (event) => {{
  const result = document.createElement("pre");
  result.id = "noted";
  result.textContent = event.data;
  document.body.append(result);
}});
</script>"""

READER = """
const $$ = (selector) => [...document.querySelectorAll(selector)];
addEventListener("load", async () => {
  const noted = {};
  try {
    STEPS
  } catch (error) {
    noted.error = String(error.stack);
  }
  parent.postMessage(JSON.stringify(noted), "*");
});
"""

LOOK = """
    noted.width = innerWidth;
    noted.overflow = document.documentElement.scrollWidth - innerWidth;
    noted.pwned = window.pwned ?? null;
    noted.images = document.images.length;
    noted.banner = document.querySelector(".banner")?.getBoundingClientRect().bottom ?? null;
    noted.headline = document.querySelector("h1").getBoundingClientRect().top;
    const outside = (svg) => {
      const whole = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter((text) => {
        const box = text.getBoundingClientRect();
        return box.left < whole.left - 0.5 || box.right > whole.right + 0.5 || box.bottom > whole.bottom + 0.5;
      }).map((text) => text.textContent);
    };
    noted.outside = $$("figure > svg").flatMap(outside);
    noted.letters = Math.min(...$$("figure > svg").map((svg) => 11 * svg.getBoundingClientRect().width / 380));
    noted.charts = $$("figure > svg").length;
    $$("details").forEach((details) => { details.open = true; });
    noted.opened = document.documentElement.scrollWidth - innerWidth;
    const rgb = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const luminance = (colour) => {
      const [r, g, b] = rgb(colour).map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
      return (high + 0.05) / (low + 0.05);
    };
    const paper = getComputedStyle(document.body).backgroundColor;
    const worst = (selector, property) =>
      Math.min(...$$(selector).map((element) => contrast(getComputedStyle(element)[property], paper)));
    noted.contrast = {
      text: worst("h1, h2, p, td, th, a, summary, .definition, .badge, .banner, caption", "color"),
      labels: worst("figure > svg text", "fill"),
      lines: worst("figure > svg .line, figure > svg .m", "stroke"),
    };
    noted.paper = luminance(paper);
"""

SORT = """
    const details = $$("details").find((each) => each.textContent.includes("figures by category"));
    details.open = true;
    const button = [...details.querySelectorAll("th button")].find((each) => each.textContent.startsWith("ttft_s"));
    const column = [...button.closest("tr").children].indexOf(button.parentElement);
    const values = () => [...details.querySelectorAll("tbody tr")].map((row) => Number(row.cells[column].dataset.v));
    button.click(); noted.up = values();
    button.click(); noted.down = values();
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("report")
    made = make_results(root / "runs")
    for name, results in {"full": list(made.values()), "hostile": [made["hostile"]]}.items():
        write_report(results, root / f"{name}.html")
    return {name: root / f"{name}.html" for name in ("full", "hostile")}


def read(chromium: str, page: Path, steps: str, *options: str, width: int = 1200) -> dict:  # noqa: F811
    """Return what a reader noted on a page of a width."""
    acted, frame = page.with_name("acted.html"), page.with_name("frame.html")
    script = READER.replace("STEPS", steps)
    acted.write_text(page.read_text("utf-8").replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    frame.write_text(FRAME.format(src=acted.as_uri(), width=width), "utf-8")
    command = [chromium, *CHROMIUM, f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width + 20},1000"]
    shown = subprocess.run(
        [*command, *options, "--dump-dom", frame.as_uri()], check=True, capture_output=True, text=True, timeout=120
    ).stdout
    noted = json.loads(unescape(re.search(r'<pre id="noted">(.*?)</pre>', shown, re.DOTALL)[1]))
    assert "error" not in noted, noted["error"]
    return noted


@pytest.mark.parametrize("name", ["full", "hostile"])
def test_a_phone_shows_the_page_without_sideways_scrolling(chromium, pages, name):  # noqa: F811
    seen = read(chromium, pages[name], LOOK, width=360)
    assert seen["width"] == 360
    assert seen["overflow"] <= 0
    assert seen["opened"] <= 0, "tables scroll by themselves, whatever is unfolded"
    assert seen["charts"] >= 4
    assert seen["outside"] == [], "no label leaves its chart"
    assert seen["letters"] >= 9, "letters of charts can be read"


@pytest.mark.parametrize(("setting", "is_dark"), [(0, True), (1, False)])
def test_everything_can_be_read_in_the_dark_and_in_the_light(chromium, pages, setting, is_dark):  # noqa: F811
    seen = read(chromium, pages["full"], LOOK, f"--blink-settings=preferredColorScheme={setting}")
    assert (seen["paper"] < 0.2) is is_dark
    assert seen["contrast"]["text"] >= 4.5
    assert seen["contrast"]["labels"] >= 4.5
    assert seen["contrast"]["lines"] >= 3.0
    assert seen["overflow"] <= 0
    assert seen["outside"] == []


def test_hostile_names_are_read_and_not_run_and_the_caution_stands_first(chromium, pages):  # noqa: F811
    seen = read(chromium, pages["hostile"], LOOK)
    assert seen["pwned"] is None
    assert seen["images"] == 0
    assert seen["banner"] <= seen["headline"]


def test_an_unfolded_table_sorts_by_its_numbers(chromium, pages):  # noqa: F811
    seen = read(chromium, pages["full"], SORT)
    assert len(seen["up"]) == 3
    assert seen["up"] == sorted(seen["up"])
    assert seen["down"] == sorted(seen["down"], reverse=True)


def test_the_page_prints(chromium, pages, tmp_path):  # noqa: F811
    pdf = tmp_path / "page.pdf"
    command = [chromium, *CHROMIUM, f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer"]
    subprocess.run(
        [*command, f"--print-to-pdf={pdf}", pages["full"].as_uri()], check=True, capture_output=True, timeout=120
    )
    assert len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())) >= 3
