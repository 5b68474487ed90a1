"""constraints.txt: plain pins, for all that pyproject.toml asks for; and the list of a server."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.processes import run_python

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


def test_the_list_of_a_server_is_the_one_that_follows_from_the_pins():
    listed = run_python(ROOT / ".ci" / "list-serve", check=True).stdout
    assert (ROOT / "requirements-serve.txt").read_text() == listed
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert "onnxruntime" in names and not names & {"torch", "scipy", "scikit-learn", "onnx"}


def test_the_image_is_made_of_that_list_and_the_wheel_alone():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert [("-r /requirements-serve.txt" in line, "--no-deps" in line) for line in installs] == [
        (True, False),
        (False, True),
    ]
    assert any(line.startswith("USER ") and "root" not in line for line in lines)
    assert any(line.startswith("HEALTHCHECK") for line in lines)
