"""Surprisals of the words that readers saw: the rows of a table, its offsets, contexts, and groups."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import seqlm
from seqlm.core.errors import DataError
from seqlm.models.language_model import LanguageModel
from seqlm.models.loading import Models
from seqlm.models.ngram_models import NGram, Recounting
from seqlm.ngrams.models.base import Uniform
from smoke import ROOT

LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"
EIGHTEEN = "The old man, who didn't care -- he'd said so -- paid $5.00 in 1984 for it."
CHOSEN = [
    "small", "small+dynamic", "char-kneser-ney-3", "char-kneser-ney-4+dynamic", "word-kneser-ney-3",
    "word-kneser-ney-3+dynamic", "subword-kneser-ney-3", "char-by-word-kneser-ney-3", "char-laplace-2", "word-uniform",
]  # fmt: skip


UNCLEANED = {f"{kind}{sep!r}": (kind, sep) for kind in ("char", "word", "subword") for sep in ("", " ", "\n")}


@pytest.fixture(scope="module")
def kinds(models: Models) -> dict[str, LanguageModel]:
    """Models of every kind, of texts that are cleaned and that are not, with each way to join lines."""
    found: dict[str, LanguageModel] = {name: models[name] for name in CHOSEN}
    found["mixture"] = next(each for each in models.values() if each.info.family == "mixture")
    found["arpa"] = seqlm.open_arpa(LMPLZ)
    for name, (kind, separator) in UNCLEANED.items():
        uniform = models[f"{kind}-uniform"]
        vocab = replace(uniform.vocab, line_separator=separator, normalise="none", separators=None)
        found[name] = NGram(uniform.info, vocab, Recounting.fixed(Uniform(len(vocab))))
    joined = replace(models["char-uniform"].vocab, line_separator="")
    found["joined"] = NGram(models["char-uniform"].info, joined, Recounting.fixed(Uniform(len(joined))))
    return found


PIECES = st.one_of(
    st.sampled_from(
        ["the", "Sea", "didn't", "“out”", "e\u0301te\u0301", "--", "$5.00", "1984", "☂", "ü", "(and)", "a-b"]
    ),
    st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\n\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("name", [*CHOSEN, *UNCLEANED, "mixture", "arpa", "joined"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8)
@given(text=TEXTS, context=st.sampled_from([None, "and so", "the land.\n", "5"]), score_first=st.booleans())
@example(text=EIGHTEEN, context=None, score_first=False)
@example(text="'the\r\n\n -- \n sea'", context="the", score_first=False)
@example(text="...", context=None, score_first=False)
@example(text="", context=None, score_first=True)
def test_every_character_belongs_to_one_row(
    name: str, text: str, context: str | None, score_first: bool, kinds: dict[str, LanguageModel]
) -> None:
    model = kinds[name]
    noun, options = model.vocab.token_kind.noun, {"context": context, "score_first": score_first}
    total = total_bits(model, text, **options)
    for by, space in units_of(model):
        table = model.surprisals(text, by, space, **options)
        position = 0
        for row in table.itertuples():
            assert position <= row.start <= row.end, by
            assert not text[position : row.start].strip(), by
            assert row.original == text[row.start : row.end], by
            assert not math.isnan(row.bits) or row.reason, by
            position = row.end
        assert not text[position:].strip(), by
        assert set(table["reason"]) <= {
            "", "removed by cleaning", "empty", "part of the token before",
            f"not scored: the first {noun}", f"without the first {noun}",
        }  # fmt: skip
        if space == "before":
            assert table["bits"].sum() == pytest.approx(total), by
    words = text.split()
    table = model.surprisals(words=words, **options)
    assert table["original"].tolist() == words
    assert table["bits"].sum() == pytest.approx(total_bits(model, " ".join(words), **options))


def units_of(model: LanguageModel) -> Iterator[tuple[Any, Any]]:
    kind = model.vocab.token_kind
    for by in ("token", "char", "word", "line"):
        if by != "char" or kind.is_lossless:
            yield by, "before"
            if by != "word" or not kind.is_lossless or kind.is_character:
                yield by, "after"


def total_bits(model: LanguageModel, text: str, **options: Any) -> float:
    """Return the bits of a text that ``score`` finds; 0 for a text without a scored token."""
    try:
        score = model.score_tokens(text, **options)
    except DataError:
        return 0.0
    assert score.score() == model.score(text, **options)
    return score.score().bits_per_character * max(score.stream.scored_chars, 1)
