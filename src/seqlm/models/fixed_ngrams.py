"""N-gram models that stay as they are: they can be made smaller, saved, and written as ARPA files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from seqlm.core.errors import ParamsError
from seqlm.core.files import write_errors
from seqlm.core.layout import Layout
from seqlm.models.manifest import require_new, seal
from seqlm.models.ngram_models import NGram, Recounting
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.models.base import InterpolatedModel, NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.pruned import PrunedKneserNey, smaller
from seqlm.ngrams.models.registry import save_models
from seqlm.score.model_info import describe_ngram
from seqlm.vocab.vocabulary import Vocab


class FixedNGram(NGram):
    """An n-gram model that counts nothing while it reads."""

    def __init__(self, model: NGramModel, vocab: Vocab) -> None:
        """Take a model over the tokens of a vocabulary."""
        info = describe_ngram(model.smoothing, model.order, vocab, chosen_on_val=model.chosen_on_val)
        super().__init__(info, vocab, Recounting.fixed(model))
        self.model = model

    def pruned(self, prune: Sequence[int] = (), order: int | None = None) -> Self:
        """Return a smaller Kneser-Ney model: of a lower order, or without rare n-grams, as ``lmplz --prune`` makes it.

        N-grams of order n that occur ``prune[n - 1]`` times or less are left out: ``[0, 0, 1]`` leaves out those of
        order 3 and above that occur once. Raises ParamsError for other models, if the model has no such order, and if
        the numbers fall or do not begin with 0.
        """
        if not isinstance(self.model, KneserNey):
            raise ParamsError(f"{self.name}: only a Kneser-Ney model that was not pruned before can be pruned")
        return type(self)(smaller(self.model, prune, order), self.vocab)

    def to_arpa(self, path: str | Path) -> None:
        """Write the model to an ARPA file, packed if the path ends in ``.gz``.

        Raises ParamsError if it is no Kneser-Ney model.
        """
        if not isinstance(self.model, KneserNey | PrunedKneserNey):
            raise ParamsError(f"{self.name}: only Kneser-Ney models have the form of an ARPA file")
        write_arpa(Path(path), self.model, self.vocab.tokens)

    def save(self, folder: str | Path) -> None:
        """Write the model to a new folder, from which ``seqlm.open(folder)[name]`` reads it.

        Raises ParamsError if the folder exists and is not empty.
        """
        layout, kind = Layout(Path(folder)), self.vocab.kind
        if not isinstance(self.model, InterpolatedModel | PrunedKneserNey):
            raise ParamsError(f"{self.name}: holds nothing to save")
        require_new(layout.root)
        with write_errors(layout.root):
            layout.ngrams(kind).mkdir(parents=True, exist_ok=True)
        self.vocab.save(layout.vocab(kind))
        if isinstance(self.model, PrunedKneserNey):
            self.model.save(layout.ngrams(kind), self.vocab.key)
        else:
            tables, starts = self.model.counts.tables[: self.model.order], self.model.counts.starts[: self.model.order]
            counts = NgramCounts([(table.keys, table.counts) for table in tables], starts)
            save_models(layout.ngrams(kind), counts, {self.model.smoothing: self.model.settings}, self.vocab.key)
        seal(layout.root, [self.name])
