"""The fuzzer itself: it finds what it looks for, a case comes again, and every reader has a few."""

import ctypes
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz.running import Failure, Loader, Work, run
from tests.fuzz.target import Files, Target
from tests.fuzz.targets import NAMES, load_target

HELD: list[bytearray] = []


@dataclass(frozen=True)
class Misbehave:
    """A reader that breaks one promise on its third file."""

    how: str

    def __call__(self) -> Target:
        return Target(
            "misbehaving",
            (ValueError,),
            list,
            lambda random, samples: {"a.txt": random.choice([b"1", b"2", b"3"])},
            self.read,
            memory=64 * 2**20,
        )

    def read(self, folder: Path) -> None:
        if (folder / "a.txt").read_bytes() != b"3":
            raise ValueError("a.txt is refused")
        if self.how == "raise":
            raise KeyError("x")
        if self.how == "not say which":
            raise ValueError("something is wrong")
        if self.how == "block":
            time.sleep(60)
        if self.how == "crash":
            ctypes.string_at(0)
        if self.how == "grow":
            HELD.append(bytearray(b"x" * 100 * 2**20))
        if self.how == "ask for too much":
            try:
                bytearray(2**40)
            except MemoryError as error:
                raise ValueError("a.txt does not fit") from error


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("raise", "unexpected: KeyError"),
        ("not say which", "unnamed: ValueError"),
        ("block", "hang"),
        ("crash", "died with -11"),
        ("grow", "memory"),
        ("ask for too much", "memory"),
    ],
)
def test_broken_promises_are_found_and_the_rest_is_read(how, kind):
    work = Work(Misbehave(how), [], "0", 10, 8)
    events = list(run(work, timeout_s=2 if how == "block" else 10))
    failures = [event for event in events if isinstance(event, Failure)]
    third = [n for n in range(10, 18) if Misbehave(how)().make_case([], "0", n)["a.txt"] == b"3"]
    assert [failure.number for failure in failures] == third and len(third) > 1
    assert all(failure.kind.startswith(kind) for failure in failures)
    assert [event for event in events if isinstance(event, int)] == list(range(10, 18))


@pytest.mark.long
@pytest.mark.parametrize("reader", NAMES)
def test_each_reader_keeps_its_promises_and_its_cases_come_again(reader):
    target = load_target(reader)
    samples, again = target.make_samples(), target.make_samples()
    assert samples == again
    made: list[Files] = [target.make_case(samples, "a", number) for number in range(5)]
    assert made == [target.make_case(again, "a", number) for number in range(5)]
    events = list(run(Work(Loader(reader), samples, "tests", 0, 150)))
    failures = [event for event in events if isinstance(event, Failure)]
    assert not failures, failures[0].report
