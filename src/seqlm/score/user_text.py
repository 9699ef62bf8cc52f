"""Scores a user's own text under trained models."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from seqlm.core.errors import DataError
from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.text import count_text, quantity
from seqlm.download.corpora import copy_own_text
from seqlm.heldout.scored_text import Ids
from seqlm.heldout.selection import encode_text
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.storage import load_kneser_ney, load_models
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks
from seqlm.preprocess.preparing import decoding_warnings, require_enough
from seqlm.preprocess.settings import PreprocessParams
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from seqlm.score.metrics import summarise
from seqlm.score.model_info import describe_ngram
from seqlm.score.model_lookup import find_models
from seqlm.score.surprisal_view import passage
from seqlm.score.word_to_char.scoring import WordToCharReader
from seqlm.train.runs import read_config, run_names
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab

MAX_SHOWN_CHARS = 20_000
"""Characters that the page of the text shows, so that it stays small."""
_MIN_CHARS = 2
_NOT_KEPT = re.compile(r"[^A-Za-z\s]")


@dataclass(frozen=True)
class TextScorer:
    """A trained model that can score any text."""

    vocab: Vocab
    score: Callable[[Ids], Nats]
    """From N tokens to the surprisals of tokens 2 to N."""


LazyScorers = dict[str, Callable[[], TextScorer]]
"""Name of a model -> a function that loads it."""


@dataclass(frozen=True)
class UserText:
    """A text cleaned like the corpus, without its last line end."""

    text: str
    remarks: list[str]
    """What a user should know about the cleaning of the text and about the page that shows it."""


def read_user_text(path: Path, preprocess: PreprocessParams, max_bytes: int) -> UserText:
    """Return a user's own text, plain or ``.gz``, of at most ``max_bytes`` bytes unpacked.

    Raises DataError if it cannot be read or decoded, or if too little is left after cleaning.
    """
    decoding = DecodingReport()
    with TemporaryDirectory() as folder:
        copy, cleaned = Path(folder) / "copy.txt", Path(folder) / "cleaned.txt"
        copy_own_text(path, max_bytes, copy)
        raw = RawText(copy, str(path))
        with cleaned.open("wb") as target:
            target.writelines(clean_blocks(raw, preprocess.normalise, preprocess.errors, decoding))
        try:
            require_enough(count_text(cleaned), preprocess.normalise, _MIN_CHARS)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        text = read_text(cleaned).removesuffix("\n")
        original = b"".join(raw.decoded_blocks(preprocess.errors, DecodingReport())).decode()
    remarks = decoding_warnings(decoding, preprocess.normalise)
    if preprocess.normalise == "letters" and (num_replaced := len(_NOT_KEPT.findall(original))):
        replaced = quantity(num_replaced, "character")
        remarks.insert(0, f"cleaned like the corpus, by preprocess.normalise: spaces replace {replaced} other than A-Z")
    if len(text) > MAX_SHOWN_CHARS:
        remarks.append(f"the page shows the first {MAX_SHOWN_CHARS:,} of {len(text):,} characters")
    return UserText(text, remarks)


def score_user_text(layout: Layout, text: str, names: Sequence[str], device: torch.device) -> dict[str, dict[str, Any]]:
    """Return for each model its metrics on a text, its kind of token, and the beginning of the text with surprisals.

    Without ``names``, all runs are used. Raises ParamsError if there is no such model, and DataError if the text has
    fewer than two tokens.
    """
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
        raise DataError(f"the text has only {quantity(len(tokens), model.vocab.token_kind.noun)}: bring a longer text")
    nats = model.score(stream.ids)
    shown = passage(model.vocab.token_kind, tokens, stream.with_unknown_cost(nats), MAX_SHOWN_CHARS)
    return {"token": model.vocab.kind, "passage": shown} | summarise(nats, stream)
