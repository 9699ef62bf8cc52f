"""Models that are trained from Python: n-grams, which are also exchanged, and networks, without the pipeline."""

import copy
import math
import pickle  # noqa: TID251 (it is what is tested)
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import seqlm
from reference import clean_line
from seqlm.core.errors import ParamsError, SeqlmError
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.train.defaults import default_settings
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from small_runs import PARAMS
from small_training import equal
from smoke import ROOT

STORY = [clean_line(line) for line in (ROOT / "data" / "sample.txt").read_text(encoding="utf-8").splitlines()]
TRAIN, TEST = "\n".join(STORY[:200]), "\n".join(STORY[200:260])
SENTENCES = [["the", "sea", "came", "in"], ["the", "sea", "went", "out"], ["the", "tide", "came", "in"]]


def test_three_lines_train_a_model_like_all_others() -> None:
    words = seqlm.fit_ngram(TRAIN)
    assert repr(words) == "<word-kneser-ney-3: ngram over word tokens>"
    assert words.score(TEST).perplexity < seqlm.fit_ngram(TRAIN, 1).score(TEST).perplexity
    assert words.surprisals(TEST, by="word")["text"].tolist() == TEST.split()
    assert len(words.generate("the", 5, seed=1).split()) == 5
    characters = seqlm.fit_ngram(iter(STORY[:200]), 4, "char", normalise="letters")
    assert characters.score(TEST.upper()).bits_per_character == characters.score(TEST).bits_per_character < 3
    laplace = seqlm.fit_ngram(STORY[:200], 2, smoothing="laplace", epsilon=3, min_freq=2)
    assert laplace.name == "word-laplace-2"
    assert len(laplace.vocab) < len(words.vocab)


def test_only_kneser_ney_has_the_form_of_an_arpa_file(tmp_path: Path) -> None:
    seqlm.fit_ngram(TRAIN).to_arpa(tmp_path / "model.arpa.gz")
    read = seqlm.open_arpa(tmp_path / "model.arpa.gz")
    assert read.score(TEST).nll == pytest.approx(seqlm.fit_ngram(TRAIN).score(TEST).nll, rel=1e-5)
    with pytest.raises(SeqlmError, match="only static Kneser-Ney models"):
        seqlm.fit_ngram(TRAIN, smoothing="laplace").to_arpa(tmp_path / "x.arpa")


def test_invalid_discounts_are_replaced_with_one_warning() -> None:
    message = "fit_ngram: the estimated Kneser-Ney discounts of order 1, 2 are not valid: 0.5, 1, 1.5 replace them"
    with pytest.warns(UserWarning, match=message) as found:
        seqlm.fit_ngram("the sea came in", 2)
    assert [warning.filename for warning in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seqlm.fit_ngram("the sea came in", 2, smoothing="laplace")
        seqlm.fit_ngram(TRAIN, 3, "char")


def test_add_one_is_an_epsilon_of_the_size_of_the_vocabulary() -> None:
    text, size = "a b a c", 4  # with <unk>
    model = seqlm.fit_ngram(text, 1, smoothing="laplace", epsilon=size)
    counts = [0, 2, 1, 1]
    assert model.reader().next_probs() == pytest.approx([(count + 1) / (4 + size) for count in counts])


def test_texts_may_be_lists_of_words_or_lines() -> None:
    lists = seqlm.fit_ngram(SENTENCES, 2)
    strings = seqlm.fit_ngram([" ".join(sentence) for sentence in SENTENCES], 2)
    assert lists.vocab == strings.vocab
    assert lists.score("the tide went out") == strings.score("the tide went out")
    # A line end joins texts; a tab separates words.
    model = seqlm.fit_ngram(["ab", "ab"], 2, "char")
    assert model.vocab.tokens == ["<unk>", "a", "b", "\n"]
    assert model.vocab.counts == [0, 2, 2, 1]
    assert seqlm.fit_ngram("ab\nab", 2, "char").vocab == model.vocab
    assert seqlm.fit_ngram("a\tb c\td", 2).vocab.tokens == ["<unk>", "a", "b", "c", "d"]
    # No file has so long a name: 200 characters are 400 bytes.
    assert len(seqlm.fit_ngram("щ" * 200, 2, "char").vocab) == 2


def test_a_byte_order_mark_is_no_part_of_a_word_and_a_form_feed_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_text("\ufeffthe sea\nand the sea\n", encoding="utf-8")
    with (tmp_path / "bom.txt").open(encoding="utf-8") as file:
        words = seqlm.fit_ngram(file, 2)
    assert words.vocab.tokens == ["<unk>", "the", "sea", "and"]
    assert words.score("\ufeffthe sea", context="\ufeffand") == words.score("the sea", context="and")
    assert words.surprisals(words=["\ufeffthe", "sea"], by="word").equals(words.surprisals("\ufeffthe sea", by="word"))
    assert words.generate("\ufeffand", 3, temperature=0) == words.generate("and", 3, temperature=0)
    lines = seqlm.fit_ngram("the sea\fand\u2028the sea\x85", 2, "char")
    assert lines.vocab == seqlm.fit_ngram("the sea\nand\nthe sea\n", 2, "char").vocab
    for model in (words, lines):
        for text in ("the\fsea", "the\x85sea", "the\u2028sea", "the\r\nsea"):
            assert model.surprisals(text, by="word").equals(model.surprisals("the\nsea", by="word")), text
            assert model.surprisals("sea", context=f"{text[:-3]}").equals(model.surprisals("sea", context="the\n"))
            assert model.score(text[3:], context="the") == model.score("\nsea", context="the")


def test_a_context_leaves_the_separator_after_it_to_the_text() -> None:
    # Train has spaces and line ends, which cost different bits.
    models = [seqlm.fit_ngram("the sea came\nin and the\nsea went out\n" * 3, 2, by) for by in ("word", "char")]
    for model, text in product(models, (" came in", "\ncame in", " \n came")):
        whole, context, rest = f"the sea{text}", "the sea", model.score(text, context="the sea")
        bits = [model.score(each).bits_per_character * len(each) for each in (whole, context)]
        assert bits[0] == pytest.approx(bits[1] + rest.bits_per_character * len(text)), (model, text)
    for ends in ("\n", "\n\n"):
        found = models[1].surprisals("came", context=f"the sea{ends}")
        assert found["text"].tolist() == [*"came"]  # the blanks of a context are read and not scored


def test_a_score_says_what_makes_its_figures_misleading() -> None:
    words, characters = seqlm.fit_ngram(TRAIN), seqlm.fit_ngram(TRAIN, by="char")
    unknown = words.score("the sea glorp fnord the zibble")
    # Half of the words are unknown, and their spelling is not part of perplexity.
    assert unknown.unknown_share == 0.5
    tokens = words.surprisals("the sea glorp fnord the zibble")
    known = tokens["bits"][~tokens["unknown"]]
    assert unknown.perplexity_known == pytest.approx(2 ** known.mean())
    assert unknown.remarks == (
        "50% of the words are unknown, which can make perplexity low: compare bits per character",
        "most of the bits are the cost of spelling words that the model does not know",
    )
    assert math.isnan(words.score("glorp").perplexity_known)
    assert characters.score("ЩЩ").remarks[1].endswith("spelling characters that the model does not know")
    plain = characters.score(TEST)
    assert not plain.remarks
    assert plain.perplexity_known == pytest.approx(plain.perplexity)
    impossible = seqlm.fit_ngram("a b a c", 2, smoothing="laplace", epsilon=0).score("a b b")
    assert impossible.perplexity == impossible.bits_per_character == math.inf
    assert impossible.remarks == ("perplexity is infinite, because 'b' has probability 0",)


def test_of_a_text_in_which_every_word_occurs_once_most_other_words_are_new() -> None:
    # As many as in the texts themselves: after 20 passages of 8 words, about 9 of 10 words are new.
    words, estimated, new = " ".join(STORY).split(), [], []
    for start in range(0, 20 * 40, 40):
        seen, following = words[start : start + 8], words[start + 8 : start + 28]
        estimated.append(seqlm.fit_ngram([seen]).reader().next_probs()[0])
        new.append(sum(word not in seen for word in following) / 20)
    assert sum(estimated) / 20 == pytest.approx(sum(new) / 20, abs=0.05)


TEXT = "the sea came in and the sea went out\nand in came the tide\n" * 12
SMALL = {"num_hiddens": 8, "num_layers": 1, "num_epochs": 3, "batch_size": 4, "num_steps": 5, "lr": 0.02}


def fit(text: Any = TEXT, *arguments: Any, **options: Any) -> Any:
    return seqlm.fit_network(text, *arguments, progress=False, **SMALL | options)


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
    made = fit(f"once {TEXT}", model, by=by, **options, num_epochs=15)
    assert "once" not in made.vocab  # so that it learns what an unknown word is like
    name = model if by == "char" else f"{model}-{by}"
    assert (made.name, made.info.network, made.info.token) == (name, model, by)
    perplexities = made.history["val_perplexity"]
    assert min(perplexities) < 0.9 * perplexities[0]
    score = made.score("the sea came in")
    if by == "word":  # no network predicts a first word
        after_first = made.score(" sea came in", context="the")
        assert score.bits_per_character == pytest.approx(after_first.bits_per_character)
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


WRONG: dict[Callable, list[tuple[dict[str, Any], str]]] = {
    seqlm.fit_ngram: [
        ({"by": "subword"}, "by"),
        ({"normalise": "lower"}, "normalise"),
        ({"min_freq": 0}, "min_freq"),
        ({"min_freq": 51}, "min_freq = 51: no word of the texts occurs so often: lower it"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 2}, "epsilon = 2: has no effect with kneser_ney: leave it out"),
        ({"smoothing": "laplace", "unknown": "uniform"}, "unknown = 'uniform': has no effect with laplace"),
        ({"texts": 3}, "must be a string or several, not int"),
        ({"texts": pd.DataFrame({"a": ["the sea"]})}, "several, not DataFrame: pass one of its columns"),
        ({"texts": [["the", 3]]}, "texts[0][1] must be a string, not int"),
        ({"texts": ["the sea", math.nan]}, "texts[1] must be a string, but it is missing"),
        ({"texts": {"the sea", "a land"}}, "not set, which has no order: pass a list"),
        ({"texts": [np.array(["the", "sea"])]}, "texts[0] must be a string, not ndarray: join its words with spaces"),
        ({"texts": Path("my.txt")}, "not PosixPath: pass its text, with read_text()"),
        ({"texts": []}, "fewer than 3 words: pass more text"),
        ({"texts": "a b c \ud800"}, "contains an unpaired surrogate"),
        ({"texts": [__file__]}, "test_fitting.py' is a file: pass its text"),
    ],
    seqlm.fit_network: [
        ({"model": "lsmt"}, "model = 'lsmt': should be 'lstm', 'gru', 'rnn', 'scratch' or 'transformer'"),
        ({"by": "byte"}, "by = 'byte': should be 'char', 'word' or 'subword'"),
        ({"val": 1.5}, "val = 1.5: should be a text, or a share between 0 and 1"),
        ({"num_epoch": 3}, "num_epoch: unknown setting: did you mean num_epochs"),
        ({"run": "x"}, "run: unknown setting"),
        ({"sample_every": 1}, "sample_every: unknown setting"),
        ({"by": "subword", "min_freq": 2}, "min_freq = 2: has no effect with subwords: leave"),
        ({"lr": -1}, "lr = -1: should be greater than 0"),
        ({"lr": "0.1"}, "lr = '0.1': should be a valid number"),
        ({"num_epochs": 3, "eval_every": 4}, "checkpoint: best needs an evaluation on the validation set"),
        ({"model": "transformer", "num_hiddens": 6, "num_heads": 4}, "num_heads must divide"),
        ({"checkpoint": "."}, "checkpoint = '.': is a folder"),
        ({"checkpoint": "last"}, "checkpoint = 'last': should be the path of a file"),
        ({"texts": 3}, "texts must be a string or several, not int"),
        ({"texts": Path("x")}, "pass its text, with read_text"),
        ({"val": __file__}, "test_fitting.py' is a file: pass its text"),
        ({"by": "word", "min_freq": 51}, "min_freq = 51: no word of the texts occurs so often"),
        ({"texts": ""}, "fewer than 2 characters"),
        ({"texts": "a"}, "fewer than 2 characters"),
        ({"texts": "the sea"}, "val has fewer than 2"),
    ],
}


@pytest.mark.parametrize(
    ("function", "options", "complaint"), [(function, *case) for function, cases in WRONG.items() for case in cases]
)
def test_wrong_arguments_are_errors_of_one_line(function: Callable, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SeqlmError, match=f"^{function.__name__}: ") as found:
        function(**{"texts": "the sea " * 50} | options)
    assert complaint in str(found.value)
    assert "\n" not in str(found.value)


def test_a_text_of_less_than_a_minibatch_is_refused() -> None:
    with pytest.raises(SeqlmError, match="17 tokens are too few"):
        fit("the sea came in and")
