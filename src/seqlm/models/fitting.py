"""Training n-gram models without the pipeline. Networks are trained by the pipeline only."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from pydantic import Field

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import write_text
from seqlm.core.settings import check
from seqlm.models.ngrams import NGram
from seqlm.models.surprisals import are_several, require_text
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.settings import Epsilon
from seqlm.ngrams.settings import Unknown as Unknown
from seqlm.preprocess.cleaning import clean_text
from seqlm.vocab.corpus import build_corpus, load_split
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.settings import Order

By = Literal["char", "word"]
Smoothing = Literal["kneser_ney", "laplace"]
Normalise = Literal["letters", "none"]
_MinFreq = Annotated[int, Field(ge=1, le=10**9)]


def fit_ngram(
    texts: str | Iterable[str],
    order: int = 3,
    by: By = "word",
    smoothing: Smoothing = "kneser_ney",
    *,
    normalise: Normalise = "none",
    min_freq: int = 1,
    unknown: Unknown = "good_turing",
    epsilon: float = 1.0,
) -> NGram:
    """Return an n-gram model of some texts, which are read one after another, without sentence marks.

    ``by``: the kind of token, char or word. ``normalise``: ``letters`` cleans the texts as the book does, and later
    those that are scored; ``none`` leaves them as they are. ``min_freq``: rarer tokens are unknown. ``unknown``: how
    likely ``<unk>`` is in a Kneser-Ney model, as the setting ``ngrams.unknown`` says. ``epsilon``: that of every order
    in a Laplace model. Raises ParamsError for a wrong argument, and DataError if the texts have fewer tokens than
    ``order``.
    """
    order = _checked(order, "order", Order)
    by = _checked(by, "by", By)
    smoothing = _checked(smoothing, "smoothing", Smoothing)
    normalise = _checked(normalise, "normalise", Normalise)
    min_freq = _checked(min_freq, "min_freq", _MinFreq)
    settings: Mapping[str, Any] = {
        "unknown": _checked(unknown, "unknown", Unknown),
        "epsilons": [_checked(epsilon, "epsilon", Epsilon)] * order,
        "backoff": "lower",
        "chosen_on_val": False,
    }
    method: type[NGramModel] = KneserNey if smoothing == "kneser_ney" else Laplace
    separator = "\n" if normalise == "none" else " "
    with TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "train.txt"
        text = "\n".join(clean_text(each, normalise) for each in _all_texts(texts))
        kind = token_kind(by)
        tokens = kind.pretokenize(text, separator)
        if len(tokens) < order:
            raise DataError(f"fit_ngram: fewer than {order} {kind.noun}s: give more text, not the name of a file")
        del tokens
        write_text(path, text + "\n")
        try:
            vocab = build_corpus({"train": path}, folder, by, separator, min_freq, [], normalise=normalise)
        except ParamsError as error:
            problem = f"no {kind.noun} of the texts occurs so often: lower it"
            raise ParamsError(f"fit_ngram: min_freq = {min_freq}: {problem}") from error
        ids = load_split(folder, "train")
    return NGram.of(method.build(count_ngrams(ids, len(vocab), order), settings)[-1], vocab)


def _checked(value: Any, name: str, kind: Any) -> Any:
    return check(value, name, kind, source="fit_ngram")


def _all_texts(texts: str | Iterable[str]) -> Iterable[str]:
    """Yield the texts. Raises ParamsError if one is no string."""
    if not isinstance(texts, str) and not are_several(texts):
        raise ParamsError(f"fit_ngram: texts must be a string or several, not {type(texts).__name__}")
    for text in [texts] if isinstance(texts, str) else texts:
        yield require_text(text, "a text")
