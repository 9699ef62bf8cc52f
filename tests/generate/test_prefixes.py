"""The prefixes that models continue: those of the settings, or the beginning of val."""

from pathlib import Path

import pytest

from seqlm.core.errors import ParamsError
from seqlm.core.settings import check
from seqlm.generate.samples import chosen_prefixes
from seqlm.generate.settings import GenerateParams
from small_training import prepare_stage

OTHERS = {"temperatures": [0.0], "top_k": None, "top_p": None, "num_preds": 1}


def test_auto_is_the_beginning_of_val(tmp_path: Path) -> None:
    layout = prepare_stage(tmp_path, "the sea came in and the sea went out again\n")
    # "the sea came in and " has twenty characters: the piece ends before its last space.
    assert chosen_prefixes("auto", layout) == ["the sea came in and", "the sea went out"]
    assert chosen_prefixes(["a", "b"], layout) == ["a", "b"]


def test_the_setting_is_a_list_or_auto() -> None:
    assert check({"prefixes": "auto", **OTHERS}, "generate", GenerateParams, source="x").prefixes == "auto"
    for wrong in ("none_such", [], [""], None, 3):
        with pytest.raises(ParamsError, match=r"generate\.prefixes"):
            check({"prefixes": wrong, **OTHERS}, "generate", GenerateParams, source="x")
