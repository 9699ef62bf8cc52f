"""Finding trained models by name."""

from collections.abc import Callable

import pytest

from seqlm.core.errors import DataError, ParamsError
from seqlm.score.model_lookup import find_models


def source(asked: list[str], *names: str) -> Callable[[], dict[str, int]]:
    def models() -> dict[str, int]:
        asked.extend(names)
        return dict.fromkeys(names, 0)

    return models


def broken() -> dict[str, int]:
    raise DataError("vocab.json: no such file")


def test_sources_are_asked_until_all_names_are_found() -> None:
    asked: list[str] = []
    sources = [source(asked, "a", "b"), source(asked, "c"), source(asked, "d"), broken]
    assert list(find_models(["c", "a"], sources)) == ["c", "a"]
    assert asked == ["a", "b", "c"]


def test_without_names_all_models_are_found() -> None:
    assert list(find_models([], [source([], "a", "b"), source([], "c")])) == ["a", "b", "c"]
    with pytest.raises(DataError, match=r"vocab\.json"):
        find_models([], [source([], "a"), broken])


def test_a_source_that_fails_matters_only_if_a_name_remains() -> None:
    sources = [source([], "a"), broken, source([], "b")]
    assert list(find_models(["b"], sources)) == ["b"]
    with pytest.raises(ParamsError, match=r"^--model x: no such model: choose from a, b \(vocab.json: no such file\)$"):
        find_models(["x", "a"], sources)
