"""Scoring sentences: n-gram models and the LSTM of a finished run beside KenLM, in one run and in turn.

KenLM scores the same Kneser-Ney model over words, which is written for it as an ARPA file. Sentences have 20 words. Run
it after `dvc repro`: python benchmarks/sentences.py > benchmarks/results/sentences.txt
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import kenlm
from origin import origin

import seqlm
from seqlm.core.layout import Layout
from seqlm.models.index import Models
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import NGram

WORDS, SENTENCES, ALONE, ROUNDS = 20, 1000, 100, 5
NGRAMS = ["word-kneser-ney-3", "char-kneser-ney-5"]
NETWORK = "lstm"


def sentences(layout: Layout) -> list[str]:
    """Return different sentences of words of test, in turn from its beginning with a step of seven words."""
    words = layout.split("test").read_text(encoding="utf-8").split()
    starts = [7 * number % (len(words) - WORDS) for number in range(SENTENCES)]
    return [" ".join(words[start : start + WORDS]) for start in starts]


def kenlm_of(models: Models, folder: Path) -> kenlm.Model:
    model = models[NGRAMS[0]]
    assert isinstance(model, NGram)
    model.to_arpa(folder / "model.arpa")
    return kenlm.Model(str(folder / "model.arpa"))


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def one_by_one(model: LanguageModel, texts: list[str]) -> None:
    for text in texts:
        model.score(text)


def measure(models: Models, theirs: kenlm.Model, texts: list[str]) -> dict[str, list[float]]:
    """Return for each way to score the seconds for a sentence, in each round."""
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "kenlm, one by one": (lambda: [theirs.score(text, bos=False, eos=False) for text in texts], SENTENCES)
    }
    for name in NGRAMS:
        model = models[name]
        ways[f"{name}, a list"] = (partial(model.score, texts), SENTENCES)
        ways[f"{name}, one by one"] = (partial(one_by_one, model, texts[:ALONE]), ALONE)
    ways[f"{NETWORK}, a list"] = (lambda: models[NETWORK].score(texts), SENTENCES)
    models[NETWORK].score(texts[:1])
    first = {name: seconds(partial(models[name].score, texts[0])) for name in NGRAMS}
    found: dict[str, list[float]] = {f"{name}, the first": [taken] for name, taken in first.items()}
    for _ in range(ROUNDS):
        for way, (function, number) in ways.items():
            found.setdefault(way, []).append(seconds(function) / number)
    return found


def main() -> None:
    layout = Layout(Path())
    models, texts = seqlm.open(), sentences(layout)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(models, kenlm_of(models, Path(folder)), texts)
    # Other programs only make a round slower.
    reference = min(found["kenlm, one by one"])
    print(f"{origin()}; {SENTENCES} sentences of {WORDS} words; the fastest of {ROUNDS} rounds, with all ways in turn")
    print(f"{'':32}{'microseconds a sentence':>24}{'times kenlm':>13}{'1,000 sentences, s':>20}")
    for way, taken in found.items():
        value = min(taken)
        print(f"{way:32}{value * 1e6:24,.1f}{value / reference:13,.1f}{value * 1000:20.3f}")


if __name__ == "__main__":
    main()
