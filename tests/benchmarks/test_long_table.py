"""The long table: what is written is read, nothing is added twice, ranks share ties."""

import pytest
from benchmarks.long_table import (
    Entry,
    append_entries,
    average_seeds,
    parse_names,
    rank_methods,
    read_entries,
    write_entries,
)


def build_entry(classifier="one", method="spline", value=0.1, seed=0, test="test", metric="ece"):
    return Entry("toy", classifier, test, method, seed, metric, value, 10, 0.5)


def test_what_is_written_is_read(tmp_path):
    entries = [build_entry(), build_entry(value=0.25, seed=1), build_entry(metric="brier")]
    write_entries(tmp_path / "r.csv", entries)
    assert read_entries(tmp_path / "r.csv") == entries
    assert read_entries(tmp_path / "none.csv") == []


def test_only_rows_that_the_table_lacks_are_appended(tmp_path):
    path = tmp_path / "r.csv"
    append_entries(path, [build_entry(value=0.1)])
    joined = append_entries(path, [build_entry(value=0.9), build_entry(seed=1, value=0.2)])
    assert [(entry.seed, entry.value) for entry in joined] == [(0, 0.1), (1, 0.2)]
    assert read_entries(path) == joined


def test_other_columns_and_versions_are_refused_with_a_remedy(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("setup,value\n")
    with pytest.raises(ValueError, match="choose another file for --out"):
        read_entries(path)
    write_entries(path, [build_entry()])
    header, row = path.read_text().splitlines()
    path.write_text(f"{header}\n9{row[1:]}\n")
    with pytest.raises(ValueError, match="version 1, got version 9"):
        read_entries(path)


def test_seeds_are_averaged():
    entries = [build_entry(value=0.1), build_entry(value=0.3, seed=1)]
    assert average_seeds(entries) == {("spline", "one", "test", "ece"): pytest.approx(0.2)}


def test_ties_share_their_rank_and_incomplete_methods_take_no_part():
    values = {"spline": (0.1, 0.1), "ca_views": (0.1, 0.3), "ce_views": (0.2, 0.2)}
    entries = [
        build_entry(classifier, method, value)
        for method, both in values.items()
        for classifier, value in zip(("one", "two"), both, strict=True)
    ]
    partial = build_entry("one", "multi_isotonic", 0.01)
    ranks = {one.calibrator: one.mean_rank for one in rank_methods([*entries, partial])}
    assert ranks == {"spline": 1.25, "ca_views": 2.25, "ce_views": 2.5}
    assert rank_methods([partial, build_entry("two")]) == [] and rank_methods([]) == []


def test_higher_is_better_where_the_metric_says_so():
    entries = [
        build_entry(method="spline", value=0.9, metric="auroc"),
        build_entry(method="ca_views", value=0.8, metric="auroc"),
    ]
    assert [one.calibrator for one in rank_methods(entries)] == ["spline", "ca_views"]


def test_unknown_names_are_refused_by_the_name_of_the_option():
    assert parse_names(None, ["a", "b"], "--methods") == ["a", "b"]
    assert parse_names("b, a", ["a", "b"], "--methods") == ["b", "a"]
    with pytest.raises(ValueError, match="--methods must be of a, b, got c"):
        parse_names("a,c", ["a", "b"], "--methods")
