"""Experiments with the real DVC: what runs and what changes, wrong settings, the way back, and the table."""

import pytest

from experiments import Row, changes, settings, table
from workspace import Workspace, stages_run

# One of each section, and each kind of wrong value; DVC itself refuses a mapping in place of a value.
WRONG = [
    "seed=-1", "num_threads=0", "train={a: b}", "launcher=none_such", "download.corpus=null", "download.max_bytes=true",
    "preprocess.split.train=nan", "vocab.char.min_freq=-1", "ngrams.laplace.epsilons=[[]]", "sine.noise=inf",
    "heldout.max_chars=0", "score.dynamic.lrs=none_such", "evaluate.mixtures=1e30", "compare.tolerance=-1",
    "generate.temperatures={a: b}", "gradients.num_draws=null", "runs.plain.token=true",
    "+no_such_section=1", "+train.no_such_setting=1", "+runs.plain.no_such_setting=1",
]  # fmt: skip


@pytest.mark.slow
def test_an_experiment_and_the_way_back(clean: Workspace) -> None:
    options = [word for change in ("train.lr=0.5", "+runs.mine={token: char, model: gru}") for word in ("-S", change)]
    ran = stages_run(clean.run("dvc", "exp", "run", *options, "evaluate").stdout)
    # The run small-lstm has its own learning rate, and a new run costs one training and one scoring.
    assert set(ran) == {
        "download", "configure", "train@plain", "train@mine", "score@plain", "score@mine", "evaluate",
    }  # fmt: skip
    clean.show_changed_settings()
    # One setting changes, and a name with two settings is added.
    assert clean.git("diff", "--numstat", "params.yaml").split() == [str(1 + 3), "1", "params.yaml"]
    shown, difference = (clean.run("dvc", "metrics", which).stdout for which in ("show", "diff"))
    changed = [line.split()[:2] for line in difference.splitlines()]
    assert ["reports/score/plain/metrics.json", "test_perplexity"] in changed
    assert "small-lstm" not in difference
    for output in (shown, difference):
        assert "reports/train/mine/metrics.json " in output
        assert "reports/score/mine/metrics.json " in output
        assert max(map(len, output.splitlines())) <= 160, output
    assert "mine" in clean.metrics()

    removal = clean.run("dvc", "exp", "run", "--set-param", "~runs.mine", "evaluate").stdout
    assert "removed data/models/runs/mine: no such run is left" in removal
    assert "removed score@mine from dvc.lock" in removal
    assert "mine" not in (clean.folder / "dvc.lock").read_text()

    clean.git("checkout", "--quiet", ".")
    # The stage download removes what the added run left; everything else comes from the cache.
    assert set(stages_run(clean.run("dvc", "repro").stdout)) <= {"download", "evaluate"}
    assert "mine" not in clean.metrics()
    assert "mine" not in (clean.folder / "dvc.lock").read_text()
    assert clean.git("status", "--porcelain", "--untracked-files=no") == ""
    assert clean.git("ls-files", "--others", "--exclude-standard", "reports") == ""


@pytest.mark.slow
def test_own_text_needs_one_setting(clean: Workspace) -> None:
    (clean.folder / "my.txt").write_text("<b>bold</b> & the sea, the sea\n" * 400)
    clean.run("dvc", "exp", "run", "--set-param", "download.corpus=my.txt", "--set-param", "preprocess.normalise=none")
    page = (clean.folder / "reports/index.html").read_text()
    assert "my.txt" in page
    # The corpus is shown as text: its markup is escaped.
    assert "<b>bold" not in page


@pytest.mark.slow
@pytest.mark.parametrize("override", WRONG)
def test_a_wrong_setting_ends_with_one_line_and_two_commands_restore(override: str, workspace: Workspace) -> None:
    before, name = workspace.results(), override.lstrip("+").partition("=")[0]
    result = workspace.run("dvc", "exp", "run", "--set-param", override, check=False)
    assert result.returncode != 0
    if "Invalid `--set-param` value" not in result.stderr:
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: params.yaml: ")
        assert (f"{name}: unknown setting" if override[0] == "+" else name.rpartition(".")[2]) in line
        assert "`make restore` goes back to the last commit" in result.stderr
    assert "Traceback" not in result.stderr
    # The stage that failed removed its outputs and left no temporary file.
    assert not [path for path in workspace.results() if path.suffix == ".part"]
    workspace.show_changed_settings()
    workspace.git("checkout", "params.yaml", "dvc.lock", "reports")
    workspace.run("dvc", "checkout")
    assert workspace.git("status", "--porcelain") == ""
    assert workspace.results() == before


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
