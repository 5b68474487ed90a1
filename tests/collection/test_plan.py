"""What is asked for has to exist."""

import pytest

from rightly.collection import collect
from rightly.collection.plan import Plan, parse_shift
from tests.collection.tiny_model import SMALL, Tiny, flat


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"views": ("sideways",)}, "view 'sideways' is not known: choose from .* such as rotation"),
        ({"shifts": ("fog",)}, "shift 'fog' is not known: "),
        ({"shifts": ("contrast:6",)}, "must be 1 to 5, as in contrast:3, got 'contrast:6'"),
        ({"shifts": ("contrast:12",)}, "must be 1 to 5, as in contrast:3, got 'contrast:12'"),
        ({"shifts": ("contrast:hard",)}, "must be 1 to 5"),
        ({"views": ("hflip", "hflip")}, "views must be different ones, got hflip, hflip"),
        ({"shifts": ("jpeg", "jpeg:3")}, "shifts must be different ones, got jpeg, jpeg:3"),
        ({"precision": "float64"}, "precision 'float64' is not known: did you mean float"),
        ({"dtype": "bfloat16"}, "dtype 'bfloat16' is not known: did you mean float16"),
        ({"unreadable": "ignore"}, "unreadable must be one of stop, skip, got 'ignore'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        (
            {"model": "tim:resnet50"},
            "model 'tim:resnet50' is not known: did you mean timm",
        ),
        ({"model": "resnet50"}, "model must be one of timm:NAME"),
    ],
)
def test_unknown_choices_are_refused_with_those_that_there_are(tmp_path, given, words):
    given = {"model": Tiny(), "preprocessing": SMALL} | given
    with pytest.raises(ValueError, match=words):
        collect(samples=flat(tmp_path / "images", 2), **given)


def test_a_shift_without_severity_is_of_severity_three():
    assert parse_shift("contrast") == ("contrast", 3) and parse_shift("jpeg:5") == ("jpeg", 5)
    with pytest.raises(ValueError, match="severity of a shift must be 1 to 5.*got 'contrast:6'"):
        parse_shift("contrast:6")


def test_shards_cover_every_image_once():
    plan = Plan(shard_size=4)
    rows = [i for k in plan.shards(11) for i in plan.rows(k, 11)]
    assert rows == list(range(11))
