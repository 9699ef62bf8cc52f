"""The table of experiments says what differs, as one would type it, and fits the terminal."""

from experiments import Row, changes, settings, table
from workspace import Workspace


def test_changes_are_written_as_settings_of_an_experiment() -> None:
    data = {
        name: {"params": {"params.yaml": {"data": {"seed": seed, "train": {"lr": 1.0}, "runs": runs}}}}
        for name, seed, runs in (
            ("before", 0, {"lstm": {"token": "char", "dropout": 0.1}, "old": {"token": "char"}}),
            ("after", 1, {"lstm": {"token": "char", "dropout": None}, "gru": {"token": "char", "lr": 0.5}}),
        )
    }
    assert list(changes(settings(data["before"]), settings(data["after"]))) == [
        "+runs.gru={token: char, lr: 0.5}",
        "runs.lstm.dropout=null",
        "~runs.old",
        "seed=1",
    ]


def test_long_settings_are_wrapped_in_their_column() -> None:
    found = [Row("main", [1.5, None], []), Row("other", [1.25, 4.0], ["+runs.a={token: char, model: gru}", "seed=1"])]
    assert table(["best n-gram", "lstm"], found, 60).splitlines() == [
        "experiment  best n-gram    lstm  changed settings",
        "main              1.500        ",
        "other             1.250   4.000  +runs.a={token: char,",
        "                                 model: gru}",
        "                                 seed=1",
    ]


def test_a_clone_without_experiments_has_one_row(clean: Workspace) -> None:
    head, row = clean.run("python", "tools/experiments.py", "--model", "plain").stdout.splitlines()[2:]
    assert head.split("  ")[-2:] == [" plain", "changed settings"]
    assert row.split()[0] == "main"
    assert all(1 < float(value) < 8 for value in row.split()[1:])
    assert len(row.split()) == 5
