"""Registries: what is found, what is refused, and what installed packages add."""

import sys
import textwrap
import warnings
from dataclasses import dataclass

import pytest

from rightly import registry
from rightly.calibrators import CALIBRATORS
from rightly.registry import Registry, register, unknown_name


@dataclass(frozen=True)
class Colour:
    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sound:
    name: str


@pytest.fixture
def colours(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRIES", {})  # types of records of this test alone
    return Registry("colour", Colour, (Colour("red", ("r",)), Colour("green")))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package that declares entry points, as pip would lay it out."""

    def write(points, module="", name="colours_of_others"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(module))
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(points))
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, name, raising=False)

    yield write
    sys.modules.pop("colours_of_others", None)


def test_records_keep_the_order_in_which_they_are_written(colours):
    colours.add(Colour("azure"))
    assert list(colours) == ["red", "green", "azure"]
    assert len(colours) == 3
    assert repr(colours) == "<3 colours: red, green, azure>"


def test_an_alias_is_found_but_not_listed(colours):
    assert colours["r"] is colours.find("r") is colours["red"]
    assert "r" in colours and "r" not in list(colours)


@pytest.mark.parametrize(
    "taken",
    [Colour("red"), Colour("r"), Colour("blue", ("red",)), Colour("blue", ("b", "r"))],
)
def test_a_name_or_alias_that_is_taken_is_refused_and_nothing_is_added(colours, taken):
    with pytest.raises(ValueError, match="the colour '(red|r)' exists already"):
        colours.add(taken)
    assert list(colours) == ["red", "green"]
    assert "b" not in colours


def test_a_record_of_another_type_is_refused(colours):
    with pytest.raises(TypeError, match="a colour must be a Colour, got Sound"):
        colours.add(Sound("loud"))


def test_an_unknown_name_is_answered_by_what_there_is_and_the_closest(colours):
    with pytest.raises(ValueError, match=r"colour 'gren' is not known: did you mean green\?$"):
        colours.find("gren")
    with pytest.raises(ValueError, match="got 'zzzz'$"):
        colours.find("zzzz")
    with pytest.raises(KeyError):
        colours["gren"]
    assert "gren" not in colours


def test_the_closest_name_comes_first_and_alone():
    error = unknown_name("method", "temprature_scaling", CALIBRATORS, listed="rightly fit --list")
    assert str(error) == (
        "method 'temprature_scaling' is not known: did you mean temperature_scaling? "
        "(rightly fit --list names all)"
    )
    assert "did you mean b?" in str(unknown_name("x", "bb", ["red"], aliases=["b"]))


def test_a_few_names_are_listed_and_many_are_not():
    assert str(unknown_name("x", "zz", ["ece", "ks"])) == "x must be one of ece, ks, got 'zz'"
    many = [f"name{i}" for i in range(9)]
    assert str(unknown_name("x", "zz", many, listed="them")) == (
        "x 'zz' is not known: choose from 9, such as name0, name1, name2 (them names all)"
    )
    assert str(unknown_name("x", 3, ["ece"])) == "x must be one of ece, got 3"


def test_what_was_registered_can_be_taken_back_with_its_aliases(colours):
    colours.add(Colour("blue", ("b",)))
    colours.remove("blue")
    assert "blue" not in colours and "b" not in colours
    colours.add(Colour("b"))  # both names are free again


@pytest.mark.parametrize("name", ["red", "r", "blue"])
def test_only_what_was_registered_can_be_taken_back(colours, name):
    with pytest.raises(ValueError, match=f"{name!r} was not registered at run time"):
        colours.remove(name)
    assert list(colours) == ["red", "green"]


def test_register_puts_a_record_where_its_type_belongs(colours):
    sounds = Registry("sound", Sound, ())
    register(Sound("loud"))
    register(Colour("blue"))
    assert list(sounds) == ["loud"]
    assert list(colours) == ["red", "green", "blue"]
    with pytest.raises(TypeError, match="record must be one of Colour, Sound or a .*, got str"):
        register("loud")


def test_installed_packages_add_records_when_they_are_looked_for(colours, install):
    module = """
        from tests.test_registry import Colour
        teal = Colour("teal", ("t",))
    """
    install("[rightly.colours]\nteal = colours_of_others:teal\n", module)
    assert colours["red"].name == "red"
    assert "colours_of_others" not in sys.modules  # what is built in needs nobody else's code
    assert colours.find("t").name == "teal"
    assert list(colours) == ["red", "green", "teal"]


def test_the_group_of_entry_points_can_be_named(monkeypatch, install):
    monkeypatch.setattr(registry, "_REGISTRIES", {})
    install(
        "[rightly.hues]\nteal = colours_of_others:teal\n",
        "from tests.test_registry import Colour\nteal = Colour('teal')\n",
    )
    assert list(Registry("hue of paint", Colour, (), group="rightly.hues")) == ["teal"]


@pytest.mark.parametrize(
    ("point", "module", "reason"),
    [
        ("colours_of_others:absent", "", "has no attribute 'absent'"),
        ("not_there_at_all:teal", "", "No module named 'not_there_at_all'"),
        ("colours_of_others:teal", "1 / 0", "division by zero"),
        (
            "colours_of_others:teal",
            "from tests.test_registry import Sound\nteal = Sound('teal')",
            "a colour must be a Colour, got Sound",
        ),
        (
            "colours_of_others:teal",
            "from tests.test_registry import Colour\nteal = Colour('red')",
            "'red' exists already",
        ),
    ],
)
def test_an_entry_point_that_fails_is_left_out_with_one_warning(
    colours, install, point, module, reason
):
    install(f"[rightly.colours]\nteal = {point}\n", module)
    with pytest.warns(UserWarning, match=f"the colour 'teal' of {point} cannot be used.*{reason}"):
        assert list(colours) == ["red", "green"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(colours) == 2  # asked once, said once
