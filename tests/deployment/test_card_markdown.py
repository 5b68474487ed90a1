"""The sentences of a card."""

import pytest
import yaml
from markdown_it import MarkdownIt

from rightly import Decision
from rightly.deployment.card_markdown import CardRow, render_block, render_card
from tests.deployment.tiny_onnx import GUARANTEED, METADATA

VALUES = {"ece": 0.1234, "brier": 0.2, "ks": None, "auroc": 0.9}


def test_the_cost_is_one_pass_without_views_and_less_than_all_with_a_budget():
    assert "One forward pass per image" in render_block(METADATA)
    budget = METADATA | {"views": ["hflip", "zoom"], "passes": 1.5}
    assert "1.50 forward passes per image on average (of 3: " in render_block(budget)


def test_without_a_threshold_accepting_is_left_to_the_user():
    assert "No threshold was asked for" in render_block(METADATA | {"decision": None})


def test_the_threshold_is_shown_with_what_it_reached():
    reached = Decision(0.8, n=100, coverage=0.5, accuracy=0.95, accuracy_interval=(0.9, 0.97))
    text = render_block(METADATA | {"decision": reached.to_dict()})
    assert "accepts 50.0%, of which 95.0% are correct (95 % interval 90.0% to 97.0%)" in text


def test_a_guarantee_is_shown_with_what_it_holds_for():
    stored = GUARANTEED.to_dict()
    text = render_block(METADATA | {"decision": stored})
    line = "Of 1,000 samples about 700 accepted, at most 2 % of them wrong (guaranteed, confidence"
    assert f"{line} level 95 %); this holds for data like the calibration data." in text
    void = render_block(METADATA | {"decision": GUARANTEED.voided("adapted data").to_dict()})
    assert "confidence level" not in void and "guarantee void: adapted data." in void
    reason = "not with these 400 samples; about 1,150 would do"
    none = Decision(None, "guaranteed", 400, reason=reason)
    assert f"No threshold: {reason}." in render_block(METADATA | {"decision": none.to_dict()})


def test_values_are_in_percent_and_what_is_not_defined_is_named_so():
    row = CardRow("mine", 1000, 0.5, VALUES, VALUES, "accepted from confidence 0.9000: 0.0%.")
    text = render_block(METADATA, [row])
    assert (
        "| mine | 1,000 | 50.0% | 12.34 → 12.34 | 20.00 → 20.00 | n/a → n/a | 90.00 → 90.00 |"
        in text
    )
    assert "On mine: accepted from confidence 0.9000: 0.0%." in text


def test_a_calibrator_that_changes_classes_says_so():
    text = render_block(METADATA | {"keeps_class": False})
    assert "may differ from the classifier's own" in text and "is always" not in text


def test_parity_is_shown_for_exported_files():
    parity = {"confidence": 2e-7, "images": 8, "kind": "synthetic"}
    text = render_block(METADATA | {"parity": parity})
    assert "| parity with torch | 2.0e-07 in confidence over 8 synthetic images |" in text


@pytest.mark.parametrize(
    "name",
    [
        "a | b",
        "<script>alert(1)</script>",
        "[x](javascript:alert(1)) ![y](http://evil.example)",
        "`` `code` ``",
        "**bold** _it_ ~~no~~ &lt;b&gt;",
        'quote" : {}',
        "back\\slash\\| end",
        "\u2028line\u0085end\x7f",
        "two\n\n# lines\n---\nlicense: mit",
        "lone \udc80 surrogate",
    ],
)
def test_names_are_shown_as_they_are_and_mean_nothing(name):
    """Read by a parser of Markdown and one of YAML."""
    row = CardRow(name, 10, 0.5, VALUES, VALUES, "accepted: 50.0%.")
    metadata = METADATA | {"classifier": {"name": name, "fingerprint": name}}
    metadata |= {"views": [name], "passes": 2.0, "method": name}
    card = render_card(metadata, [row])
    card.encode()  # as it is written
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in name)
    _, header, block = card.split("---\n", 2)
    result = yaml.safe_load(header)["model-index"][0]["results"][0]
    assert set(yaml.safe_load(header)) == {"library_name", "pipeline_tag", "tags", "model-index"}
    stored = "".join(c if c < " " else shown[i] for i, c in enumerate(name))
    assert result["dataset"]["name"] == stored
    tokens = MarkdownIt("commonmark").enable("table").parse(block)
    assert [token.content for token in tokens if token.type == "html_block"] == []
    assert sum(token.type == "heading_open" for token in tokens) == 1
    inline = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children}
    assert kinds <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}
    cells = ["".join(child.content for child in token.children) for token in inline]
    assert cells.count(" ".join(shown.split())) + cells.count(shown.strip()) >= 2
    assert sum(token.type == "tr_open" for token in tokens) == 9
