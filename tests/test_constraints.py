"""constraints.txt: plain pins, for all that pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def test_every_dependency_is_pinned_within_its_range_and_nothing_but_versions_is_said():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in pins)
    versions = {name: Version(version) for name, version in (pin.split("==") for pin in pins)}
    assert len(versions) == len(pins) > 50
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group in [project["dependencies"], project["optional-dependencies"]["dev"]]:
        for requirement in map(Requirement, group):
            name = canonicalize_name(requirement.name)
            if name != "rightly":
                assert requirement.specifier.contains(versions[name]), requirement
