"""What runs a change elsewhere calls what runs it here; tests start processes in one way."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".pre-commit-config.yaml"]


def read(file):
    return yaml.load(file.read_text(encoding="utf8"), yaml.BaseLoader)  # "on" stays a word


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_for_other_services_can_be_read(file):
    assert isinstance(read(file), dict)


def test_workflows_run_the_checks_of_this_repository():
    checks = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["checks"]
    assert {"run": ".ci/run"} in checks["steps"]
    release = read(ROOT / ".github" / "workflows" / "release.yml")
    assert release["on"] == {"push": {"tags": ["v*"]}}
    jobs = release["jobs"]
    assert jobs["checks"]["uses"] == "./.github/workflows/ci.yml"
    assert all(job["needs"] == "checks" for name, job in jobs.items() if name != "checks")
    made = (ROOT / "Makefile").read_text()
    asked = [step["run"] for job in jobs.values() for step in job.get("steps", []) if "run" in step]
    for target in (words.split()[1] for words in asked if words.startswith("make ")):
        assert f"\n{target}:" in made


def test_every_step_of_the_checks_can_be_made():
    run, made = (ROOT / ".ci" / "run").read_text(), (ROOT / "Makefile").read_text()
    steps = run.partition("for step in ")[2].partition(";")[0].split()
    assert "wheel" in steps and all(f"\n{step}:" in made for step in steps)


def test_every_test_that_the_makefile_names_is_there():
    named = re.findall(r"\btests/[\w/.]+", (ROOT / "Makefile").read_text())
    assert named and all((ROOT / name).exists() for name in named)


STARTERS = {
    *("subprocess", "multiprocessing", "concurrent.futures.process", "pexpect", "ptyprocess"),
    *("os.fork", "os.forkpty", "os.popen", "os.posix_spawn", "os.posix_spawnp", "os.system"),
    *("pty.fork", "pty.spawn", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    "concurrent.futures.ProcessPoolExecutor",
}


def list_names(file):
    """What a file imports, and `module.name` wherever it says so."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def test_processes_are_started_by_the_one_helper_that_ends_them():
    """The fuzzer is a program of its own, which kills its one process itself."""
    allowed = {ROOT / "tests" / "processes.py", ROOT / "tests" / "fuzz" / "running.py"}
    starting = {file for file in (ROOT / "tests").rglob("*.py") if STARTERS & {*list_names(file)}}
    assert starting == allowed, "start processes by tests.processes.spawn"
