"""Tables as LaTeX, Markdown and HTML hold every value, and user text cannot break them."""

from rightly.evaluation.compare import Comparison
from rightly.reporting import markup
from rightly.reporting.layout import Cell, Column, Layout, lay_out_comparison
from tests.reporting.test_layout import make_results

EVIL = r"a_b & 50% <script> | $x$ \end{tabular} *"


def make_layout(group=""):
    cells = [Cell("1.00", "0.5–1.5", "▲", "°", True), Cell("n/a")]
    return Layout("calibrator", ["x", EVIL], [Column("ece ↓", cells, group)], notes=("a note",))


def test_markdown_has_a_table_for_each_group():
    text = markup.to_markdown(lay_out_comparison(Comparison(make_results(), 200, "ts")))
    assert text.count("| calibrator | ece ↓ |") == 2 and "**a**" in text
    assert "| x | **10.00°** (5.0–15.0) ▲ |" in text


def test_markdown_escapes_names():
    lines = markup.to_markdown(make_layout()).splitlines()
    assert lines[0] == "| calibrator | ece ↓ |"
    row = next(line for line in lines if "script" in line)
    assert r"\|" in row and r"a\_b" in row and r"\<script\>" in row
    assert lines[-1] == "a note"


def test_latex_is_a_whole_tabular():
    text = markup.to_latex(make_layout("blur & noise"))
    assert text.startswith("% a note\n") and text.endswith("\\end{tabular}\n")
    assert r"\multicolumn{1}{c}{blur \& noise}" in text and r"\cmidrule(lr){2-2}" in text
    assert r"x & \textbf{1.00$^{\circ}$}$^{+}$ \\" in text
    assert r"a\_b \& 50\% <script> | \$x\$ \textbackslash{}end\{tabular\} * & n/a \\" in text
    assert text.count(r"\end{tabular}") == 1


def test_latex_without_groups_and_marks_is_plain():
    layout = Layout("calibrator", ["x"], [Column("ece ↓", [Cell("1.00")])])
    text = markup.to_latex(layout)
    assert "multicolumn" not in text and "%" not in text
    assert r"calibrator & ece $\downarrow$ \\" in text


def test_html_escapes_names_and_shows_intervals_below():
    text = markup.to_html(make_layout("<b>"))
    assert "<script>" not in text and '<th colspan="1">&lt;b&gt;</th>' in text
    assert "<td><b>1.00°</b> ▲<br><small>0.5–1.5</small></td>" in text
    assert "<small>a note</small>" in text
    assert "colspan" not in markup.to_html(make_layout())
