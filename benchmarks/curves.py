"""Bits per character against characters of training text, and against seconds of training.

    python benchmarks/curves.py [--corpus NAME] [--what data|time] [--models NAME ...] [--sizes N ...]

``SEQLM_DATA_DIR`` names a folder with The Time Machine and Tiny Shakespeare. Each text is prepared as in the pipeline,
with the settings of params.yaml and, for Tiny Shakespeare, of its preset. Val, test and the character vocabulary are
those of the pipeline for every size, so the vocabulary also has characters that a short beginning of train lacks.

- data: models of the first 10,000, 20,000, 40,000 ... characters of train, and of all of it, go to
  benchmarks/results/curves_data.csv. Val chooses the order of n-grams, the epoch of a network and the weights of a
  mixture; the column ``chosen`` says what. Networks have the settings of their runs, except for :data:`NETWORKS` and
  :data:`MAX_TOKENS`, which end a training run.
- time: evaluations on val while networks train on all of train go to benchmarks/results/curves_time.csv. Seconds are
  those of the minibatches alone: their number times the median time of one.

Every training has one thread, and seconds are those of the processor, which other programs disturb less than those of
a clock. Rows that the files already hold are kept, so an interrupted run continues.
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from origin import machine
from ruamel.yaml import YAML

from seqlm.core.files import read_csv, read_text, write_csv, write_json, write_text
from seqlm.core.layout import Layout
from seqlm.core.settings import read_params
from seqlm.models.index import Models
from seqlm.models.info import network_info
from seqlm.models.language_model import LanguageModel
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import Ids, Streams
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.pipeline.evaluate.mixtures import best_mixture
from seqlm.pipeline.preprocess.settings import SplitFractions
from seqlm.pipeline.preprocess.splitting import clean_and_split
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import HELD_OUT, Scores, make_scores, val_bits
from seqlm.pipeline.vocab.advice import find_line_separator
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.vocabulary import Vocab

ROOT = Path(__file__).resolve().parent.parent
RESULTS = {what: Layout(ROOT).benchmark(f"curves_{what}.csv") for what in ("data", "time")}


class Source(NamedTuple):
    """A text, and the settings that the pipeline has for it."""

    title: str
    file: str
    presets: tuple[str, ...]


CORPORA = {
    "time_machine": Source("The Time Machine", "timemachine.txt", ()),
    "tiny_shakespeare": Source("Tiny Shakespeare", "tinyshakespeare.txt", ("tiny_shakespeare",)),
}
SCORED = ("val", "test")
SMALLEST = 10_000
MAX_TOKENS = 1_600_000
"""A training ends after this many tokens, so that all of them take less than an hour: three fifths of what the run
``lstm`` of params.yaml trains, and two fifths of the preset of Tiny Shakespeare."""
NETWORKS: dict[str, dict[str, Any]] = {
    "scratch": {"num_epochs": 100, "patience": 10},
    "lstm": {"num_epochs": 20},
    "gru": {"num_epochs": 20},
    "transformer": {"num_epochs": 60},
}
"""The most epochs. Patience suits only a constant learning rate: a schedule that is cut off has not come to its end."""
CHARACTERS, WORDS, MIXTURE = "char-kneser-ney", "char-by-word-kneser-ney", "lstm+n-gram"
COMPARED = {
    "data": (CHARACTERS, WORDS, "scratch", "lstm", MIXTURE, "transformer"),
    "time": ("lstm", "gru", "transformer"),
}


@dataclass
class Corpus:
    """A prepared text."""

    title: str
    params: dict[str, Any]
    runs: dict[str, dict[str, Any]]
    """Settings of the networks, by the names of :data:`NETWORKS`."""
    layout: Layout
    vocab: Vocab
    train: Ids
    val: Ids
    streams: Streams
    """The scored text of val and test."""

    def config(self, name: str, num_chars: int) -> RunConfig:
        """Return the settings of a network that is trained on the beginning of train."""
        limits = {"max_tokens": num_chars, "token_budget": MAX_TOKENS}
        shown = {"eval_every": 1, "checkpoint": "best", "sample_every": 0}
        run = self.runs[name] | {"token": "char"} | limits | shown | NETWORKS[name]
        values = self.params | {"device": "cpu", "num_threads": 1, "runs": {name: run}}
        return resolve_runs(values, source="params.yaml")[name]


def prepare(source: Source, folder: Path) -> Corpus:
    """Clean, split and encode a text in a folder, as the pipeline does."""
    path = Path(os.environ.get("SEQLM_DATA_DIR", ".")) / source.file
    if not path.exists():
        sys.exit(f"SEQLM_DATA_DIR must name a folder with {source.file}")
    params = with_presets(read_params(ROOT / "params.yaml"), *source.presets, "transformer")
    lstm, transformer = params["runs"]["lstm"], params["runs"]["transformer"]
    runs = {"scratch": {}, "lstm": lstm, "gru": lstm | {"model": "gru"}, "transformer": transformer}
    settings, layout = params["preprocess"], Layout(folder)
    shares = SplitFractions(**settings["split"]).shares
    clean_and_split(path, source.file, layout.splits, settings["normalise"], shares)
    texts = {split: layout.split(split) for split in SPLITS}
    registry = read_params(Layout(ROOT).registry)["corpora"].values()
    write_json(layout.corpus_record, next(entry for entry in registry if entry["file"] == source.file))
    separator = find_line_separator(params["vocab"]["line_separator"], settings["normalise"], layout.corpus_record)
    vocab = build_corpus(texts, layout.corpus("char"), "char", separator)
    train, val = (np.asarray(load_split(layout.corpus("char"), split)) for split in ("train", "val"))
    heldout = Heldout(layout, "char")
    streams = {split: heldout.stream(split) for split in SCORED}
    return Corpus(source.title, params, runs, layout, vocab, train, val, streams)


def with_presets(params: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return settings changed by those of presets; what a preset removes stays."""
    for name in names:
        for line in (ROOT / "presets" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            if line[0] not in "#~":
                key, _, value = line.lstrip("+").partition("=")
                *parents, last = key.split(".")
                section = params
                for parent in parents:
                    section = section[parent]
                section[last] = YAML(typ="safe", pure=True).load(value)
    return params


def sizes(num_chars: int) -> list[int]:
    """Return 10,000 characters, doubled again and again, and all."""
    doubled = (SMALLEST * 2**power for power in itertools.count())
    return [*itertools.takewhile(lambda size: size < num_chars, doubled), num_chars]


def score_characters(corpus: Corpus, num_chars: int) -> tuple[Scores, str]:
    """Scores the n-gram model over characters whose order is best on val."""
    orders = range(1, corpus.params["ngrams"]["max_order"]["char"] + 1)
    counts = count_ngrams(corpus.train[:num_chars], len(corpus.vocab), max(orders))
    models = (NGram.of(KneserNey(counts, order, unknown="good_turing"), corpus.vocab, num_chars) for order in orders)
    best = min((score_splits(model, corpus.streams) for model in models), key=val_bits)
    return best, f"order {best.info.order}"


def score_words(corpus: Corpus, num_chars: int) -> tuple[Scores, str]:
    """Scores the n-gram model over words, read as a model over characters."""
    separator, settings = corpus.vocab.line_separator, corpus.params["ngrams"]
    layout = Layout(corpus.layout.root / str(num_chars))
    text = read_text(corpus.layout.split("train"))
    write_text(layout.split("train"), beginning(text, num_chars, separator) + "\n")
    texts = {split: layout.split(split) if split == "train" else corpus.layout.split(split) for split in SPLITS}
    words = build_corpus(texts, layout.corpus("word"), "word", separator)
    if not layout.corpus("char").exists():
        layout.corpus("char").symlink_to(corpus.layout.corpus("char"))
    order = settings["max_order"]["word"]
    counts = count_ngrams(load_split(layout.corpus("word"), "train"), len(words), order)
    model = NGram.of(KneserNey(counts, order, unknown="good_turing"), words)
    model.write(layout)
    models = Models(layout, device=None)
    (info,) = models.char_from_words_infos()
    return score_splits(models.ngram(info), corpus.streams), f"order {order}"


def beginning(text: str, num_chars: int, line_separator: str) -> str:
    """Return the beginning of a text with its line ends that has ``num_chars`` characters once its lines are joined."""
    lengths = (len(line_separator) if character == "\n" else 1 for character in text)
    ends = itertools.accumulate(lengths)
    return text[: next((place for place, end in enumerate(ends, 1) if end >= num_chars), len(text))]


NGRAMS = {CHARACTERS: score_characters, WORDS: score_words}


def mix(network: Scores, ngrams: list[Scores], texts: Streams) -> tuple[Scores, str]:
    """Scores the network mixed with the n-gram model that helps it most; val chooses this model and the weights."""
    best = min((best_mixture([network, ngram], texts) for ngram in ngrams), key=val_bits)
    weights = best.metadata["weights"].items()
    return best, " + ".join(f"{weight:.2f} {name}" for name, weight in weights)


@dataclass
class Stopwatch:
    """Measures the minibatches of a training run, as its callback; those that end with an evaluation are left out."""

    seconds: list[float] = field(default_factory=list)
    _last: tuple[float, int, int] = (0.0, -1, -1)

    def __call__(self, trainer: Trainer) -> None:
        now, minibatches, evaluations = (
            time.process_time(),
            trainer.progress.minibatches,
            len(trainer.progress.history),
        )
        if self._last[1:] == (minibatches - 1, evaluations):
            self.seconds.append(now - self._last[0])
        self._last = now, minibatches, evaluations


def train(corpus: Corpus, name: str, num_chars: int) -> tuple[Trainer, Stopwatch]:
    """Train a network; it gets the weights that are best on val."""
    torch.set_num_threads(1)
    config = corpus.config(name, num_chars)
    trainer, watch = (Trainer(config, len(corpus.vocab), corpus.train, corpus.val, "cpu"), Stopwatch())
    trainer.train(watch)
    trainer.network.load_weights(trainer.chosen_weights()[1])
    return trainer, watch


def score_splits(model: LanguageModel, streams: Streams) -> Scores:
    """Scores a model on val and test."""
    return make_scores(model.info, {split: streams[split].scored_nll(model.token_nll) for split in HELD_OUT}, streams)


def score_trained(corpus: Corpus, trainer: Trainer) -> tuple[Scores, str]:
    """Scores a network after :func:`train`."""
    network = StaticNetwork(network_info(trainer.config, corpus.vocab), corpus.vocab, trainer.network)
    return score_splits(network, corpus.streams), f"epoch {trainer.chosen_weights()[0]:.4g}"


def data_rows(corpus: Corpus, num_chars: int, models: set[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield ``data`` and the row of each of some models of the beginning of train; a mixture comes with its network.

    A network that is trained on all of train also gives ``time`` and its rows.
    """
    ngrams: list[Scores] = []
    started = time.process_time()

    def row(model: str, scored: tuple[Scores, str]) -> tuple[str, list[dict[str, Any]]]:
        nonlocal started
        score, chosen = scored
        family = "mixture" if model == MIXTURE else score.info.family  # of a mixture, only one member may remain
        what = {"corpus": corpus.title, "model": model, "train_chars": num_chars, "family": family, "chosen": chosen}
        bits = {f"{split}_bits": round(score.metrics[split]["bits_per_character"], 4) for split in corpus.streams}
        seconds, started = time.process_time() - started, time.process_time()
        return "data", [what | bits | {"seconds": round(seconds, 1), "machine": machine()}]

    for model, score_ngrams in NGRAMS.items():
        if models & {model, MIXTURE}:
            scored = score_ngrams(corpus, num_chars)
            ngrams.append(scored[0])
            yield row(model, scored)
    for model in NETWORKS:
        is_mixed = model == "lstm" and MIXTURE in models
        if model in models or is_mixed:
            trainer, watch = train(corpus, model, num_chars)
            scored = score_trained(corpus, trainer)
            yield row(model, scored)
            if is_mixed:
                yield row(MIXTURE, mix(scored[0], ngrams, corpus.streams))
            if num_chars == len(corpus.train) and model in COMPARED["time"]:
                yield "time", time_rows(corpus, model, trainer, watch)


def time_rows(corpus: Corpus, model: str, trainer: Trainer, watch: Stopwatch) -> list[dict[str, Any]]:
    """Return the evaluations on val of a training run."""
    of_minibatch, rows = statistics.median(watch.seconds), []
    low, high = np.quantile(watch.seconds, [0.1, 0.9])
    print(f"{model}: a minibatch takes {of_minibatch:.4f} s, 80 % of them {low:.4f} to {high:.4f}", flush=True)
    for entry in trainer.progress.history:
        if entry.val_perplexity is not None:
            seconds = of_minibatch * entry.tokens / trainer.plan.tokens_per_batch
            what = {"corpus": corpus.title, "model": model, "tokens": entry.tokens, "seconds": round(seconds, 3)}
            rows.append(what | {"val_bits": round(math.log2(entry.val_perplexity), 4), "machine": machine()})
    return rows


def known(path: Path) -> set[tuple[str, ...]]:
    """Return the corpus, the model and, as text, the third column of each row of a file."""
    rows = read_csv(path).iloc[:, :3].astype(str) if path.exists() else pd.DataFrame()
    return set(rows.itertuples(index=False, name=None))


def add(path: Path, rows: list[dict[str, Any]]) -> None:
    """Print rows and write them to a file, sorted by its first three columns."""
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, header=False), flush=True)
    if path.exists():
        table = pd.concat([read_csv(path), table])
    keys = list(table.columns[:3])
    write_csv(path, table.drop_duplicates(keys).sort_values(keys))


def add_data(corpus: Corpus, models: set[str], wanted: list[int] | None) -> None:
    for num_chars in [size for size in sizes(len(corpus.train)) if wanted is None or size in wanted]:
        rows = known(RESULTS["data"])
        there = {model for title, model, size in rows if (title, size) == (corpus.title, str(num_chars))}
        for what, new in data_rows(corpus, num_chars, models - there):
            add(RESULTS[what], new)


def add_time(corpus: Corpus, models: set[str]) -> None:
    there = {model for title, model, _ in known(RESULTS["time"]) if title == corpus.title}
    for model in [model for model in NETWORKS if model in models - there]:
        add(RESULTS["time"], time_rows(corpus, model, *train(corpus, model, len(corpus.train))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=CORPORA, action="append", help="default: both")
    parser.add_argument("--what", choices=RESULTS, action="append", help="default: both")
    parser.add_argument("--models", nargs="+", choices=sorted({*COMPARED["data"], *COMPARED["time"]}))
    parser.add_argument("--sizes", type=int, nargs="+", help="characters of train; default: all sizes")
    options = parser.parse_args()
    for name in options.corpus or CORPORA:
        with tempfile.TemporaryDirectory() as folder:
            corpus = prepare(CORPORA[name], Path(folder))
            for what in options.what or RESULTS:
                models = {*COMPARED[what]} & {*(options.models or COMPARED[what])}
                if what == "data":
                    add_data(corpus, models, options.sizes)
                else:
                    add_time(corpus, models)


if __name__ == "__main__":
    main()
