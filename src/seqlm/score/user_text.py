"""Scores a user's own text under trained models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import Ids
from seqlm.heldout.selection import encode_text
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.storage import load_kneser_ney, load_models
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText
from seqlm.preprocess.settings import PreprocessParams
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from seqlm.score.metrics import summarise
from seqlm.score.model_info import describe_ngram
from seqlm.score.model_lookup import find_models
from seqlm.score.surprisal_view import passage
from seqlm.score.word_to_char.scoring import WordToCharReader
from seqlm.train.runs import read_config, run_names
from seqlm.vocab.kinds.registry import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

_MAX_SHOWN_CHARS = 20_000
"""Characters that the page of the text shows, so that it stays small."""


@dataclass(frozen=True)
class TextScorer:
    """A trained model that can score any text."""

    vocab: Vocab
    score: Callable[[Ids], Nats]
    """From N tokens to the surprisals of tokens 2 to N."""


LazyScorers = dict[str, Callable[[], TextScorer]]
"""Name of a model -> a function that loads it."""


def score_user_text(
    layout: Layout, path: Path, names: Sequence[str], preprocess: PreprocessParams, device: torch.device
) -> dict[str, dict[str, Any]]:
    """Return for each model its metrics on a text, its kind of token, and the beginning of the text with surprisals.

    Without ``names``, all runs are used. Raises ParamsError if there is no such model.
    """
    text = read_user_text(path, preprocess.normalise, preprocess.errors)
    scorers = find_scorers(layout, device, names or run_names(layout.configs))
    return {name: _score(load(), text) for name, load in scorers.items()}


def find_scorers(layout: Layout, device: torch.device, names: Sequence[str]) -> LazyScorers:
    """Return runs, n-gram models, and the model over words read as a model over characters, by their names.

    Raises ParamsError if there is no such model.
    """
    ngrams = [partial(_ngrams, layout, kind) for kind in KINDS]
    return find_models(names, [lambda: _runs(layout, device), *ngrams, lambda: _word_to_char(layout)])


def _runs(layout: Layout, device: torch.device) -> LazyScorers:
    return {run: partial(_network_scorer, layout, run, device) for run in run_names(layout.configs)}


def _network_scorer(layout: Layout, run: str, device: torch.device) -> TextScorer:
    token = read_config(layout.config(run)).token
    network = load_network(layout.run(run), run, device)
    return TextScorer(Vocab.load(layout.vocab(token), token), partial(stream_nll, network))


def _ngrams(layout: Layout, kind: Kind) -> LazyScorers:
    vocab = Vocab.load(layout.vocab(kind), kind)
    return {
        describe_ngram(model.smoothing, model.order, vocab).name: partial(TextScorer, vocab, partial(token_nll, model))
        for model in load_models(layout.ngrams(kind), len(vocab)).values()
    }


def _word_to_char(layout: Layout) -> LazyScorers:
    words = Vocab.load(layout.vocab("word"), "word")
    model, reader = load_kneser_ney(layout.ngrams("word"), len(words)), WordToCharReader(layout, words)
    scorer = TextScorer(reader.characters, partial(reader.nll, model_after=lambda _: model))
    return {reader.describe(model.order).name: lambda: scorer}


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


def _score(model: TextScorer, text: str) -> dict[str, Any]:
    stream, tokens = encode_text(model.vocab, text)
    if len(tokens) < 2:
        raise DataError(f"the text has {len(tokens)} {model.vocab.kind} tokens: at least two are needed")
    nats = model.score(stream.ids)
    shown = passage(model.vocab.token_kind, tokens, stream.with_unknown_cost(nats), _MAX_SHOWN_CHARS)
    return {"token": model.vocab.kind, "passage": shown} | summarise(nats, stream)
