"""The report: made from data in Python, and it works in a browser."""

import dataclasses
import hashlib
import re

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import rightly
from rightly import Decision
from rightly.decisions import exact_interval
from rightly.decisions.costs import measure_cost
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.reporting import report
from rightly.reporting.html.page import render
from rightly.reporting.html.study import Example, Provenance, Study, StudySet
from tests.browser import chromium, console_errors
from tests.conftest import make
from tests.evaluation.test_views import make_telling
from tests.reporting.html.test_study import collected as collected
from tests.reporting.html.test_study import make_changes, make_set, make_study

EVIL = '<script>alert("x")</script> & </style>'

OWN = "correctness_logistic"


def test_user_text_is_escaped_everywhere():
    one = dataclasses.replace(make_set(name=EVIL), examples=[Example(0, EVIL)])
    rows = [Result(x, EVIL, "brier", 0.1, 0) for x in ("uncalibrated", EVIL)]
    made = Provenance(EVIL, {EVIL: EVIL}, {EVIL: EVIL}, 0, 100)
    study = Study(
        title=EVIL,
        method=EVIL,
        calibration_count=9,
        sets=[one],
        metrics=["ece", "brier"],
        provenance=made,
        comparison=rows,
        reference="uncalibrated",
        view_names=[EVIL],
        class_names=[EVIL] * 3,
        notes=[EVIL],
        fit_notes=[EVIL],
    )
    page = render(study)
    assert page.count("<script") == 2 and page.count("</style>") == 1
    assert "&lt;script&gt;" in page


def test_a_set_without_mistakes_or_with_one_class_is_drawn():
    n = 300
    same = np.zeros(n, dtype=np.int64)
    results = BeforeAfter(make_changes(), make_changes(), make_changes())
    right = np.ones(n, dtype=bool)
    one = StudySet("all right", np.full(n, 0.99), np.full(n, 0.9), same, same, right, results)
    page = render(make_study(sets=[one]))
    assert "every prediction is right" in page and "nan" not in page


def test_a_deployed_calibrator_needs_no_calibration_data(sample, other, tmp_path):
    path = tmp_path / "c.safetensors"
    fitted = rightly.fit(*sample, "ca_views")
    fitted.save(path)
    made = report(path, {"mine": other}, resamples=100)
    assert made.comparison is None and made.path is None
    assert 'id="methods"' not in made.html and "4 forward passes" in made.html
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"very file that is deployed, <code>{path}</code>" in made.html
    assert made.html.count(digest) == 2 and "fitted on 300 samples" in made.html
    assert "give nearly all" not in made.html  # what views give needs calibration data
    assert repr(made) == "<Report: ca_views on mine, not saved>"
    again = report(fitted, {"mine": other}, resamples=100)
    assert again.evaluation.to_csv() == made.evaluation.to_csv() and "deployed" not in again.html
    assert made._repr_html_().startswith("<iframe srcdoc=") and "<html" not in made._repr_html_()


def test_a_calibrator_with_a_budget_tells_the_passes_it_takes(sample, other):
    fitted = rightly.fit(*sample, "ca_views", budget=1.5)
    made = report(fitted, {"mine": other}, resamples=100)
    deferred = fitted.needs_views(fitted.select_views(other[0])).double().mean()
    passes = 1 + len(fitted.view_names) * float(deferred)
    assert 1 < passes < 1 + len(fitted.view_names)
    assert f"<strong>{passes:.2f}</strong> on mine" in made.html


def test_prediction_sets_are_measured_and_after_adapting_claim_nothing(sample, other):
    held_out, test = make(n=200, seed=7), make(n=150, seed=8)
    fitted = rightly.fit(*sample, "temperature_scaling").decide(*held_out, coverage=0.8)
    page = report(fitted, {"mine": test}, resamples=100).html
    section = page[page.index('<section id="sets">') : page.index('<section id="before-after">')]
    contains = fitted.prediction_sets(test[0])
    covered = contains.gather(1, test[1][:, None]).double().mean()
    assert f"<span>{100 * covered:.1f}</span>" in section
    assert f">{contains.sum(-1).double().mean():.2f}<" in section
    worst = rightly.evaluate(fitted, {"mine": test}, metrics="ece").set_quality["mine"].classes[0]
    rows = section[section.index("Least covered classes on mine") :]
    assert rows.index(f">class {worst.number}<") < rows.index(f"{100 * worst.high:.1f}</small>")
    assert "80.0 %" in section and "This holds for data like the calibration data" in section
    adapted = report(fitted.adapt(test[0]), {"mine": test}, resamples=100)
    assert (
        "Guarantee void: adapted data: no coverage is claimed" in adapted.html
        and "This holds for" not in adapted.html
    )
    without = report(rightly.fit(*sample, "ts"), {"mine": test}, resamples=100)
    assert 'id="sets"' not in without.html


def cut_decision(page):
    return page[page.index('<section id="decision"') : page.index('<section id="threshold"')]


def test_the_decision_is_shown_with_its_guarantee_and_whether_it_is_met():
    cal, test = make(n=1200, seed=3), make(n=400, seed=4)
    fitted = rightly.fit(*cal, "temperature_scaling", accuracy=0.5, confidence_level=0.9)
    assert fitted.threshold is not None
    made = report(fitted, {"mine": test}, resamples=100)
    outcome = made.evaluation.decisions["mine"]
    section = cut_decision(made.html)
    guarantee = (
        "at least <strong>50.0 %</strong> of what it accepts is correct, confidence level 90 %"
    )
    assert guarantee in section
    assert "holds for data like the calibration data" in section
    assert f"<span>{100 * outcome.observed.accuracy:.1f}</span>" in section
    assert f">{outcome.verdict}</td>" in section
    assert 'id="target" min="0" max="1" step="0.001" value="0.5"' in made.html
    adapted = report(fitted.adapt(test[0]), {"mine": test}, resamples=100)
    section = adapted.html[
        adapted.html.index('id="decision"') : adapted.html.index('id="threshold"')
    ]
    assert "Guarantee void: adapted data" in section and ">met<" not in section
    assert "confidence level" not in section
    header = adapted.html[adapted.html.index("<header>") : adapted.html.index("</header>")]
    footer = adapted.html[adapted.html.index("<footer>") : adapted.html.index("</footer>")]
    assert "Guarantee void: adapted data." in header and "guarantee void: adapted data" in footer
    terminal = " ".join(adapted.lay_out().notes)
    assert "guarantee void: adapted data" in terminal
    assert "void:" not in made.html[made.html.index("<header>") : made.html.index("</header>")]
    assert "confidence level 90 %" in made.html[made.html.index("<footer>") :]
    assert f"{100 * adapted.evaluation.decisions['mine'].expected_accuracy:.1f}" in section


@pytest.mark.filterwarnings("ignore:accuracy .* cannot be guaranteed")
def test_a_missing_guarantee_is_explained(sample, other):
    fitted = rightly.fit(*sample, "temperature_scaling", accuracy=0.99)
    assert fitted.threshold is None
    made = report(fitted, {"mine": other}, resamples=100)
    assert "No threshold: not with these" in made.html
    assert "No threshold: not with these" in " ".join(made.lay_out().notes)
    assert made.describe()["decision"] == fitted.decision.to_dict()


def test_classes_are_called_by_the_names_that_are_given(sample, other):
    names = [f"kind {k}" for k in range(10)]
    fitted = rightly.fit(*sample, "ts")
    made = report(fitted, {"mine": other}, class_names=names, resamples=100)
    assert '<th scope="row">kind 3</th>' in made.html
    with pytest.raises(ValueError, match="one name for each of 10 classes, got 9"):
        report(fitted, {"mine": other}, class_names=names[:9], resamples=100)


def test_the_views_that_give_nearly_all_are_named():
    cal, test = (make_telling(seed=seed) for seed in (0, 1))
    made = report(OWN, {"mine": test}, cal=cal, methods=["uncalibrated"], resamples=100)
    assert re.search("<strong>telling</strong> gives nearly all that\\s+3 views give", made.html)
    assert "--views telling<" in made.html


def test_a_deployed_calibrator_is_compared_as_it_is(sample, other):
    fitted = rightly.calibrator("spline").fit(*other)
    made = report(fitted, {"mine": other}, cal=sample, resamples=200)
    assert made.comparison.methods[-1] == "spline"
    assert made.comparison.calibrators["spline"] is fitted
    after = made.evaluation.sets["mine"].after["brier"].value
    shown = [row.value for row in made.comparison if row[::2][:2] == ("spline", "brier")]
    assert shown == [after]


def test_the_method_is_fitted_once_and_found_by_its_alias(sample, other):
    fits = []
    made = report(
        "ts",
        {"mine": other},
        cal=sample,
        methods=["uncalibrated", "temperature_scaling"],
        resamples=100,
        progress=lambda name, done, total: fits.append(name),
    )
    assert fits == ["uncalibrated", "temperature_scaling"]
    assert "1 forward pass<" in made.html


def test_a_report_needs_something_to_be_about(other):
    with pytest.raises(ValueError, match="calibrator must be fitted .*: pass cal= to fit it on"):
        report("ts", {"mine": other})
    with pytest.raises(FileNotFoundError, match="no calibrator file nothing"):
        report("nothing", {"mine": other}, cal=other)
    bare = (rightly.Predictions(other[0].logits), other[1])
    with pytest.raises(ValueError, match="needs predictions with view_logits"):
        report("ca_views", {"mine": bare}, cal=bare, allow_overlap=True)


def test_mistakes_show_their_pictures(collected):
    folder, names = collected
    made = report(
        "temperature_scaling",
        {"photos": folder / "preds"},
        cal=folder / "preds",
        methods=["uncalibrated"],
        images=folder / "images",
        resamples=100,
        allow_overlap=True,
    )
    assert "data:image/jpeg;base64," in made.html and "without the shift" in made.html
    predictions, labels = rightly.load(folder / "preds")
    wrong = ~predictions[:40].correct(labels[:40])
    assert all(names[i] in made.html for i in np.flatnonzero(wrong.numpy()).tolist()[:1])
    assert len(made.html) < 500_000


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
    groups = [f"blur set,{row},camera {row % 3}\n" for row in range(395)]
    (folder / "groups.csv").write_text("".join(["test,row,group\n", *groups]))
    report(
        OWN,
        {f"{name} set": folder / f"{name}.npz" for name in ("ind", "blur")},
        folder / "r.html",
        groups=folder / "groups.csv",
        cal=folder / "cal.npz",
        title="the model",
        command="rightly report --title",
    )
    return folder / "r.html", sets


@pytest.fixture(scope="module")
def fitted(page):
    """The calibrator that the report is about."""
    return rightly.calibrator("rightly").fit(*page[1]["cal"])


@pytest.fixture
def browser(page):
    """The report in a tab of its own, with which all ends that a test emulates."""
    with chromium() as browser:
        browser.get(page[0].as_uri())
        yield browser


def test_the_page_needs_nothing_else(page):
    text = page[0].read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', text) and "http" not in text.split("<body")[1]
    assert "default-src 'none'" in text
    for words in (
        "of predictions above 0.9 are wrong",
        "sha256",
        "<dt>seed</dt>",
        "--title",
        "forward pass",
    ):
        assert words in text


def test_groups_come_worst_first_where_there_are_any(page):
    text = page[0].read_text()
    section = text[text.index('<section id="groups">') : text.index('<section id="classes">')]
    assert "blur set" in section and "ind set" not in section
    whole, few = section.split("1 group with fewer than 20 samples")
    assert sorted(re.findall(r"camera \d", whole)) == ["camera 0", "camera 1", "camera 2"]
    assert "no group" in few and "camera" not in few
    lows = [float(low) for low in re.findall(r"([+-][\d.]+) to [+-]", whole)]
    assert len(lows) == 3 and lows == sorted(lows, reverse=True)


def cells(browser, selector):
    return [
        x.get_attribute("textContent") for x in browser.find_elements(By.CSS_SELECTOR, selector)
    ]


def read_shares(browser, selector):
    """The numbers in cells: a value in %, and the ends of its interval where there is one."""
    texts = [re.sub("[%–]", " ", text) for text in cells(browser, selector)]
    return [[float(number) for number in text.split()] for text in texts]


def test_a_threshold_is_moved_and_entered_with_its_intervals(page, fitted, browser):
    sets = page[1]
    assert console_errors(browser) == []
    slider, exact = (browser.find_element(By.ID, name) for name in ("at", "at-exact"))
    for at in (0.9, 0.897, 0.5731234, 1.0):
        if at == 0.897:
            for _ in range(3):
                slider.send_keys(Keys.ARROW_LEFT)
        elif at != 0.9:
            exact.send_keys(Keys.CONTROL, "a")
            exact.send_keys(str(at))
        assert float(exact.get_attribute("value")) == at
        assert float(slider.get_attribute("value")) == pytest.approx(at, abs=0.00051)
        for i, name in enumerate(("ind", "blur")):
            predictions, labels = sets[name]
            correct = predictions.correct(labels).numpy()
            expected = []
            for confidence in (predictions.confidence, fitted.confidence(predictions)):
                point = Decision.at(at, confidence.numpy(), correct)
                right = [point.accuracy, *point.accuracy_interval] if point.accepted else []
                expected += [[point.coverage], right]
            shown = read_shares(browser, f'#at-table tr[data-set="{i}"] td')
            for numbers, wanted in zip(shown, expected, strict=True):
                assert numbers == pytest.approx([100 * x for x in wanted], abs=0.0501)
    dot = browser.find_element(By.CSS_SELECTOR, 'circle[data-set="0"][data-when="before"]')
    assert dot.value_of_css_property("visibility") == "hidden"  # nothing is accepted from 1
    exact.send_keys(Keys.CONTROL, "a")
    exact.send_keys("2")
    assert exact.get_attribute("aria-invalid") == "true"


def test_intervals_of_the_page_are_those_of_the_library(browser):
    cases = [(0, 1), (1, 1), (0, 149), (3, 149), (97, 100), (4321, 5000), (49_990, 50_000)]
    for right, n in cases:
        shown = browser.execute_script("return exactInterval(...arguments)", right, n)
        assert shown == pytest.approx(exact_interval(right, n), abs=1e-9)


def enter(browser, name, value):
    field = browser.find_element(By.ID, name)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(str(value))


TARGETS = ((0.75, 0.95), (0.85, 0.9), (0.85, 0.999), (0.999, 0.95))


def check_reason(told, found):
    """Whether the page says of missing samples what the library says; its kind."""
    if "too few to tell" in found.reason:
        assert told == "too few samples to tell how many would do"
        return "too few"
    if found.needed is None:
        least, share = re.search(
            r"accepts ([\d,]+) or more, at least ([\d.]+)%", found.reason
        ).groups()
        share = f"{float(share):.1f}"
        assert told == f"at least {share} % are wrong wherever {least} or more are accepted"
        return "at every"
    assert told == f"about {found.reason.split('about ')[1].split()[0]} samples would do"
    return "about"


def test_a_target_accuracy_finds_the_threshold_that_the_library_guarantees(page, fitted, browser):
    sets = page[1]
    kinds, reasons = set(), set()
    for accuracy, level in TARGETS:
        enter(browser, "target", accuracy)
        enter(browser, "confidence-level", level)
        for i, name in enumerate(("ind", "blur")):
            predictions, labels = sets[name]
            pair = fitted.confidence(predictions).numpy(), predictions.correct(labels).numpy()
            found = Decision.guarantee(*pair, accuracy=accuracy, confidence_level=level)
            row = f'#target-table [data-set="{i}"]'
            shown = read_shares(browser, f"{row} td:nth-child(n + 3)")
            assert shown[0] == pytest.approx([found.accepted / 4], abs=0.0501)
            kinds.add(found.threshold is None)
            if found.threshold is None:
                told = cells(browser, f"{row} td")[0]
                assert told.startswith("none")
                reasons.add(check_reason(told.removeprefix("none"), found))
                continue
            button = browser.find_element(By.CSS_SELECTOR, f"{row} button")
            assert float(button.text) == pytest.approx(found.threshold, abs=0.001)
            assert shown[1][0] == pytest.approx(100 * found.accuracy, abs=0.0501)
            button.send_keys(Keys.ENTER)
            above = read_shares(browser, f'#at-table [data-set="{i}"] [data-when="after"]')
            assert above == shown
    assert kinds == {True, False} and reasons == {"about", "at every", "too few"}
    enter(browser, "target", 1.5)
    assert "between 0 and 1" in browser.find_element(By.ID, "target-error").text


def test_costs_find_the_threshold_that_the_library_finds(page, fitted, browser):
    sets = page[1]
    for costs in ({"error": 4.0, "review": 1.0}, {"error": 2.5, "review": 2.0, "gain": 0.5}):
        for name, value in costs.items():
            enter(browser, f"cost-{name}", value)
        for i, name in enumerate(("ind", "blur")):
            predictions, labels = sets[name]
            pair = fitted.confidence(predictions).numpy(), predictions.correct(labels).numpy()
            found = Decision.least_cost(*pair, **costs)
            row = f'#cost-table [data-set="{i}"]'
            button = browser.find_element(By.CSS_SELECTOR, f"{row} button")
            assert float(button.text) == pytest.approx(found.threshold, abs=0.001)
            button.click()
            costs_of = browser.find_elements(By.CSS_SELECTOR, f"{row} td:nth-child(n + 3)")
            texts = [cell.text.replace(",", "").replace("to", "").split() for cell in costs_of]
            there, above, accept_all, review_all = [[float(x) for x in t] for t in texts]
            expected = measure_cost(*pair, float(button.text), **costs)
            assert above[0] == pytest.approx(expected[0], rel=1e-3)
            assert above[1:] == pytest.approx(expected[1:], rel=0.03)  # of a bootstrap
            # Corrected for having been chosen here, by other resamples than the library's.
            optimism = found.costs["per_1000"] - expected[0]
            assert optimism > 8 and there[0] - above[0] == pytest.approx(optimism, abs=6)
            assert there[2] - there[1] == pytest.approx(above[2] - above[1], abs=1)
            assert accept_all[0] == pytest.approx(found.costs["accept_all"], rel=1e-3)
            assert review_all == [pytest.approx(1000 * costs["review"])]
    enter(browser, "cost-error", 1)
    assert "more than a review" in browser.find_element(By.ID, "cost-error-note").text


def test_without_its_script_the_page_still_tells(browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.refresh()
    body = browser.find_element(By.TAG_NAME, "body").text
    assert "At the threshold 0.9" in body and "an error costs" not in body
    numbers = read_shares(browser, '#at-table tr[data-set="0"] td')
    assert [len(cell) for cell in numbers] == [1, 3, 1, 3]


def test_tables_sort_by_click_and_by_key(browser):
    table = "#classes table.sortable"
    heads = browser.find_elements(By.CSS_SELECTOR, f"{table} th button")[:6]

    def column(k):
        found = browser.find_elements(By.CSS_SELECTOR, f"{table} tbody tr > :nth-child({k})")
        if k == 1:
            return [cell.text for cell in found if cell.text]
        return [float(cell.get_attribute("data-value")) for cell in found if cell.text]

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


def test_no_width_needs_sideways_scroll(browser):
    for width in (360, 768, 1200):
        screen = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": width == 360}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.refresh()
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        assert console_errors(browser) == [], width


def test_dark_mode_is_dark(browser):
    bright = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        bright.append(sum(map(int, re.findall(r"\d+", colour)[:3])))
    assert bright[0] > 700 and bright[1] < 120


def test_it_prints_on_paper(browser):
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(printed["data"]) > 20_000
