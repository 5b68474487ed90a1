"""The report: what it says is what the arrays say, and it works in a browser."""

import dataclasses
import re

import numpy as np
import pytest
from PIL import Image
from rightly.reporting.html.verdict import outcome, summary, sure_and_wrong, verdict
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import rightly
from rightly.cli import main
from rightly.decisions import operating_point
from rightly.evaluation.results import Bootstrap, Result
from rightly.predictions.parquet import read_image_names
from rightly.predictions.store import Block, Store
from rightly.reporting import html as report
from rightly.reporting.html.page import render
from rightly.reporting.html.study import THRESHOLDS, accepted, class_lines, worst
from tests.browser import chromium, console_errors
from tests.conftest import make
from tests.predictions.shards import asked

EVIL = '<script>alert("x")</script> & </style>'


def rows_of(value=0.1, p=1.0, names=("ece", "brier", "ks", "auroc", "aurc")):
    return {
        name: Result("x", "a", name, value, 0, value - 0.01, value + 0.01, p, p) for name in names
    }


def a_set(n=400, name="a", p=1.0, change=-0.05, seed=0):
    rng = np.random.default_rng(seed)
    predicted, labels = rng.integers(0, 3, n), rng.integers(0, 3, n)
    right = rng.random(n) < 0.7
    labels[right] = predicted[right]
    before = rng.uniform(0.4, 1, n)
    return report.TestSet(
        name, before, 0.9 * before, predicted, labels, rows_of(), rows_of(), rows_of(change, p)
    )


def a_study(**changes):
    one = a_set()
    one = dataclasses.replace(one, examples=[report.Example(row) for row in worst(one)])
    rows = [Result(x, "a", m, 0.1, 0) for x in ("uncalibrated", "ts") for m in ("brier", "auroc")]
    made = report.Made("rightly report", {"rightly": "0"}, {"cal.npz": "ab"}, 0, Bootstrap())
    study = report.Study("it", "ts", 100, [one], rows, "uncalibrated", (), made)
    return dataclasses.replace(study, **changes)


def test_the_share_of_sure_and_wrong_is_counted():
    share = sure_and_wrong(np.array([0.95, 0.99, 0.9, 0.2]), np.array([True, False, False, True]))
    assert (share.count, share.wrong, share.share) == (2, 1, 0.5)
    assert share.low < 0.5 < share.high
    assert sure_and_wrong(np.array([0.5]), np.array([True])).count == 0


@pytest.mark.parametrize(
    ("brier", "ece", "expected"),
    [
        ((-0.1, 0.01), (-0.1, 0.2), "better"),
        ((0.1, 0.01), (0.1, 0.01), "worse"),
        ((0.1, 0.01), (-0.1, 0.01), "mixed"),
        ((-0.1, 0.3), (0.1, 0.3), "same"),
        ((-0.1, float("nan")), (0.1, 0.3), "same"),
    ],
)
def test_the_outcome_follows_the_tests(brier, ece, expected):
    changes = {
        name: Result("x", "a", name, value, 0, p=p)
        for name, (value, p) in (("brier", brier), ("ece", ece))
    }
    assert outcome(dataclasses.replace(a_set(), changes=changes)) == expected


def test_too_few_samples_are_said_to_be_too_few():
    few = verdict(a_set(n=60, p=0.001))
    assert few.outcome == "few" and "collect more" in few.sentences[-1]
    assert summary([few]) == "Too few samples to tell on a."


def test_the_summary_names_what_helped_and_what_did_not():
    helped, same = verdict(a_set(p=0.01)), verdict(a_set(name="b", p=0.5))
    text = summary([helped, same])
    assert text.startswith("Calibration helped on a; no detectable difference on b.")
    assert "on average too low by" in text
    assert summary([helped, dataclasses.replace(helped, name="c")]).startswith(
        "Calibration helped on both test sets."
    )


def test_verdicts_say_plain_numbers():
    one = a_set()
    said = verdict(one)
    sure = one.before > 0.9
    share = 100 * (sure & ~one.correct).sum() / sure.sum()
    assert said.headline.startswith(f"{share:.0f} % of predictions above 0.9 are wrong")
    assert said.headline.endswith("none (there are no such predictions).")  # 0.9 * before


def test_the_slider_counts_what_a_threshold_accepts():
    one = a_set()
    found = accepted(one.before, one.correct)
    for k in (0, 37, 50, 99, 100):
        point = operating_point(one.before, one.correct, float(THRESHOLDS[k]))
        assert found.count[k] / 400 == pytest.approx(point.coverage)
        if found.count[k]:
            assert found.right[k] / found.count[k] == pytest.approx(point.accuracy)


def test_class_lines_are_means_by_predicted_class():
    one = a_set()
    study = a_study(class_names=("ant", "bee", "cow"))
    lines = class_lines(study, one)
    of = one.predicted == 1
    assert [line.name for line in lines] == ["ant", "bee", "cow"]
    assert lines[1].count == of.sum()
    assert lines[1].accuracy == pytest.approx(one.correct[of].mean())
    assert lines[1].gap == pytest.approx(one.after[of].mean() - one.correct[of].mean())
    assert len(class_lines(study, one, most=2)) == 2


def test_the_worst_mistakes_are_wrong_and_in_order():
    one = a_set()
    rows = worst(one)
    assert not one.correct[rows].any()
    assert (np.diff(one.after[rows]) <= 0).all()
    assert one.after[rows[0]] == one.after[~one.correct].max()


def test_user_text_is_escaped_everywhere():
    one = dataclasses.replace(a_set(name=EVIL), examples=[report.Example(0, EVIL)])
    rows = [Result(x, EVIL, "brier", 0.1, 0) for x in ("uncalibrated", EVIL)]
    made = report.Made(EVIL, {EVIL: EVIL}, {EVIL: EVIL}, 0, Bootstrap())
    study = report.Study(
        EVIL, EVIL, 9, [one], rows, "uncalibrated", [EVIL], made, [EVIL] * 3, [EVIL]
    )
    page = render(study)
    assert page.count("<script") == 2 and page.count("</style>") == 1
    assert "&lt;script&gt;" in page


def test_a_set_without_mistakes_or_with_one_class_is_drawn():
    n = 300
    same = np.zeros(n, dtype=np.int64)
    one = report.TestSet(
        "all right", np.full(n, 0.99), np.full(n, 0.9), same, same, rows_of(), rows_of(), rows_of()
    )
    page = render(a_study(sets=[one]))
    assert "every prediction is right" in page and "nan" not in page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report as a user makes it, and the arrays it is made from."""
    folder = tmp_path_factory.mktemp("report")
    sets = {name: make(n=400, seed=seed) for name, seed in (("cal", 0), ("ind", 1), ("blur", 2))}
    for name, (predictions, labels) in sets.items():
        named = rightly.Predictions(
            predictions.logits,
            predictions.view_logits,
            view_names=predictions.view_names,
            class_names=[f"kind {k}" for k in range(10)],
        )
        rightly.save(folder / f"{name}.npz", named, labels)
    arguments = ["report", str(folder / "cal.npz"), "--out", str(folder / "r.html")]
    for name in ("ind", "blur"):
        arguments += ["--on", f"{name} set={folder / name}.npz"]
    assert main([*arguments, "--title", "the model"]) == 0
    return folder / "r.html", sets


def test_the_page_needs_nothing_else(page):
    text = page[0].read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', text) and "http" not in text.split("<body")[1]
    assert "default-src 'none'" in text
    for words in (
        "of predictions above 0.9 are wrong",
        "sha256",
        "seeds",
        "--title",
        "forward pass",
    ):
        assert words in text


def cells(browser, selector):
    return [
        x.get_attribute("textContent") for x in browser.find_elements(By.CSS_SELECTOR, selector)
    ]


def test_the_page_works_in_a_browser(page):
    path, sets = page
    fitted = rightly.calibrator("rightly").fit(*sets["cal"])
    with chromium() as browser:
        browser.get(path.as_uri())
        assert console_errors(browser) == []
        slider = browser.find_element(By.ID, "at")
        for presses in (0, 15):
            for _ in range(presses):
                slider.send_keys(Keys.ARROW_LEFT)
            at = (90 - presses) / 100
            assert browser.find_element(By.ID, "at-value").text == f"{at:.2f}"
            for i, name in enumerate(("ind", "blur")):
                predictions, labels = sets[name]
                correct = predictions.correct(labels).numpy()
                expected = []
                for confidence in (predictions.confidence, fitted.confidence(predictions)):
                    point = operating_point(confidence.numpy(), correct, at)
                    expected += [100 * point.coverage, 100 * point.accuracy]
                found = cells(browser, f'#at-table tr[data-set="{i}"] td')
                shown = [float(cell.removesuffix(" %")) for cell in found]
                assert shown == pytest.approx(expected, abs=0.0501)
        dot = browser.find_element(By.CSS_SELECTOR, 'circle[data-set="0"][data-when="before"]')
        assert float(dot.get_attribute("cx")) > 50


def test_tables_sort_by_click_and_by_key(page):
    with chromium() as browser:
        browser.get(page[0].as_uri())
        table = "table.sortable"
        heads = browser.find_elements(By.CSS_SELECTOR, f"{table} th button")[:6]

        def column(k):
            found = cells(browser, f"details[open] {table} tbody td:nth-child({k})")
            return found if k == 1 else [float(x.replace(",", "")) for x in found]

        heads[1].click()
        assert column(2) == sorted(column(2), reverse=True)
        heads[1].click()
        assert column(2) == sorted(column(2))
        heads[5].send_keys(Keys.ENTER)
        assert column(6) == sorted(column(6), reverse=True)
        heads[0].send_keys(Keys.SPACE)
        heads[0].send_keys(Keys.SPACE)
        assert column(1) == [f"kind {k}" for k in range(10)]
        head = browser.find_element(By.CSS_SELECTOR, f"{table} th")
        assert head.get_attribute("aria-sort") == "ascending"


def test_a_phone_needs_no_sideways_scroll_and_dark_mode_is_dark(page):
    with chromium() as browser:
        phone = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        browser.get(page[0].as_uri())
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 360
        light = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (light, dark)]
        assert bright[0] > 700 and bright[1] < 120
        assert console_errors(browser) == []


def test_it_prints_on_paper(page):
    with chromium() as browser:
        browser.get(page[0].as_uri())
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
        assert len(printed["data"]) > 20_000


@pytest.fixture
def collected(tmp_path):
    """Predictions about pictures in a folder, as they are and under a shift."""
    rng = np.random.default_rng(0)
    names = [f"{'ab'[i % 2]}/{i:02d}.png" for i in range(40)]
    for name in names:
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (200, 160, 3), dtype=np.uint8)).save(file)
    settings = asked(shards=1, views=[], shifts=["blur:1"], class_names=["a", "b"], features=False)
    store = Store.begin(tmp_path / "preds", settings)
    index, shift = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
    labels = index % 2
    logits = rng.normal(size=(80, 2)) + 1.5 * np.eye(2)[labels]
    order = rng.permutation(80)
    block = Block(
        index[order],
        [names[i] for i in index[order]],
        labels[order],
        shift[order],
        logits[order].astype(np.float32),
        None,
        None,
    )
    store.write(0, block)
    return tmp_path, names


def test_names_of_images_are_in_the_order_of_rows(collected):
    folder, names = collected
    found, shift, titles = read_image_names(folder / "preds")
    assert found == names * 2 and titles == ("blur:1",)
    assert shift.tolist() == [0] * 40 + [1] * 40


def test_mistakes_show_their_pictures(collected):
    folder, names = collected
    preds, out = str(folder / "preds"), folder / "r.html"
    arguments = ["report", preds, "--on", f"photos={preds}", "--method", "temperature_scaling"]
    arguments += ["--methods", "uncalibrated", "--images", str(folder / "images")]
    assert main([*arguments, "--out", str(out)]) == 0
    page = out.read_text()
    assert "data:image/jpeg;base64," in page and "without the shift" in page
    predictions, labels = rightly.load(preds)
    plain = predictions[:40]
    wrong = ~plain.correct(labels[:40])
    assert all(names[i] in page for i in np.flatnonzero(wrong.numpy()).tolist()[:1])
    assert len(page) < 500_000


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--images", "{images}", "--on", "{npz}"], "folders that collect wrote"),
        (["--images", "{other}", "--on", "{preds}"], "none of the images"),
        (["--on", "{preds}", "--method", "ca_views"], "needs predictions with view_logits"),
    ],
)
def test_bad_requests_end_in_one_line(collected, capsys, more, words):
    folder, _ = collected
    other = folder / "other" / "z"
    other.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(other / "q.png")
    rightly.save(folder / "t.npz", *rightly.load(folder / "preds"))
    names = {"images": folder / "images", "other": folder / "other"}
    names |= {"npz": folder / "t.npz", "preds": folder / "preds"}
    arguments = ["report", str(folder / "preds"), "--out", str(folder / "r.html")]
    arguments += ["--methods", "uncalibrated", "--method", "temperature_scaling"]
    assert main([*arguments, *(x.format(**names) for x in more)]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_evaluate_works_under_a_shift(collected, capsys):
    folder, _ = collected
    saved = str(folder / "c.safetensors")
    preds = str(folder / "preds")
    assert main(["fit", preds, "--method", "temperature_scaling", "--out", saved]) == 0
    assert main(["evaluate", saved, preds]) == 0
    assert "blur:1" in capsys.readouterr().out
