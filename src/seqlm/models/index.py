"""The models of a run, or of a folder of exported models, by name.

Exported files have the paths that they have in a run, so both are opened in the same way.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from operator import getitem
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_csv, reading
from seqlm.core.layout import Layout
from seqlm.core.settings import Device
from seqlm.models.info import Description, ModelFile, NetworkDescription, read_description
from seqlm.models.language_model import LanguageModel
from seqlm.models.mixture import Mixture
from seqlm.models.opening import ModelOpener
from seqlm.models.saving import is_export, saved_names
from seqlm.ngrams.models.registry import NGRAMS_FILE
from seqlm.vocab.kinds import KINDS

if TYPE_CHECKING:
    import pandas as pd

    from seqlm.models.networks import StaticNetwork

Descriptions = dict[str, Description]


class ModelNotFoundError(ParamsError, KeyError):
    """No model has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Models(Mapping[str, LanguageModel]):
    """The models of a finished run by name. A model is loaded when it is asked for, and then
    kept."""

    def __init__(
        self, layout: Layout, device: Device | None = "cpu", num_threads: int | None = None
    ) -> None:
        """Lazily open the models below ``layout``; ``device`` and ``num_threads`` override each
        network's own."""
        self.layout = layout
        self._arguments = layout.root.resolve(), device, num_threads
        self._opener = ModelOpener(layout, device, num_threads)
        self._models: dict[str, LanguageModel] = {}
        self._lock = RLock()  # to open a mixture opens its members

    def __getitem__(self, name: str) -> LanguageModel:
        """Return a model. Raises ModelNotFoundError, which is a KeyError too, if there is none of
        this name."""
        with self._lock:
            if name not in self._models:
                self._models[name] = self._open_named(name)
            return self._models[name]

    def _open_named(self, name: str) -> LanguageModel:
        description = self.description(name)
        model = self._open(description)
        if model.info != description.info:
            problem = f"describes {name!r} as it was made before: run the pipeline again"
            raise DataError(f"{description.path}: {problem}")
        model.opener = getitem, (self, name)
        model.source_files = self.layout.root, self.files(name)
        return model

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle where the models are; they are opened there again."""
        return open_models, self._arguments

    @property
    def saved(self) -> list[str]:
        """The models that were saved to this folder, without those that came along; of a run, all
        models."""
        return saved_names(self.layout.root) or list(self)

    def __iter__(self) -> Iterator[str]:
        for descriptions in self._groups():
            yield from descriptions

    def __len__(self) -> int:
        return sum(map(len, self._groups()))

    def __repr__(self) -> str:
        return f"Models({str(self.layout.root)!r}): {', '.join(self)}"

    @property
    def table(self) -> "pd.DataFrame":
        """The main table: name, family and metrics of every model, the best one first.

        Raises DataError if these are saved models, which have none."""
        if saved_names(self.layout.root):
            raise DataError(f"{self.layout.root}: saved models have no table: open their run")
        return read_csv(self.layout.reports("evaluate", "table.csv"))

    def description(self, name: str) -> Description:
        """Return what is stored of a model. Raises ModelNotFoundError."""
        for descriptions in self._groups():
            if name in descriptions:
                return descriptions[name]
        choice = ", ".join(self) or "none, because no run is finished here"
        raise ModelNotFoundError(f"there is no model {name!r}: choose from {choice}")

    def files(self, name: str) -> list[Path]:
        """Return the files and folders that a model and its members need."""
        description = self.description(name)
        files = set(self._opener.files(description))
        # Models that keep counting may have an order that no static model has; they count
        # everything themselves.
        if description.info.family != "ngram":
            for member in description.info.members:
                files.update(self.files(member))
        return sorted(files)

    def _groups(self) -> Iterator[Descriptions]:
        """Yield all descriptions; those of a later group are read only if an earlier one lacks the
        model."""
        yield self.networks
        yield self.ngrams
        yield self.mixtures
        yield self._dynamic

    @cached_property
    def networks(self) -> Descriptions:
        """The networks, as they were trained."""
        return self._read(self.layout.descriptions_of_runs(), NetworkDescription)

    @cached_property
    def ngrams(self) -> Descriptions:
        """The static n-gram models. Some are derived: small-sample models, and the best model over
        words as a model over characters."""
        opener, infos = self._opener, []
        counted = [kind for kind in KINDS if (self.layout.ngrams(kind) / NGRAMS_FILE).is_file()]
        for kind in counted:
            infos += opener.ngram_infos(kind)
        if "word" in counted and self.layout.vocab("char").is_file():
            infos += opener.char_from_words_infos()
        return {
            info.name: Description(
                info, {}, self.layout.ngrams(info.counted_token or info.token) / NGRAMS_FILE
            )
            for info in infos
        }

    @cached_property
    def mixtures(self) -> Descriptions:
        """The mixtures that the ``evaluate`` stage has stored."""
        return self._read(sorted(self.layout.mixtures.glob("*.json")))

    @cached_property
    def _dynamic(self) -> Descriptions:
        """The models that keep learning, which are described where their scores are stored."""
        described = self._read(sorted(self.layout.scores.rglob("score.json")))
        return {
            name: description for name, description in described.items() if description.info.dynamic
        }

    @staticmethod
    def _read(paths: list[Path], form: Any = ModelFile) -> Descriptions:
        read = [(read_description(path, form), path) for path in paths]
        return {one.model.name: Description(one.model, one.metadata, path) for one, path in read}

    def _open(self, description: Description) -> LanguageModel:
        info, metadata, opener = description.info, description.metadata, self._opener
        if info.family == "ngram":
            return opener.ngram(info)
        if any(self.description(name).info.family == "mixture" for name in info.members):
            raise DataError(f"{description.path}: a member is a mixture: {ModelFile.advice}")
        members = [self[name] for name in info.members]
        if info.family == "mixture":
            return Mixture(members, [metadata.weights[name] for name in info.members])
        if info.dynamic:
            choices, static = metadata.choices, cast("StaticNetwork", members[0])
            return opener.dynamic_network(static, choices.dynamic_lr, choices.dynamic_decay)
        return opener.network(info.name)


def open_models(
    folder: Path, device: Device | None = "cpu", num_threads: int | None = None
) -> Models:
    """Return the models of a finished run, or of a folder of exported ones.

    Raises DataError if there is neither, or if an exported file was changed.
    """
    layout = Layout(folder.resolve())  # the working folder may change before a model is read
    with reading(folder):
        if not is_export(folder) and not layout.models.is_dir():
            raise DataError(
                f"{folder}: holds no finished run: run the pipeline there, or name another folder"
            )
    return Models(layout, device, num_threads)
