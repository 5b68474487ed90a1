"""Small data that tests share: a classifier that is right about two times in three."""

import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import jaxtyping
import pytest
import torch

from rightly import Predictions
from rightly.calibrators import CALIBRATORS


def make(n: int = 300, c: int = 10, m: int = 3, d: int = 16, seed: int = 0, noise: float = 1.0):
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, c, generator=g)
    views = logits[:, None] + noise * torch.randn(n, m, c, generator=g)
    features = torch.randn(n, d, generator=g) + logits.amax(-1, keepdim=True)
    # Drawn by Gumbel's trick, because Categorical.sample takes no generator.
    gumbel = -(-torch.rand(n, c, generator=g).clamp(1e-9, 1 - 1e-7).log()).log()
    labels = (logits / 1.5 + gumbel).argmax(-1)
    names = [f"view{i}" for i in range(m)]
    return Predictions(logits, views, features, names), labels


def make_for(name: str, **sizes: int):
    """Data of as many classes as a method is for."""
    return make(**{"c": CALIBRATORS[name].fits_classes or 10, **sizes})


# Follow from HOME where they are not set.
PLACES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
LONG_S = 300
BENCHMARKS = Path(__file__).parent / "benchmarks"


@pytest.hookimpl(tryfirst=True)  # before those that `-m` leaves out are left out
def pytest_collection_modifyitems(items):
    """Tests of the benchmarks are long ones, and these may take longer."""
    for item in items:
        if BENCHMARKS in item.path.parents:
            item.add_marker("long")
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))


def pytest_configure(config):
    """Libraries keep their caches in a home of this run, which its workers share."""
    if not hasattr(config, "workerinput"):
        os.environ["HOME"] = tempfile.mkdtemp(prefix="rightly-tests-")
        for name in PLACES:
            os.environ.pop(name, None)


def pytest_unconfigure(config):
    """Ends the browser that tests of pages share, and removes that home."""
    if "tests.browser" in sys.modules:
        sys.modules["tests.browser"].stop()
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["HOME"], ignore_errors=True)


@pytest.fixture
def default_signals():
    """Signals, handled as Python does at its start: `nohup make test` has some of them ignored."""
    default = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    default[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in default.items()}
    yield tuple(before)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def sample():
    return make()


@pytest.fixture
def other():
    return make(seed=1)


@pytest.fixture(scope="session", autouse=True)
def unchecked_tracing():
    """Shapes are not checked while torch traces, which takes a third of the time so."""
    trace = torch.export.export

    def trace_unchecked(*args, **options):
        jaxtyping.config.update("jaxtyping_disable", True)
        try:
            return trace(*args, **options)
        finally:
            jaxtyping.config.update("jaxtyping_disable", False)

    torch.export.export = trace_unchecked
    yield
    torch.export.export = trace


@pytest.fixture(scope="session")
def loadable_torchvision():
    """Lets torchvision be imported, which other libraries do where they find it.

    PyPI's is a CUDA build, and on a CPU torch lacks two operators, which are declared here.
    """
    library, found = None, importlib.util.find_spec("torchvision")
    if found is not None and "torchvision" not in sys.modules and torch.version.cuda is None:
        if "+cu" in Path(found.origin).with_name("version.py").read_text():
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
    yield
    del library  # until here: the operators vanish with it
