"""`rightly collect`: what it takes. That it collects is in tests/collection."""

import pytest
from PIL import Image

import rightly
from rightly.cli import main
from rightly.collection import VIEWS as DEFAULT_VIEWS
from rightly.datasets import LAYOUTS
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
from rightly.transforms.views import VIEWS
from tests.cli.conftest import MODEL
from tests.deployment.tiny_models import pictures


def test_the_names_of_views_shifts_and_layouts_are_listed(capsys):
    assert main(["collect", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = [VIEWS, SHIFTS, STANDARD_SHIFTS, LAYOUTS]
    assert [line.partition(": ")[2].split(", ") for line in lines] == [list(x) for x in expected]


def test_help_names_the_views_that_are_looked_at_by_default(capsys):
    assert main(["collect", "--help"]) == 0
    assert ",".join(DEFAULT_VIEWS) in "".join(capsys.readouterr().out.split())


def test_views_default_to_the_papers_and_can_be_none(tmp_path, capsys):
    for i, pixels in enumerate(pictures(4, size=20)):
        (tmp_path / "images" / "abcd"[i]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "images" / "abcd"[i] / f"[{i}].png")
    (tmp_path / "images" / "a" / "[x].png").write_bytes(b"no picture")
    arguments = ["collect", "--model", MODEL, "--images", str(tmp_path / "images")]
    arguments += ["--unreadable", "skip"]
    for out, options, views in (("p", [], DEFAULT_VIEWS), ("q", ["--views", ""], ())):
        assert main([*arguments, *options, "--out", str(tmp_path / out)]) == 0
        assert rightly.load(tmp_path / out)[0].view_names == tuple(views)
        assert "skipped a/[x].png: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--precision", "double"], "--precision must be one of"),
        (["--std", "a"], "--std must be numbers joined by commas, got 'a'"),
        (["--ray-gpus-per-worker", "1"], "--ray-gpus-per-worker has no meaning without"),
        (["--batch-size", "many"], "'--batch-size'"),
    ],
)
def test_messages_name_the_options(tmp_path, capsys, arguments, words):
    paths = ["--images", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["collect", "--model", MODEL, *paths, *arguments]) == 2
    assert words in capsys.readouterr().err
