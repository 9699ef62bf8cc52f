"""Scores a user's own text under trained models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import Ids
from seqlm.heldout.selection import encode_text
from seqlm.ngrams.models.smoothing import nats as ngram_nats
from seqlm.ngrams.models.storage import load_kneser_ney, load_models
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText
from seqlm.preprocess.settings import PreprocessParams
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from seqlm.score.metrics import summarise
from seqlm.score.model_info import ModelInfo, describe_ngram
from seqlm.score.networks.scoring import describe_run
from seqlm.score.surprisal_view import passage
from seqlm.score.word_to_char.scoring import WordToCharReader
from seqlm.train.runs import run_names
from seqlm.train.settings import read_config
from seqlm.vocab.kinds.registry import KINDS
from seqlm.vocab.vocabulary import Vocab

_MAX_SHOWN_CHARS = 20_000
"""Characters that the page of the text shows, so that it stays small."""


@dataclass(frozen=True)
class TrainedModel:
    """A model that can score any text."""

    info: ModelInfo
    vocab: Vocab
    load: Callable[[], Callable[[Ids], Nats]]
    """Loads the model; returns a function from N tokens to the surprisals of tokens 2 to N."""


def score_user_text(
    layout: Layout, path: Path, names: Sequence[str], preprocess: PreprocessParams, device: torch.device
) -> dict[str, dict[str, Any]]:
    """Return for each model its metrics on a text, its kind of token, and the beginning of the text with surprisals.

    Without ``names``, all runs are used. Raises ParamsError if there is no such model.
    """
    text = read_user_text(path, preprocess.normalise, preprocess.errors)
    models = trained_models(layout, device)
    if missing := set(names) - set(models):
        raise ParamsError(f"--model {min(missing)}: no such model; choose from {', '.join(models)}")
    return {name: _score(model, text) for name, model in models.items() if name in (names or run_names(layout.configs))}


def trained_models(layout: Layout, device: torch.device) -> dict[str, TrainedModel]:
    """Return all runs, n-gram models, and the model over words read as a model over characters, by name."""
    vocabs = {kind: Vocab.load(layout.vocab(kind), kind) for kind in KINDS}
    found = []
    for run in run_names(layout.configs):
        config = read_config(layout.config(run))
        vocab = vocabs[config.token]
        found.append(TrainedModel(describe_run(config, vocab), vocab, partial(_network_scorer, layout, run, device)))
    for kind, vocab in vocabs.items():
        for model in load_models(layout.ngrams(kind), len(vocab)).values():
            info = describe_ngram(model.smoothing, model.order, vocab)
            found.append(TrainedModel(info, vocab, partial(partial, ngram_nats, model)))
    words = vocabs["word"]
    over_words, reader = load_kneser_ney(layout.ngrams("word"), len(words)), WordToCharReader(layout, words)
    info, score = reader.describe(over_words.order), partial(reader.nll, model_after=lambda _: over_words)
    found.append(TrainedModel(info, vocabs["char"], lambda: score))
    return {model.info.name: model for model in found}


def read_user_text(path: Path, normalise: str, errors: str) -> str:
    """Return a text cleaned as the corpus was, without its last line end.

    Raises DataError if it cannot be decoded or has fewer than two characters.
    """
    blocks = clean_blocks(RawText(path, str(path)), normalise, errors, DecodingReport())
    text = b"".join(blocks).decode().removesuffix("\n")
    if len(text.strip()) < 2:
        raise DataError(f"{path}: too little is left after cleaning: bring a longer text")
    return text


def describe_score(name: str, score: dict[str, Any]) -> str:
    """Return a model's score of a text as one line."""
    perplexity, bits = (
        "infinite" if score[key] is None else f"{score[key]:.3f}" for key in ("perplexity", "bits_per_character")
    )
    return (
        f"{name}: perplexity {perplexity} per {score['token']}, {bits} bits per character, "
        f"{score['tokens']:,} tokens, {score['unknown_share']:.1%} of them unknown"
    )


def _network_scorer(layout: Layout, run: str, device: torch.device) -> Callable[[Ids], Nats]:
    return partial(stream_nll, load_network(layout.run(run), run, device))


def _score(model: TrainedModel, text: str) -> dict[str, Any]:
    stream, tokens = encode_text(model.vocab, text)
    if len(tokens) < 2:
        raise DataError(f"the text has {len(tokens)} {model.vocab.kind} tokens: at least two are needed")
    nats = model.load()(stream.ids)
    shown = passage(model.vocab.of_kind, tokens, stream.with_unknown_cost(nats), _MAX_SHOWN_CHARS)
    return {"token": model.info.token, "passage": shown} | summarise(nats, stream)
