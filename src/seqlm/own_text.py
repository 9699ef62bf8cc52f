"""Scores a text that a user brings under models that are trained already."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seqlm.errors import DataError, ParamsError
from seqlm.evaluation import Nats, Stream, measure, read_stream, spelling_model
from seqlm.metrics import stream_nats
from seqlm.ngrams.models import nats as ngram_nats
from seqlm.ngrams.storage import load_models
from seqlm.rnn.building import load_model
from seqlm.surprisal import passage
from seqlm.text import clean_file
from seqlm.vocab import Kind, Vocab

_KINDS: tuple[Kind, ...] = ("char", "word")


@dataclass(frozen=True)
class Models:
    """Where trained models lie, and the kind of token of each run."""

    runs: Path
    ngrams: Path
    corpus: Path
    kinds: dict[str, Kind]
    """Run -> kind of token."""


def read_own_text(path: Path, normalise: str, errors: str) -> str:
    """Return a text cleaned as the corpus was, without its last line end.

    Raises DataError for text that cannot be decoded or has fewer than two characters.
    """
    target = io.StringIO()
    clean_file(path, target, normalise, errors)
    text = target.getvalue().removesuffix("\n")
    if len(text.strip()) < 2:
        raise DataError(f"{path}: too little is left after cleaning: bring a longer text")
    return text


def score_own_text(text: str, name: str, models: Models, device: torch.device, num_chars: int) -> dict[str, Any]:
    """Return a model's measures of a text, its kind, and the text's first ``num_chars`` characters with surprisals.

    ``name`` is a run or an n-gram model as the tables name it (``char-kneser-ney-6``).
    Raises ParamsError where there is no such model.
    """
    kind = models.kinds.get(name) or next((kind for kind in _KINDS if name.startswith(f"{kind}-")), None)
    if kind is None:
        raise _unknown(name, models)
    vocab = Vocab.load(models.corpus / kind / "vocab.json")
    tokens = vocab.tokenize(text)
    if len(tokens) < 2:
        raise DataError(f"the text has {len(tokens)} tokens of kind {kind}: at least two are needed")
    joined = text.replace("\n", vocab.line_separator)
    stream = read_stream(vocab, vocab.encode(tokens), tokens, len(joined), spelling_model(vocab))
    nats = _nats(name, kind, models, stream, len(vocab), device)
    shown = passage(tokens, " " if kind == "word" else "", nats, num_chars)
    return {"kind": kind, "passage": shown} | measure(nats, stream)


def _nats(name: str, kind: Kind, models: Models, stream: Stream, vocab_size: int, device: torch.device) -> Nats:
    if name in models.kinds:
        return stream_nats(load_model(models.runs / name, device, run=name), stream.ids)
    counted = load_models(models.ngrams / kind, vocab_size)
    bare = name.removeprefix(f"{kind}-")
    if bare not in counted:
        raise _unknown(name, models, [f"{kind}-{other}" for other in counted])
    return ngram_nats(counted[bare], stream.ids)


def _unknown(
    name: str, models: Models, counted: Sequence[str] = ("char-kneser-ney-N", "word-kneser-ney-N")
) -> ParamsError:
    return ParamsError(f"--run {name}: no such model; there are {', '.join([*models.kinds, *counted])}")
