"""`rightly methods`, run as a user would."""

import rightly
from rightly.cli import main


def test_every_method_is_listed_with_paper_and_note(capsys):
    assert main(["methods"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for name, method in rightly.CALIBRATORS.items():
        assert all(text in lines[name] for text in (method.paper, method.note, *method.needs))
