"""`rightly views`, run as a user would."""

import json

from rightly.cli import main


def test_it_prints_a_ranking_and_writes_json(files, tmp_path, capsys):
    table = tmp_path / "views.json"
    cal = str(files / "cal.npz")
    assert main(["views", cal, "--most", "2", "--json", str(table)]) == 0
    printed = capsys.readouterr().out
    document = json.loads(table.read_text())
    assert (document["format"], document["version"]) == ("rightly-view-ranking", 1)
    assert len(document["alone"]) == 3 and len(document["grown"]) == 2
    assert document["grown"][1]["passes"] == 2
    assert " ".join(printed.split()).endswith(document["recommendation"])
    for gain in document["alone"]:
        assert gain["views"][0] in printed and f"{100 * gain['gain']:.3f}" in printed
        assert gain["low"] <= gain["gain"] <= gain["high"]


def test_the_seed_is_of_the_intervals(files, tmp_path):
    lows = []
    for seed in ("0", "1"):
        table = tmp_path / "views.json"
        arguments = ["--most", "1", "--seed", seed, "--json", str(table)]
        assert main(["views", str(files / "cal.npz"), *arguments]) == 0
        gain = json.loads(table.read_text())["alone"][0]
        lows.append((gain["gain"], gain["low"]))
    assert lows[0][0] == lows[1][0] and lows[0][1] != lows[1][1]


def test_what_cannot_be_ranked_is_refused(files, capsys):
    for name, words in (("unlabelled", "must hold labels"), ("bare", "have none")):
        assert main(["views", str(files / f"{name}.npz")]) == 2
        assert words in capsys.readouterr().err
    assert main(["views", str(files / "cal.npz"), "--most", "0"]) == 2
    assert "most must be at least 1" in capsys.readouterr().err
