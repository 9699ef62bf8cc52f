"""Trained models as objects: scores, distributions, generated text, copies, and errors of one class."""

import copy
import math
import pickle  # noqa: TID251 (what a process pool does)
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import seqlm
from seqlm.core.errors import DataError, MachineError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device
from seqlm.models.index import Models, open_models
from seqlm.models.language_model import LanguageModel
from seqlm.models.sampling import SamplingSettings, sample_token
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import Scores
from smoke import ROOT
from stages_by_hand import run_command

LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"


def test_every_model_gives_the_surprisals_that_the_stages_store(
    scored: tuple[Layout, dict[str, Scores]], models: Models
) -> None:
    layout, scores = scored
    assert set(models) == set(scores) >= {"char-kneser-ney-1@90", "char-kneser-ney-4+dynamic", "small+dynamic"}
    assert {score.info.dynamic for score in scores.values() if score.info.family == "mixture"} == {False, True}
    streams = {kind: Heldout(layout, kind).stream("test") for kind in {score.info.token for score in scores.values()}}
    for name, score in scores.items():
        assert models[name].info == score.info
        found = streams[score.info.token].scored_nll(models[name].token_nll)
        assert found.tolist() == pytest.approx(score.nll["test"].tolist(), rel=1e-12), name


def probabilities(model: LanguageModel, ids: np.ndarray) -> np.ndarray:
    """Return p of tokens 2 to N of a stream, read token by token."""
    reader, found = model.reader(), []
    for token, following in pairwise(ids.tolist()):
        reader.read(token)
        probs = reader.next_probs()
        assert probs.shape == (len(model.vocab),)
        assert probs.sum() == pytest.approx(1, abs=1e-6)
        found.append(probs[following])
    return np.array(found)


def test_a_reader_gives_the_distributions_behind_the_scores(models: Models) -> None:
    test = models.layout.split("test").read_text().removesuffix("\n")
    for name, model in models.items():
        ids = model.encode("", "the sea came in and a zebra went out").input_ids
        if model.info.dynamic and model.info.network is None:
            # Dynamic counts are counted anew in three equal parts of a text, and by a reader after a third of test.
            ids = model.encode("", test).input_ids
            ids = ids[: len(ids) // 3 * 3 + 1]
        assert -np.log(probabilities(model, ids)) == pytest.approx(model.token_nll(ids), abs=1e-5), name


@pytest.mark.parametrize("name", ["char-kneser-ney-4+dynamic", "small+dynamic", "char-by-word-kneser-ney-3+dynamic"])
def test_dynamic_models_learn_from_what_they_read(models: Models, name: str) -> None:
    model = models[name]
    ids = model.encode("", "nets and oats " * 30).input_ids
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
    assert model.generate(["the sea came", "and t"], 4, temperature=0)[0] == " sea"
    assert len(set(models["small"].generate(["the sea"] * 3, 12))) == 3
    assert models["word-kneser-ney-3"].generate("the sea came", 2, temperature=0) == " in and"
    with pytest.raises(DataError, match="the prefix '1984' contains no character: pass at least one"):
        models["small"].generate("1984")
    # A prefix is cleaned like a text that is scored; a space at its end stays.
    assert model.generate("The sea, came", 4, temperature=0) == " sea"
    with_space, without = (model.generate(prefix, 1, seed=1) for prefix in ("came ", "came"))
    assert model.generate("CAME\t ", 1, seed=1) == with_space != without


def test_a_prefix_is_read_as_a_context_is(models: Models) -> None:
    lines = seqlm.fit_ngram("ab cd\n" * 60, order=3, by="char")
    for prefix in ("cd\n", "\n", "cd\r\n"):
        assert lines.generate(prefix, 4, temperature=0) == "ab c"
    # Without a prefix, a text begins as one that is scored.
    for name in ("small", "char-kneser-ney-3", "word-kneser-ney-3"):
        model = models[name]
        tokens = [token for token in model.vocab.tokens[1:] if token.strip()]
        nll = [score.nll for score in model.score(tokens)]
        assert model.generate("", 1, temperature=0).strip() == tokens[np.argmin(nll)]
        assert (text := model.generate("", 5, seed=3)) == model.generate(num_preds=5, seed=3)
        options = ["--name", name, "--num-preds", "5", "--seed", "3"]
        assert run_command(models.layout.root, "generate", ".", *options).stdout == f"{text}\n"
    marks = seqlm.open_arpa(LMPLZ)
    assert marks.generate("the", 3, temperature=0) == marks.generate("\nthe", 3, temperature=0)


def test_a_model_is_asked_for_by_its_name(models: Models, tmp_path: Path) -> None:
    assert models["small"] is models["small"]
    (part := models["char-kneser-ney-3@90"]).save(tmp_path / "part")  # the text, of which it counts a part, goes along
    assert seqlm.open(tmp_path / "part")[part.name].score("the sea") == part.score("the sea")
    assert "none" not in models
    with pytest.raises(KeyError, match=r"^there is no model 'none': choose from small, char-uniform"):
        models["none"]
    device: Device = "cuda" if torch.backends.mps.is_available() else "mps"  # no machine has both
    with pytest.raises(MachineError, match=f"device: {device}: this machine has none"):
        open_models(models.layout.root, device)["small"]
    with pytest.raises(DataError, match="holds no finished run"):
        open_models(tmp_path)


def test_several_threads_open_one_model(models: Models) -> None:
    again, barrier = open_models(models.layout.root), Barrier(8)

    def open_mixture(_: int) -> LanguageModel:
        barrier.wait()
        return again[next(iter(again.mixtures))]

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(open_mixture, range(8))))) == 1


def test_a_reader_refuses_what_is_no_id(models: Models) -> None:
    for model in models.values():
        last = len(model.vocab) - 1
        for token_id in (-1, last + 1, 1.0, "a", None):
            with pytest.raises(ValueError, match=f"^read: token_id = .*: must be an integer from 0 to {last}$"):
                model.reader().read(token_id)  # type: ignore[arg-type]
        model.reader().read(np.int64(1))  # type: ignore[arg-type]


def test_models_can_be_pickled_and_copied(models: Models) -> None:
    text, fitted = "the sea came in", seqlm.fit_ngram("the sea came in and the sea went out")
    chosen = [models[name] for name in ("small", "char-kneser-ney-3", "small+dynamic")]
    for model in (*chosen, fitted, seqlm.open_arpa(LMPLZ)):
        expected = model.score(text)
        for again in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
            assert again.score(text) == expected, model.name
    assert list(pickle.loads(pickle.dumps(models))) == list(models)


def test_every_wrong_argument_is_refused_by_one_class_of_errors(models: Models) -> None:
    model, fitted = models["small"], seqlm.fit_ngram("the sea came in")
    calls: list[tuple[Any, str]] = [
        (lambda: seqlm.open(3), "folder must be a string or a Path, not int"),  # type: ignore[arg-type]
        (lambda: seqlm.open("nowhere"), "nowhere: holds no finished run"),
        (lambda: seqlm.open(device="gpu"), "device"),  # type: ignore[arg-type]
        (lambda: seqlm.open_arpa("nowhere"), "nowhere: no such file"),
        (lambda: model.score(["the sea", 3]), r"the text\[1\] must be a string, not int"),  # type: ignore[list-item]
        (lambda: model.score("the sea", context=["a", "b"]), "1 text, but 2 contexts"),
        (lambda: model.next_tokens("the", top=0), "next_tokens: top = 0: "),
        (lambda: fitted.save(3), "folder must be a string or a Path"),  # type: ignore[arg-type]
        (lambda: model.reader().next_probs(), "a network predicts nothing before it has read a token"),
    ]
    for ids in ([-1, 1], [1, 99], [1.0, 2.0], [[1, 2]], [[1, 2], [3]], 3, ["a"]):
        calls.append((lambda ids=ids: model.token_nll(ids), "small: tokens must be a list of integers from 0 to"))
    for use in (model.score, model.surprisals, model.generate):
        calls += [(lambda use=use: use(b"the sea"), "must be a string, not")]
        calls += [(lambda use=use: use("the \ud800"), r"contains an unpaired surrogate, '\\ud800', at position 4")]
    wrong: dict[str, list[Any]] = {
        "num_preds": [-1, 0, "many", "3", True], "seed": [-1, 2**32, None], "temperature": [-1.0, math.nan, "hot", "1"],
        "top_k": [0, 1.5], "top_p": [0.0, 1.01],
    }  # fmt: skip
    for name, values in wrong.items():
        calls += [
            (lambda name=name, value=value: model.generate("the sea", **{name: value}), f"^generate: {name}")
            for value in values
        ]
    for call, complaint in calls:
        with pytest.raises(seqlm.SeqlmError, match=complaint) as error:
            call()
        assert "\n" not in str(error.value), complaint
    assert model.generate("the sea", 3, seed=np.int64(1)) == model.generate("the sea", np.int64(3), seed=1)  # type: ignore[arg-type]


# Token 0, <unk>, is likely but never chosen.
PROBS = np.array([0.5, 0.3, 0.15, 0.05])


def limits(temperature: float, top_k: int | None, top_p: float | None) -> SamplingSettings:
    return SamplingSettings.checked(num_preds=1, temperature=temperature, top_k=top_k, top_p=top_p, seed=0)


def pick(
    temperature: float, top_k: int | None = None, top_p: float | None = None, draws: int = 2000, probs: Any = PROBS
) -> np.ndarray:
    rng, settings = np.random.default_rng(0), limits(temperature, top_k, top_p)
    drawn = [sample_token(np.array(probs), settings, rng) for _ in range(draws)]
    return np.bincount(drawn, minlength=4) / draws


def test_a_prefix_that_only_an_unknown_token_can_follow_is_refused() -> None:
    model = seqlm.fit_ngram("a x a y a z a w", 2, smoothing="laplace", epsilon=0, min_freq=2)
    with pytest.raises(DataError, match="no token of the vocabulary can follow"):
        model.generate("a", 6)


def test_temperature_top_k_and_nucleus_by_hand() -> None:
    assert pick(0).tolist() == [0, 1, 0, 0]  # the most likely token, but never <unk>
    for temperature in (0.5, 1.0, 2.0):
        # Exercise 8.5-3: q is proportional to p to the power 1 / temperature.
        q = PROBS[1:] ** (1 / temperature)
        assert pick(temperature, draws=20_000)[1:] == pytest.approx(q / q.sum(), abs=0.015)
    assert (pick(1.0, top_k=2) > 0).tolist() == [False, True, True, False]
    # Without <unk>, p is 0.6, 0.3, 0.1: the first holds less than 0.7, the first two hold 0.9.
    assert (pick(1.0, top_p=0.7) > 0).tolist() == [False, True, True, False]
    assert (pick(1.0, top_p=0.5) > 0).tolist() == [False, True, False, False]
    # Of equally likely tokens the first is chosen, and a first token that has all of top_p stays alone.
    assert pick(0, probs=[0.1, 0.3, 0.3, 0.3]).tolist() == [0, 1, 0, 0]
    assert pick(1.0, top_p=0.5, probs=[0, 0.5, 0.25, 0.25]).tolist() == [0, 1, 0, 0]


@given(
    st.floats(0, 100),
    st.lists(st.floats(0, 1), min_size=2, max_size=5).filter(lambda probs: any(probs[1:])),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 1e-9, 0.5, 1.0]),
)
def test_a_possible_token_can_be_drawn_at_any_temperature(
    temperature: float, probs: list[float], top_k: int | None, top_p: float | None
) -> None:
    chosen = sample_token(np.array(probs), limits(temperature, top_k, top_p), np.random.default_rng(0))
    assert chosen >= 1
    assert probs[chosen] > 0


USER = """
import pandas as pd
import seqlm
from seqlm.models.surprisals import Score

models = seqlm.open("exported")
model = models["lstm"]
bits: float = model.score("the sea").bits_per_character
several: list[float] = [score.nll for score in model.score(["the sea", "a land"], context="so")]
generated: list[Score] = model.score(text for text in ["the sea", "a land"])
column: list[Score] = model.score(pd.Series(["the sea", "a land"]), context=iter("ab"))
text: str = model.generate("the sea", 10, temperature=0.5)
"""


@pytest.mark.slow
def test_mypy_accepts_a_users_script(tmp_path: Path) -> None:
    assert (ROOT / "src" / "seqlm" / "py.typed").exists()
    for name, code, num_errors in (("good.py", USER, 0), ("bad.py", USER.replace("bits: float", "bits: str"), 1)):
        (tmp_path / name).write_text(code)
        # pandas has no types of its own.
        options = ["--strict", "--disable-error-code=import-untyped", "--cache-dir", str(tmp_path / "cache")]
        command = [sys.executable, "-m", "mypy", *options, name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.count(": error:") == num_errors, done.stdout
