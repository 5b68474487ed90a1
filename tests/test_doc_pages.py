"""Pages: one for every metric, all within reach of the first, none too long, API complete."""

import math
import re
from collections import deque
from pathlib import Path

import pytest

import rightly
from rightly.metrics import METRICS, Metric

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DIRECTIONS = {True: "lower", False: "higher", None: "neither"}


def read(page: Path) -> str:
    return page.read_text(encoding="utf8")


def describe_range(metric: Metric) -> str:
    return " to ".join("infinity" if math.isinf(end) else f"{end:g}" for end in metric.range)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_page_that_agrees_with_its_record(name):
    metric, text = METRICS[name], read(DOCS / "metrics" / f"{name}.md")
    unit = "%: shown times 100" if metric.unit == "%" else metric.unit
    inputs = "(confidence, correct)" if metric.inputs == "confidence" else "(probabilities, labels)"
    direction = f"{DIRECTIONS[metric.lower_is_better]} is better"
    assert f"| {direction} | {describe_range(metric)} | {unit} | {inputs} |" in text
    assert text.lower().startswith(f"# {metric.title.lower()}\n\nname: `{name}`. ")
    assert "```text" in text and "## Caveats" in text


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_in_the_list(name):
    metric = METRICS[name]
    cells = f"`{name}` | {DIRECTIONS[metric.lower_is_better]} | {describe_range(metric)} |"
    assert f"({name}.md) | {cells} {metric.meaning} |" in read(DOCS / "metrics" / "index.md")


def test_every_page_is_on_the_site_and_within_reach_of_the_first():
    site = read(DOCS.parent / "mkdocs.yml")
    assert [page for page in PAGES if f" {page.relative_to(DOCS)}" not in site] == []
    todo, reached = deque([DOCS / "index.md"]), set()
    while todo:
        page = todo.popleft()
        if page not in reached and page.is_file():
            reached.add(page)
            links = re.findall(r"\]\(([\w/.-]+\.md)", read(page))
            todo += [(page.parent / link).resolve() for link in links]
    assert set(PAGES) - reached == set()


def test_no_page_but_the_appendix_is_long():
    lengths = {str(page.relative_to(DOCS)): len(read(page).splitlines()) for page in PAGES}
    too_long = {page: n for page, n in lengths.items() if n > 250}
    assert {page for page in too_long if not page.startswith("appendix/")} == set()


def test_the_reference_has_every_public_name():
    text = "\n".join(map(read, (DOCS / "api").glob("*.md")))
    shown = set(re.findall(r"^::: rightly\.([\w.]+)$", text, re.M))
    # METRICS and Metric stand with the metrics, of which a whole module is shown.
    expected = {
        f"metrics.{name}" if name in ("METRICS", "Metric") else name for name in rightly.__all__
    }
    assert expected - {"metrics"} <= shown and "metrics.definitions" in shown
