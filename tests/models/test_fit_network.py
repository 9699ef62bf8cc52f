"""Networks that are trained without the pipeline."""

import copy
import pickle  # noqa: TID251 (it is what is tested)
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqlm
from seqlm.core.errors import DataError, ParamsError
from seqlm.models.fitting import fit_network
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.initial import mask, normal
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.train.defaults import default_settings
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from small_runs import PARAMS
from small_training import equal
from stages_by_hand import refused, run_command, run_python, succeeded

TEXT = "the sea came in and the sea went out\nand in came the tide\n" * 12
SMALL: dict[str, Any] = {
    "num_hiddens": 8,
    "num_layers": 1,
    "num_epochs": 3,
    "batch_size": 4,
    "num_steps": 5,
    "lr": 0.02,
}


def fit(text: Any = TEXT, *arguments: Any, **options: Any) -> Any:
    return fit_network(text, *arguments, progress=False, **SMALL | options)


@pytest.fixture(scope="module")
def lstm() -> Any:
    return fit()


def test_the_pipeline_trains_the_same_weights(lstm: Any) -> None:
    # Val is the last tenth, from the line end before it.
    cut = TEXT.rindex("\n", 0, int((len(TEXT) - 1) * 0.9)) + 1
    train, val = (lstm.vocab.encode(lstm.vocab.tokenize(text)) for text in (TEXT[: cut - 1], TEXT[cut:-1]))
    values = default_settings("lstm") | SMALL | {"run": "lstm", "token": "char"}
    trainer = Trainer(RunConfig(**values), len(lstm.vocab), train, val)
    trainer.train()
    assert equal(trainer.chosen_weights()[1], lstm.network.weight_copies())
    assert lstm.history["val_perplexity"].tolist() == [row.val_perplexity for row in trainer.progress.history]


def test_the_defaults_are_those_of_the_run_lstm() -> None:
    run = resolve_runs(PARAMS, source="params.yaml")["lstm"].model_dump()
    other = {"patience", "token_budget", "sample_every", "sample_prefix", "num_threads", "run", "token"}
    defaults = default_settings("lstm")
    assert {name: defaults[name] for name in run if name not in other} == {
        name: value for name, value in run.items() if name not in other
    }
    # A text of 20,000 tokens is read 60 times, and one of 1,000 in smaller minibatches.
    assert default_settings("lstm", 20_000)["num_epochs"] == 60
    assert default_settings("lstm", 1000)["batch_size"] == 3


@pytest.mark.parametrize("by", ["char", "word", "subword"])
@pytest.mark.parametrize("model", ["gru", "scratch"])
def test_each_kind_learns_is_saved_and_opened(model: str, by: str, tmp_path: Path) -> None:
    options = {"embedding": "one_hot", "embedding_size": None, "dropout": 0.0, "num_steps": 3, "batch_size": 2}
    made = fit(TEXT, model, by=by, **options, num_epochs=15)
    name = model if by == "char" else f"{model}-{by}"
    assert (made.name, made.info.network, made.info.token) == (name, model, by)
    perplexities = made.history["val_perplexity"]
    assert min(perplexities) < 0.9 * perplexities[0]
    score = made.score("the sea came in")
    made.save(tmp_path / "saved")
    opened = seqlm.open(tmp_path / "saved")
    assert opened.saved == [name]
    for other in (opened[name], pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert other.score("the sea came in") == score


def test_val_chooses_the_epoch_and_may_be_a_text() -> None:
    other = fit(TEXT, val="xyz zyx " * 30, num_epochs=8, patience=2)
    assert len(other.history) < 8
    best = other.history["val_perplexity"].min()
    nll = other.token_nll(other.vocab.encode(other.vocab.tokenize("xyz zyx " * 30)))
    assert np.exp(nll.mean()) == pytest.approx(best, rel=0.02)


class Stop(BaseException):
    """As Ctrl-C."""


def test_a_call_that_was_interrupted_continues_to_the_same_weights(
    lstm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, steps = CompiledNetwork.step, iter(range(10**6))
    monkeypatch.setattr("seqlm.train.callbacks._TIMES_SAVING", 0)  # after each minibatch

    def stopping(network: CompiledNetwork, lr: float) -> None:
        step(network, lr)
        if next(steps) % 17 == 16:
            raise Stop

    monkeypatch.setattr(CompiledNetwork, "step", stopping)
    stops = 0
    while True:
        try:
            made = fit(checkpoint=tmp_path / "mine")
            break
        except Stop:
            stops += 1
    assert stops > 2
    assert equal(made.network.weight_copies(), lstm.network.weight_copies())
    # The finished result is kept: the same call trains nothing more.
    monkeypatch.setattr(CompiledNetwork, "step", lambda *_: pytest.fail("trains again"))
    assert equal(fit(checkpoint=tmp_path / "mine").network.weight_copies(), lstm.network.weight_copies())
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="mine is not used: it is of another text, other settings"):
        fit(checkpoint=tmp_path / "mine", seed=3)


def test_a_trained_network_continues_with_another_text(lstm: Any, tmp_path: Path) -> None:
    other = "and the tide came in\n" * 40
    more = fit(other, lstm)
    assert more.vocab.key == lstm.vocab.key
    assert more.score(other).bits_per_character < lstm.score(other).bits_per_character
    # A checkpoint of a training that began with other weights is not continued.
    fit(TEXT, fit(seed=5), checkpoint=tmp_path / "mine")
    with pytest.warns(UserWarning, match="mine is not used"):
        again = fit(TEXT, lstm, checkpoint=tmp_path / "mine")
    assert equal(again.network.weight_copies(), fit(TEXT, lstm).network.weight_copies())
    still = fit(other, lstm, lr=1e-9, num_epochs=1, dropout=0.0)
    close = {name: np.allclose(weight, lstm.network.weight_copies()[name], atol=1e-5)
             for name, weight in still.network.weight_copies().items()}  # fmt: skip
    assert all(close.values())


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["the sea " * 50, "lsmt"], {}, "model = 'lsmt': should be 'lstm', 'gru', 'rnn', 'scratch' or 'transformer'"),
        (["the sea " * 50], {"by": "byte"}, "by = 'byte': should be 'char', 'word' or 'subword'"),
        (["the sea " * 50], {"val": 1.5}, "val = 1.5: should be a text, or a share between 0 and 1"),
        (["the sea " * 50], {"num_epoch": 3}, "num_epoch: unknown setting: did you mean num_epochs"),
        (["the sea " * 50], {"run": "x"}, "run: unknown setting"),
        (["the sea " * 50], {"sample_every": 1}, "sample_every: unknown setting"),
        (["the sea " * 50], {"by": "subword", "min_freq": 2}, "min_freq = 2: has no effect with subwords: leave"),
        (["the sea " * 50], {"lr": -1}, "lr = -1: should be greater than 0"),
        (["the sea " * 50], {"lr": "0.1"}, "lr = '0.1': should be a valid number"),
        (["the sea " * 50], {"eval_every": 4}, "checkpoint: best needs an evaluation on the validation set"),
        (["the sea " * 50, "transformer"], {"num_hiddens": 6, "num_heads": 4}, "fit_network: num_heads must divide"),
        (["the sea " * 50], {"checkpoint": "."}, "checkpoint = '.': is a folder"),
        (["the sea " * 50], {"checkpoint": "last"}, "checkpoint = 'last': should be the path of a file"),
        ([3], {}, "texts must be a string or several, not int"),
        ([Path("x")], {}, "pass its text, with read_text"),
        (["the sea " * 50], {"val": __file__}, "test_fit_network.py' is a file: pass its text"),
        (["the sea " * 50], {"by": "word", "min_freq": 51}, "min_freq = 51: no word of the texts occurs so often"),
    ],
)
def test_wrong_arguments_are_errors_of_one_line(arguments: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=r"^fit_network: ") as raised:
        fit(*arguments, **options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("changed", [{"by": "word"}, {"normalise": "letters"}, {"min_freq": 2}, {"num_hiddens": 9}])
def test_a_trained_network_keeps_its_shape_and_its_tokens(lstm: Any, changed: dict[str, Any]) -> None:
    with pytest.raises(ParamsError, match=f"^fit_network: {next(iter(changed))} = .* the trained network decides this"):
        fit(TEXT, lstm, **changed)


def test_a_file_that_is_no_checkpoint_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "my.txt"
    path.write_text(TEXT)
    with pytest.raises(ParamsError, match="is no checkpoint: name another file"):
        fit(checkpoint=path)
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "fewer than 2"),
        ("a", "fewer than 2"),
        ("the sea", "val has fewer than 2"),
        ("the sea came in and", "too few"),
    ],
)
def test_texts_that_are_too_short(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(text)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it raises ImportError
import seqlm
from pathlib import Path
small = dict(num_hiddens=8, num_layers=1, num_epochs=1, batch_size=4, num_steps=5)
for model in ("lstm", "gru", "rnn", "scratch"):
    options = small | ({"dropout": 0.0} if model == "scratch" else {})
    options |= {"checkpoint": sys.argv[1] + model, "progress": False}
    made = seqlm.fit_network("the sea came in\\n" * 40, model, **options)
    made.save(sys.argv[1] + "saved-" + model)
    seqlm.open(sys.argv[1] + "saved-" + model)[model].score("the sea")
try:
    seqlm.fit_network("the sea came in\\n" * 40, "transformer")
except seqlm.MachineError as error:
    print(error)
"""


def test_recurrent_networks_need_no_pytorch(tmp_path: Path) -> None:
    printed = succeeded(run_python(WITHOUT_TORCH, f"{tmp_path}/"))
    assert printed.startswith(
        "a network (transformer, device 'cpu') needs the package torch: pip install 'seqlm[torch]'"
    )


def test_the_command_fits_scores_and_generates(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    settings = [f"--set={name}={value}" for name, value in SMALL.items()]
    succeeded(run_command(tmp_path, "fit", "my.txt", "--output", "my-lstm", "--quiet", *settings))
    assert seqlm.open(tmp_path / "my-lstm")["lstm"].score("the sea") == fit().score("the sea")
    rows = succeeded(run_command(tmp_path, "score", "my-lstm", "my.txt", "--by", "word")).splitlines()
    assert rows[0] == "position,text,bits,unknown,reason"
    assert len(rows) == 1 + len(TEXT.split())
    generated = succeeded(run_command(tmp_path, "generate", "my-lstm", "the ", "--num-preds", "9", "--seed", "1"))
    assert generated == f"the {fit().generate('the ', 9, seed=1)}\n"
    succeeded(run_command(tmp_path, "fit", "my.txt", "--model", "kneser-ney", "--order", "2", "--output", "kn"))
    succeeded(run_command(tmp_path, "arpa", "kn", "kn.arpa"))
    printed = [succeeded(run_command(tmp_path, "score", model, "my.txt")) for model in ("kn", "kn.arpa")]
    assert printed[0].split("perplexity")[1][:8] == printed[1].split("perplexity")[1][:8]


def test_normal_numbers_and_masks() -> None:
    values = normal(np.random.default_rng(0), 2.0, (500, 400))
    assert values.std() == pytest.approx(2, rel=0.01)
    assert abs(values.mean()) < 0.02
    # 95 % are within 1.96 standard deviations.
    assert np.mean(abs(values) < 3.92) == pytest.approx(0.95, abs=0.002)
    factors = mask(np.random.default_rng(0), 0.8, (500, 400))
    assert np.unique(factors).tolist() == [0, 1.25]
    assert factors.mean() == pytest.approx(1, abs=0.01)


def test_the_command_shows_its_help_and_needs_a_folder_before_it_trains(tmp_path: Path) -> None:
    assert run_command(tmp_path).stdout.startswith("Usage: seqlm")
    (tmp_path / "my.txt").write_text("the sea " * 50)
    (tmp_path / "file").touch()
    refused(
        run_command(tmp_path, "fit", "my.txt", "--output", "file/x"), 5, "file/x: cannot be written: Not a directory"
    )
    (tmp_path / "mine").mkdir()
    for folder in ("x", "mine"):
        refused(run_command(tmp_path, "fit", "my.txt", "--output", folder, "--by", "?"), 2, "by = '?': should be")
        refused(
            run_command(tmp_path, "fit", "my.txt", "--output", folder, "--order", "3"), 2, "order: unknown setting\n"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "my.txt"]
