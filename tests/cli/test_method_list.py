"""`rightly fit --list`, run as a user would."""

from rightly.calibrators import CALIBRATORS
from rightly.cli import main


def test_every_method_is_listed_with_paper_and_note(capsys):
    assert main(["fit", "--list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for name, method in CALIBRATORS.items():
        assert all(text in lines[name] for text in (method.paper, method.note, *method.needs))
        assert ("may change" in lines[name]) != method.keeps_class
        assert method.cost in lines[name] and method.parameters in lines[name]


def test_methods_stand_in_their_groups(capsys):
    assert main(["fit", "--list"]) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    group = None
    for word in words[1:]:
        group = word if word.endswith(":") else group
        assert word == group or f"{CALIBRATORS[word].group}:" == group
