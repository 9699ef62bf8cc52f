"""Training n-gram models without the pipeline. Networks are trained by the pipeline only."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.settings import check_argument
from seqlm.models.ngrams import NGram
from seqlm.models.surprisals import is_collection, require_text
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.settings import Epsilon, Unknown
from seqlm.preprocess.cleaning import clean_text
from seqlm.vocab.corpus import intern_texts
from seqlm.vocab.kinds import sample, token_kind
from seqlm.vocab.separators import estimate_separators
from seqlm.vocab.settings import Order
from seqlm.vocab.vocabulary import SplitInfo, Vocab, choose_tokens

Token = Literal["char", "word"]
Smoothing = Literal["kneser_ney", "laplace"]
Normalise = Literal["letters", "none"]
_checked = partial(check_argument, function="fit_ngram")
_MinFreq = Annotated[int, Field(ge=1, le=10**9)]
_LONGEST_PATH = 256


def fit_ngram(
    texts: str | Iterable[str | Sequence[str]],
    order: int = 3,
    by: Token = "word",
    smoothing: Smoothing = "kneser_ney",
    *,
    normalise: Normalise = "none",
    min_freq: int = 1,
    unknown: Unknown = "good_turing",
    epsilon: float = 1.0,
) -> NGram:
    """Return an n-gram model of some texts, which are read one after another, without sentence
    marks.

    ``texts``: one text, or several; a text may be a list of its words too, as in nltk. ``by``: the
    kind of token, char or word. ``normalise``: ``letters`` cleans the texts as the book does, and
    later those that are scored; ``none`` leaves them as they are. ``min_freq``: rarer tokens are
    unknown. ``unknown``: how likely ``<unk>`` is in a Kneser-Ney model: as all words together that
    the texts have once (``good_turing``), or as any other word that they lack (``uniform``, KenLM's
    way). ``epsilon``: that of every order in a Laplace model. Raises ParamsError for a wrong
    argument, and DataError if the texts have fewer tokens than ``order``.
    """
    order = _checked(order, "order", Order)
    by = _checked(by, "by", Token)
    smoothing = _checked(smoothing, "smoothing", Smoothing)
    normalise = _checked(normalise, "normalise", Normalise)
    min_freq = _checked(min_freq, "min_freq", _MinFreq)
    settings: Mapping[str, Any] = {
        "unknown": _checked(unknown, "unknown", Unknown),
        "epsilons": [_checked(epsilon, "epsilon", Epsilon)] * order,
        "chosen_on_val": False,
    }
    method: type[NGramModel] = KneserNey if smoothing == "kneser_ney" else Laplace
    separator = "\n" if normalise == "none" else " "
    kind = token_kind(by)
    text = "\n".join(clean_text(text, normalise) for text in _all_texts(texts))
    seen, (parts,), (num_chars,) = intern_texts([text], kind, separator)
    separators = None if kind.is_lossless else estimate_separators("".join(sample(text)), separator)
    del text
    if sum(map(len, parts)) < order:
        raise DataError(f"fit_ngram: fewer than {order} {kind.noun}s: give more text")
    try:
        tokens, counted, ids = choose_tokens(kind, seen, parts, min_freq)
    except ParamsError as error:
        problem = f"no {kind.noun} of the texts occurs so often: lower it"
        raise ParamsError(f"fit_ngram: min_freq = {min_freq}: {problem}") from error
    train = np.concatenate([ids[part] for part in parts])
    split = SplitInfo(len(train), num_chars, counted[0], hashlib.sha256(train.data).hexdigest())
    vocab = Vocab(by, tokens, counted, separator, {"train": split}, None, normalise, separators)
    del parts, seen
    return NGram.of(method.build(count_ngrams(train, len(vocab), order), settings)[-1], vocab)


def _all_texts(texts: str | Iterable[str | Sequence[str]]) -> Iterable[str]:
    """Yield the texts. Raises ParamsError for anything else, and for the name of a file."""
    if not isinstance(texts, str) and not is_collection(texts):
        advice = ": give its text, with read_text()" if isinstance(texts, Path) else ""
        raise ParamsError(
            f"fit_ngram: texts must be a string or several, not {type(texts).__name__}{advice}"
        )
    for text in [texts] if isinstance(texts, str) else texts:
        if isinstance(text, list | tuple):
            yield " ".join(require_text(word, "a word") for word in text)
            continue
        text = require_text(text, "a text")
        if (
            len(text[:_LONGEST_PATH].encode()) < _LONGEST_PATH
            and text.isprintable()
            and Path(text).is_file()
        ):
            raise ParamsError(
                f"fit_ngram: {text!r} is a file: give its text, Path({text!r}).read_text()"
            )
        yield text
