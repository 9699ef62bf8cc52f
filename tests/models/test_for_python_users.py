"""What users of Python expect of the models: generation as text comes, pickling, types, errors of one class."""

import itertools
import pickle  # noqa: TID251 (what a process pool does)
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from seqlm.models.generating import GrowingText

import seqlm
from seqlm.models.index import Models
from seqlm.models.language_model import SamplingConfig
from smoke import ROOT

GENERATORS = ["small", "word-kneser-ney-3", "subword-kneser-ney-3", "char-by-word-kneser-ney-3"]
LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"


@pytest.mark.parametrize("name", GENERATORS)
def test_text_comes_in_parts_and_ends_before_a_stop_string(name: str, models: Models) -> None:
    model = models[name]
    whole = model.generate("the sea", 30, seed=3)
    parts = list(model.generate_tokens("the sea", 30, seed=3))
    assert len(parts) > 5
    assert "".join(parts) == whole
    for stop in (whole[4], whole[5:8], whole[-3:], "never"):
        for given in (stop, [stop], ("never", stop)):
            expected = whole[: whole.find(stop)] if stop in whole else whole
            assert model.generate("the sea", 30, seed=3, stop=given) == expected
            assert "".join(model.generate_tokens("the sea", 30, seed=3, stop=given)) == expected
    # No more tokens are asked for than are taken.
    assert len(list(itertools.islice(model.generate_tokens("the sea", 10**9), 3))) == 3


def test_several_samples_and_prefixes(models: Models) -> None:
    model = models["small"]
    samples = model.generate("the sea", 12, num_samples=3)
    assert len(set(samples)) == 3
    assert samples == model.generate(["the sea"] * 3, 12)
    assert model.generate(["the sea", "a"], 5, temperature=0) == [
        model.generate(prefix, 5, temperature=0) for prefix in ("the sea", "a")
    ]
    stopped = model.generate(["the sea"] * 3, 12, stop="e")
    assert stopped == [sample.partition("e")[0] for sample in samples]


def test_a_character_of_several_tokens_comes_as_one(models: Models) -> None:
    vocab = models["subword-kneser-ney-3"].vocab
    ids = vocab.encode(vocab.tokenize("é☂ sea")).tolist()
    text = GrowingText(vocab)
    parts = [text.add(token) for token in ids]
    assert "\ufffd" not in "".join(parts)
    assert "".join(parts) + text.rest() == "é☂ sea"
    # A character that never becomes complete is shown as such.
    incomplete = GrowingText(vocab)
    assert [incomplete.add(token) for token in ids[:1]] == [""]
    assert incomplete.rest() == "\ufffd"


def test_opened_models_can_be_pickled(models: Models) -> None:
    for name in ("small", "char-kneser-ney-3", "small+dynamic"):
        again = pickle.loads(pickle.dumps(models[name]))
        assert again.score("the sea came in") == models[name].score("the sea came in")
    assert list(pickle.loads(pickle.dumps(models))) == list(models)
    arpa = seqlm.open_arpa(LMPLZ)
    assert pickle.loads(pickle.dumps(arpa)).score("the time") == arpa.score("the time")
    made = seqlm.fit_ngram("the sea came in")
    with pytest.raises(seqlm.SeqlmError, match="word-kneser-ney-3 cannot be pickled, because it is in no file"):
        pickle.dumps(made)


def test_every_wrong_argument_is_refused_by_one_class_of_errors(models: Models) -> None:
    model, sampling, fitted = models["small"], SamplingConfig(), seqlm.fit_ngram("the sea came in")
    calls: list[Any] = [
        lambda: seqlm.open(3),  # type: ignore[arg-type]
        lambda: seqlm.open("nowhere"),
        lambda: seqlm.open("x" * 300),
        lambda: seqlm.open_arpa("a\0b"),
        lambda: seqlm.open_arpa("\ud800"),
        lambda: seqlm.open(device="gpu"),  # type: ignore[arg-type]
        lambda: seqlm.open_arpa(None),  # type: ignore[arg-type]
        lambda: seqlm.open_arpa("nowhere"),
        lambda: models[3],  # type: ignore[index]
        lambda: models.compare("the sea", "small"),
        lambda: models.compare("the sea", [3]),  # type: ignore[list-item]
        lambda: models.compare(3, ["small"]),  # type: ignore[arg-type]
        lambda: model.score(["the sea", 3]),  # type: ignore[list-item]
        lambda: model.score(b"the sea"),  # type: ignore[arg-type]
        lambda: model.score("the sea", context=["a", "b"]),
        lambda: model.generate(["the sea", 3]),  # type: ignore[list-item]
        lambda: model.generate(["the sea"], num_samples=2),  # type: ignore[call-overload]
        lambda: model.generate("the sea", num_samples=0),
        lambda: model.generate("the sea", stop=""),
        lambda: model.generate("the sea", stop=[3]),  # type: ignore[list-item]
        lambda: model.generate("the sea", on_unknown="no"),
        lambda: model.generate_tokens("the sea", 0),
        lambda: model.generate_tokens(None),  # type: ignore[arg-type]
        lambda: model.generate_batch(["the sea"], 0, sampling, 0),
        lambda: fitted.save(3),  # type: ignore[arg-type]
        lambda: fitted.to_arpa(None),  # type: ignore[arg-type]
    ]
    for number, call in enumerate(calls):
        with pytest.raises(seqlm.SeqlmError) as error:
            call()
        assert "\n" not in str(error.value), number


def test_the_package_says_its_version() -> None:
    assert seqlm.__version__.split(".")[0].isdigit()
    with pytest.raises(AttributeError, match="module 'seqlm' has no attribute 'nothing'"):
        seqlm.nothing  # noqa: B018


USER = """
from collections.abc import Iterator

import seqlm

models = seqlm.open("exported")
model = models["lstm"]
bits: float = model.score("the sea").bits_per_character
several: list[float] = [score.nll for score in model.score(["the sea", "a land"], context="so")]
text: str = model.generate("the sea", 10, stop="\\n")
samples: list[str] = model.generate("the sea", num_samples=3)
texts: list[str] = model.generate(["the sea", "a land"])
parts: Iterator[str] = model.generate_tokens("the sea")
table = model.surprisals(words=["the", "sea"], groups=[1, 1])
arpa: float = seqlm.open_arpa("model.arpa").score("the sea").perplexity
version: str = seqlm.__version__
try:
    models["none"]
except seqlm.SeqlmError as error:
    print(error)
"""


@pytest.mark.slow
def test_mypy_accepts_a_users_script(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert (ROOT / "src" / "seqlm" / "py.typed").exists()
    for name, code, num_errors in (("good.py", USER, 0), ("bad.py", USER.replace("bits: float", "bits: str"), 1)):
        (tmp_path / name).write_text(code)
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.count(": error:") == num_errors, done.stdout
