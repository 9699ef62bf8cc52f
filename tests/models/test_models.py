"""Trained models as objects: scores, distributions, and generated text."""

import math
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError, MachineError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device
from seqlm.models.index import Models, open_models
from seqlm.models.language_model import LanguageModel, SamplingConfig
from seqlm.networks.building import build_network, save_network
from seqlm.networks.network import stream_nll
from seqlm.score.scores import Scores
from seqlm.score.user_text import surprisal_table
from seqlm.train.settings import write_config
from small_runs import config


def test_every_model_scores_a_text_as_the_stages_do(scored: tuple[Layout, dict[str, Scores]], models: Models) -> None:
    layout, scores = scored
    assert set(models) == set(scores) >= {"char-kneser-ney-1@90", "char-kneser-ney-3@90"}
    assert {score.info.dynamic for score in scores.values() if score.info.family == "mixture"} == {False, True}
    test = layout.split("test").read_text()
    for name, score in scores.items():
        found, metrics = models[name].score(test), score.metrics["test"]
        expected = (metrics["tokens"], metrics["bits_per_character"], metrics["perplexity"], metrics["unknown_share"])
        assert (found.tokens, found.bits_per_character, found.perplexity, found.unknown_share) == expected, name
        assert models[name].info == score.info


def probabilities(model: LanguageModel, ids: np.ndarray) -> np.ndarray:
    """Return p of tokens 2 to N of a stream, read token by token."""
    reader, found = model.reader(1), []
    for token, following in pairwise(ids):
        reader.read(np.array([token]))
        probs = reader.next_probs()
        assert probs.shape == (1, len(model.vocab))
        assert probs.sum() == pytest.approx(1, abs=1e-6)
        found.append(probs[0, following])
    return np.array(found)


def test_a_reader_gives_the_distributions_behind_the_scores(models: Models) -> None:
    test = models.layout.split("test").read_text().removesuffix("\n")
    for name, model in models.items():
        ids = model.encode("the sea came in and a zebra went out")[0].ids
        if model.info.dynamic and model.info.network is None:
            # Dynamic counts are counted anew in three equal parts of a text, and by a reader after a third of test.
            ids = model.encode(test)[0].ids
            ids = ids[: len(ids) // 3 * 3 + 1]
        assert -np.log(probabilities(model, ids)) == pytest.approx(model.token_nll(ids), abs=1e-5), name


def test_the_network_of_a_run_is_that_of_its_tokens_and_epoch(models: Models, tmp_path: Path) -> None:
    shutil.copytree(models.layout.root, tmp_path, dirs_exist_ok=True)
    layout, vocab = Layout(tmp_path), models["word-kneser-ney-3"].vocab
    settings, networks = config("words", token="word"), {}
    write_config(layout.config("words"), settings)
    for epoch, folder in {"last": layout.run("words"), "best": layout.best_of_run("words")}.items():
        networks[epoch] = network = build_network(settings, len(vocab), seed=len(networks))
        save_network(folder, "words", settings, vocab.key, network.weight_copies(), network.engine)
    opened = open_models(tmp_path)
    for name, epoch in {"words": "last", "words@best": "best"}.items():
        model = opened[name]
        assert (model.info.epoch, model.info.token, model.name) == (epoch, "word", name)
        ids = vocab.encode(["the", "sea", "came", "in"])
        assert model.token_nll(ids) == pytest.approx(stream_nll(networks[epoch], ids))


def test_a_mixture_mixes_the_distributions_of_its_members(models: Models) -> None:
    mixtures = [model for model in models.values() if model.info.family == "mixture"]
    assert len(mixtures) == 2
    for mixture in mixtures:
        readers = [model.reader(2) for model in (mixture, *(models[name] for name in mixture.info.members))]
        for tokens in ([1, 2], [3, 3], [2, 1]):
            for reader in readers:
                reader.read(np.array(tokens))
            mixed, first, second = (reader.next_probs() for reader in readers)
            assert mixed == pytest.approx(0.25 * first + 0.75 * second, abs=1e-12)


@pytest.mark.parametrize("name", ["char-kneser-ney-4+dynamic", "small+dynamic", "char-by-word-kneser-ney-3+dynamic"])
def test_dynamic_models_learn_from_what_they_read(models: Models, name: str) -> None:
    model = models[name]
    ids = model.encode("nets and oats " * 30)[0].ids
    found = probabilities(model, ids)
    assert found[-14:].prod() > 2 * found[14:28].prod()
    assert "learns from what it reads" in repr(model)
    assert "learns" not in repr(models["small"])
    assert probabilities(model, ids[:20]) == pytest.approx(found[:19])  # each text begins anew


def test_generated_text_depends_on_the_seed_only(models: Models) -> None:
    for name in ("small", "word-kneser-ney-3", "char-by-word-kneser-ney-3", "char-kneser-ney-4+dynamic"):
        texts = [models[name].generate("the sea", 12, seed=seed) for seed in (1, 1, 2)]
        assert texts[0] == texts[1] != texts[2], name
        assert len(models[name].vocab.tokenize(texts[0])) == 12
    model = models["char-kneser-ney-3"]
    # A model of order 3 sees two characters: "me", then "e ", which "the sea" has made common.
    assert model.generate("the sea came", 4, temperature=0) == " sea"
    greedy = model.generate_batch(["the sea came", "the s", "and t"], 4, SamplingConfig(), 0)
    assert greedy == [model.generate(prefix, 4, temperature=0) for prefix in ("the sea came", "the s", "and t")]
    assert models["word-kneser-ney-3"].generate("the sea came", 2, temperature=0) == " in and"
    # A prefix has tokens that the model knows.
    with pytest.raises(DataError, match="the character 'Z' of the prefix is not in the vocabulary"):
        models["small"].generate("aZ")
    with pytest.raises(DataError, match="the prefix '' contains no character: give at least one"):
        models["small"].generate("")
    assert models["small"].generate_batch(["aZ"], 3, SamplingConfig(), 0, on_unknown="unk")


def test_a_model_is_asked_for_by_its_name(models: Models, tmp_path: Path) -> None:
    assert models["small"] is models["small"]
    assert "none" not in models
    with pytest.raises(KeyError, match=r"^there is no model 'none': choose from small, char-uniform"):
        models["none"]
    device: Device = "cuda" if torch.backends.mps.is_available() else "mps"  # no machine has both
    with pytest.raises(MachineError, match=f"device: {device}: this machine has none"):
        open_models(models.layout.root, device)["small"]
    with pytest.raises(DataError, match="holds no finished run"):
        open_models(tmp_path)


def test_wrong_values_are_refused_in_words_of_python(models: Models) -> None:
    model = models["small"]
    for text, kind in {None: "NoneType", b"the sea": "bytes", 3: "int"}.items():
        for use in (model.score, model.surprisals, model.generate):
            with pytest.raises(ParamsError, match=rf"^the (text|prefix) must be a string, not {kind}$"):
                use(text)  # type: ignore[operator]
    for use in (model.score, model.surprisals, model.generate):
        with pytest.raises(DataError, match=r"^the (text|prefix) has half a character, '\\ud800', at position 4"):
            use("the \ud800")  # type: ignore[operator]
    wrong: dict[str, list[Any]] = {
        "num_preds": [-1, 0, "many"], "seed": [-1, 2**32, None], "temperature": [-1.0, math.nan, "hot"],
        "top_k": [0, 1.5], "top_p": [0.0, 1.01],
    }  # fmt: skip
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ParamsError, match=rf"^generate: {name} = .*: should "):
                model.generate("the sea", **{name: value})
    assert model.generate("the sea", 3, seed=np.int64(1)) == model.generate("the sea", np.int64(3), seed=1)  # type: ignore[arg-type]
    for each in (found for found in models.values() if found.info.network or "small" in found.info.members):
        with pytest.raises(ParamsError, match="a network predicts nothing before it has read a token"):
            each.reader().next_probs()
    assert models["char-kneser-ney-3"].reader().next_probs().sum() == pytest.approx(1)


def test_surprisals_add_up_to_the_score(models: Models) -> None:
    text = "The sea  came in\n\nand a zebra went out"
    for name in ("small", "char-by-word-kneser-ney-3", "subword-kneser-ney-3", "word-kneser-ney-3"):
        score = models[name].score_tokens(text)
        total = score.score().bits_per_character * score.stream.scored_chars
        for by in ("token", "char", "word", "line"):
            if (by, name) != ("char", "word-kneser-ney-3"):
                table = models[name].surprisals(text, by=by)
                assert table["bits"].sum() == pytest.approx(total), (name, by)
        assert models[name].surprisals(text, by="word")["text"].tolist() == text.lower().split()
        lines = models[name].surprisals(text, by="line")["text"].tolist()
        assert lines == ["the sea came in", "", "and a zebra went out"]
    assert models["word-kneser-ney-3"].surprisals(text)["unknown"].tolist() == [False] * 6 + [True] + [False] * 2


def test_a_blank_belongs_to_the_word_before_or_after_it(models: Models) -> None:
    by_char = models["small"].surprisals("the sea came", by="char")["bits"].to_numpy()
    before, after = (models["small"].surprisals("the sea came", "word", space)["bits"] for space in ("before", "after"))
    # "t" is not scored: "he", " sea", " came", or "he ", "sea ", "came".
    assert before.tolist() == pytest.approx([by_char[1:3].sum(), by_char[3:7].sum(), by_char[7:].sum()])
    assert after.tolist() == pytest.approx([by_char[1:4].sum(), by_char[4:8].sum(), by_char[8:].sum()])
    with pytest.raises(ParamsError, match="include the space before a word"):
        models["subword-kneser-ney-3"].surprisals("the sea", "word", "after")
    assert models["small"].surprisals("the\nsea", by="char")["text"].tolist() == list("the sea")
    for wrong in ({"by": "chars"}, {"space": "Before"}):
        with pytest.raises(ParamsError, match="by must be token, char, word, line, and space before or after"):
            models["small"].surprisals("the sea", **wrong)


def test_a_table_has_a_column_for_each_model(models: Models) -> None:
    chosen = ["small", "word-kneser-ney-3", "subword-kneser-ney-3"]
    scored = {name: {model: models[model].score_tokens("the sea came\nin") for model in chosen} for name in ("a", "b")}
    table = surprisal_table(scored, "word")
    assert list(table) == ["file", "position", "text", "original", "start", "end", "reason", "space", *chosen]
    assert table["text"].tolist() == ["the", "sea", "came", "in"] * 2
    assert table["word-kneser-ney-3"].isna().tolist() == [True, False, False, False] * 2
    with pytest.raises(ParamsError, match="different tokens"):
        surprisal_table(scored, "token")


# Token 0, <unk>, is likely but never chosen.
PROBS = np.array([[0.5, 0.3, 0.15, 0.05]])


def pick(sampling: SamplingConfig, draws: int = 2000) -> np.ndarray:
    picked = sampling.pick(np.repeat(PROBS, draws, 0), np.random.default_rng(0))
    return np.bincount(picked, minlength=4) / draws


def test_temperature_raises_probabilities_to_a_power() -> None:
    assert pick(SamplingConfig()).tolist() == [0, 1, 0, 0]  # the most likely token, but never <unk>
    for temperature in (0.5, 1.0, 2.0):
        # Exercise 8.5-3: q is proportional to p to the power 1 / temperature.
        q = PROBS[0, 1:] ** (1 / temperature)
        assert pick(SamplingConfig(temperature), 20_000)[1:] == pytest.approx(q / q.sum(), abs=0.015)


def test_top_k_and_nucleus_leave_tokens_out() -> None:
    assert (pick(SamplingConfig(1.0, top_k=2)) > 0).tolist() == [False, True, True, False]
    # Without <unk>, p is 0.6, 0.3, 0.1: the first holds less than 0.7, the first two hold 0.9.
    assert (pick(SamplingConfig(1.0, top_p=0.7)) > 0).tolist() == [False, True, True, False]
    assert (pick(SamplingConfig(1.0, top_p=0.5)) > 0).tolist() == [False, True, False, False]


@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (2, None), (None, 0.5)])
def test_a_very_low_temperature_is_as_greedy_as_zero(top_k: int | None, top_p: float | None) -> None:
    probs, rng = np.array([[0.5, 0.1, 0.25, 0.15], [1.0, 1e-300, 1e-310, 0.0]]), np.random.default_rng(0)
    for temperature in (1e-3, 1e-30, 1e-40, 1e-320, 5e-324):
        assert SamplingConfig(temperature, top_k, top_p).pick(probs, rng).tolist() == [2, 1]
    # Equally likely tokens stay equally likely.
    probs = np.tile([0.0, 0.4, 0.4, 0.2], (1000, 1))
    drawn = SamplingConfig(1e-40).pick(probs, np.random.default_rng(0))
    assert set(drawn.tolist()) == {1, 2}
    assert 400 < int((drawn == 1).sum()) < 600


@given(
    st.floats(0, 100),
    st.lists(st.floats(0, 1), min_size=2, max_size=5).filter(lambda probs: any(probs[1:])),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 1e-9, 0.5, 1.0]),
)
def test_a_possible_token_can_be_drawn_at_any_temperature(
    temperature: float, probs: list[float], top_k: int | None, top_p: float | None
) -> None:
    (chosen,) = SamplingConfig(temperature, top_k, top_p).pick(np.array([probs]), np.random.default_rng(0)).tolist()
    assert chosen >= 1
    assert probs[chosen] > 0
