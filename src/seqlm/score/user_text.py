"""Scores a text that a user brings under models that are trained already."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.ngrams.models.smoothing import nats as ngram_nats
from seqlm.ngrams.models.storage import load_kneser_ney, load_models
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText
from seqlm.preprocess.settings import PreprocessParams
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from seqlm.score.heldout.splits import Stream, as_stream, chars_of_first, spelling_model
from seqlm.score.store import measure
from seqlm.score.surprisal_view import passage
from seqlm.score.word_to_char.scoring import BY_WORD, WordsAsCharacters
from seqlm.train.runs import run_names
from seqlm.train.settings import read_config
from seqlm.vocab.kinds.registry import KINDS, Kind, kind_of_model
from seqlm.vocab.vocabulary import Vocab

_MAX_SHOWN_CHARS = 20_000
"""Characters that the text's page shows, so that it stays a page."""


def score_user_text(
    layout: Layout, path: Path, names: Sequence[str], preprocess: PreprocessParams, device: torch.device
) -> dict[str, dict[str, Any]]:
    """Return for each model its measures of a text, its kind, and the text's beginning with surprisals.

    ``names`` are runs or n-gram models as the tables name them (``char-kneser-ney-6``);
    none of them means all runs. Raises ParamsError where there is no such model.
    """
    text = read_user_text(path, preprocess.normalise, preprocess.errors)
    kinds = {run: read_config(layout.config(run)).token for run in run_names(layout.configs)}
    return {name: _score(layout, text, name, kinds, device) for name in names or kinds}


def read_user_text(path: Path, normalise: str, errors: str) -> str:
    """Return a text cleaned as the corpus was, without its last line end.

    Raises DataError for text that cannot be decoded or has fewer than two characters.
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
        f"{name}: perplexity {perplexity} per {score['kind']}, {bits} bits per character, "
        f"{score['tokens']:,} tokens, {score['unknown_share']:.1%} of them unknown"
    )


def _score(layout: Layout, text: str, name: str, kinds: dict[str, Kind], device: torch.device) -> dict[str, Any]:
    kind = kinds.get(name) or kind_of_model(name)
    if kind is None:
        raise _unknown(name, kinds)
    vocab = Vocab.load(layout.vocab(kind), kind)
    tokens = vocab.tokenize(text)
    if len(tokens) < 2:
        raise DataError(f"the text has {len(tokens)} tokens of kind {kind}: at least two are needed")
    joined = text.replace("\n", vocab.line_separator)
    scored_chars = len(joined) - chars_of_first(kind, tokens, [joined])
    stream = as_stream(vocab, vocab.encode(tokens), tokens, scored_chars, spelling_model(vocab))
    if name in kinds:
        nats = stream_nll(load_network(layout.run(name), name, device), stream.ids)
    else:
        nats = _ngram_nats(layout, name, kinds, stream, vocab)
    shown = passage(vocab.of_kind, tokens, stream.with_unknown_cost(nats), _MAX_SHOWN_CHARS)
    return {"kind": kind, "passage": shown} | measure(nats, stream)


def _ngram_nats(layout: Layout, name: str, kinds: dict[str, Kind], stream: Stream, vocab: Vocab) -> Nats:
    if name.startswith(BY_WORD):
        words = Vocab.load(layout.vocab("word"), "word")
        model = load_kneser_ney(layout.ngrams("word"), len(words))
        if name != f"{BY_WORD}{model.order}":
            raise _unknown(name, kinds, [f"{BY_WORD}{model.order}"])
        return WordsAsCharacters(layout, words).nats(stream.ids, lambda _: model)
    models = load_models(layout.ngrams(vocab.kind), len(vocab))
    bare = name.removeprefix(f"{vocab.kind}-")
    if bare not in models:
        raise _unknown(name, kinds, [f"{vocab.kind}-{other}" for other in models])
    return ngram_nats(models[bare], stream.ids)


def _unknown(name: str, runs: dict[str, Kind], counted: Sequence[str] | None = None) -> ParamsError:
    counted = [*(f"{kind}-kneser-ney-N" for kind in KINDS), f"{BY_WORD}N"] if counted is None else counted
    return ParamsError(f"--run {name}: no such model; there are {', '.join([*runs, *counted])}")
