"""N-gram models that stay as they are: they can be made smaller, saved, and written as ARPA files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout, as_path
from seqlm.models.manifest import new_folder, seal
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
        write_arpa(as_path(path, "path"), self.model, self.vocab.tokens)

    def save(self, folder: str | Path) -> None:
        """Write the model to a new folder, from which ``seqlm.open(folder)[name]`` reads it.

        Raises ParamsError if the folder exists and is not empty.
        """
        model, kind = self.model, self.vocab.kind
        if not isinstance(model, InterpolatedModel | PrunedKneserNey):
            raise ParamsError(f"{self.name}: holds nothing to save")
        with new_folder(as_path(folder, "folder")) as work:
            self.vocab.save(Layout(work).vocab(kind))
            ngrams = Layout(work).ngrams(kind)
            if isinstance(model, PrunedKneserNey):
                model.save(ngrams, self.vocab.key)
            else:
                tables = [(table.keys, table.counts) for table in model.counts.tables[: model.order]]
                counts = NgramCounts(tables, model.counts.starts[: model.order])
                save_models(ngrams, counts, {model.smoothing: model.settings}, self.vocab.key)
            seal(work, [self.name])
