"""Surprisals of the words that readers saw: the rows of a table, its offsets, contexts, and groups."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import seqlm
from seqlm.core.errors import DataError, ParamsError
from seqlm.models.language_model import LanguageModel
from seqlm.models.loading import Models
from seqlm.models.ngram_models import NGram, Recounting
from seqlm.ngrams.models.base import Uniform
from smoke import ROOT

LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"
SENTENCE = "The old man, who didn't care -- he'd said so -- paid $5.00 in 1984"
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
@example(text=SENTENCE, context=None, score_first=False)
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
    assert score.score() == model.score(text, **options)._replace(remarks=())
    return score.score().bits_per_character * max(score.stream.scored_chars, 1)


def test_each_word_has_a_row(models: Models) -> None:
    words = SENTENCE.split()
    table = models["small"].surprisals(words=words)
    assert len(words) == len(table) == 15
    assert table["original"].tolist() == words
    assert table["text"].tolist() == [
        "the",
        "old",
        "man",
        "who",
        "didn t",
        "care",
        "",
        "he d",
        "said",
        "so",
        "",
        "paid",
        "",
        "in",
        "",
    ]
    removed = ["--", "--", "$5.00", "1984"]
    assert table.loc[table["reason"] == "removed by cleaning", "original"].tolist() == removed
    assert table.loc[table["bits"].isna(), "original"].tolist() == removed
    assert table["reason"][0] == "without the first character"
    # A word that cleaning divides has the bits of all its characters, and of the space before it.
    chars = models["small"].surprisals(SENTENCE, by="char")
    begin, end = SENTENCE.index("didn't") - 1, SENTENCE.index("didn't") + len("didn't")
    inside = (chars["start"] >= begin) & (chars["end"] <= end)
    assert chars.loc[inside, "text"].tolist() == list(" didn t")
    assert table["bits"][4] == pytest.approx(chars.loc[inside, "bits"].sum())
    # The text itself gives the same rows, with places in it.
    again = models["small"].surprisals(SENTENCE, by="word")
    pd.testing.assert_frame_equal(again, table)
    assert (again["start"][4], again["end"][4]) == (17, 23)


# The beginnings of two sentences of The Time Machine (1895), as a screen shows them in self-paced reading: a cross, and
# then one word after the other. The times are made up.
FIRST, SECOND = (
    ["+", "'It", "sounds", "plausible", "enough", "to-night,'", "said", "the", "Medical", "Man;"],
    ["+", "The", "Time", "Traveller", "(for", "so", "it", "will", "be", "convenient", "to", "speak", "of", "him)"],
)
SENTENCES = [1] * len(FIRST) + [2] * len(SECOND)
TIMES = "503 312 341 455 402 430 301 268 377 420 498 287 299 410 281 290 266 305 278 433 262 350 258 391"
READING_TIMES = pd.DataFrame(
    {"word": [*FIRST, *SECOND], "sentence": SENTENCES, "ms": [int(time) for time in TIMES.split()]},
    index=range(100, 124),
)


def test_reading_times_are_joined_to_surprisals_by_hand(models: Models) -> None:
    uniform, bits = models["char-uniform"], math.log2(len(models["char-uniform"].vocab))
    found = uniform.surprisals(words=READING_TIMES["word"], groups=READING_TIMES["sentence"], space="after")
    joined = READING_TIMES.assign(bits=found["bits"], reason=found["reason"], cleaned=found["text"])
    # Each character costs the same. A word costs its letters and the space after it, which the last one lacks. The
    # first character of a sentence is not scored: "t ", "sounds ", "plausible ", "enough ", "to night ", and so on.
    characters = "nan 2 7 10 7 9 5 4 8 3   nan 3 5 10 4 3 3 5 3 11 3 6 3 3"
    # b, g, k, p and v are not in train: each is also charged as one of all 1,114,112 characters.
    unknown = "0 0 0 2 1 1 0 0 0 0   0 0 0 1 0 0 0 0 1 1 0 2 0 0"
    pairs = zip(characters.split(), unknown.split(), strict=True)
    expected = [float(number) * bits + int(more) * math.log2(1_114_112) for number, more in pairs]
    assert joined["bits"].tolist() == pytest.approx(expected, nan_ok=True)
    cleaned = "|it|sounds|plausible|enough|to night|said|the|medical|man"
    cleaned += "||the|time|traveller|for|so|it|will|be|convenient|to|speak|of|him"
    assert joined["cleaned"].tolist() == cleaned.split("|")
    first, removed = "without the first character", "removed by cleaning"
    assert joined["reason"].tolist() == [removed, first, *[""] * 8, removed, first, *[""] * 12]
    assert joined[["word", "ms"]].equals(READING_TIMES[["word", "ms"]])
    # Rows of a sentence need not be together, and labels may be anything.
    shuffled = READING_TIMES.assign(sentence=["ab"[number - 1] for number in READING_TIMES["sentence"]])
    shuffled = shuffled.iloc[[*np.arange(20).reshape(2, 10).T.ravel(), 20, 21, 22, 23]]
    again = uniform.surprisals(words=shuffled["word"], groups=shuffled["sentence"], space="after")
    assert again.loc[READING_TIMES.index, "bits"].equals(found["bits"])
    assert again["group"].tolist()[:3] == ["a", "b", "a"]


@pytest.mark.parametrize("name", [*CHOSEN, "mixture", "arpa"])
def test_a_context_is_read_and_not_scored(name: str, kinds: dict[str, LanguageModel]) -> None:
    model, (before, text) = kinds[name], ("The sea came, and", "the land -- went out")
    if name in ("char-kneser-ney-4+dynamic", "word-kneser-ney-3+dynamic"):
        pytest.skip("counted anew in equal parts of the whole text")
    for by, space in units_of(model):
        whole = model.surprisals(f"{before} {text}", by, space)
        own = whole[whole["end"] > len(before) + 1].reset_index(drop=True)
        found = model.surprisals(text, by, space, context=before)
        found = found[found["end"] > 0].reset_index(drop=True)  # without the blank after the context
        if by != "line":
            assert found["text"].tolist() == own["text"].tolist()
            assert found["bits"].tolist() == pytest.approx(own["bits"].tolist(), nan_ok=True), (by, space)
        assert found["reason"].isin(["", "removed by cleaning"]).all()
    for context in (before, f"{before}\n"):
        assert model.score(text, context=context).tokens >= model.score(text).tokens


def test_a_space_after_the_context_is_added_only_if_there_is_none(kinds: dict[str, LanguageModel]) -> None:
    for name in ("small", "word-kneser-ney-3", *UNCLEANED):
        expected = kinds[name].score("sea", context="the")
        for context, text in (("the ", "sea"), ("the", " sea")):
            assert kinds[name].score(text, context=context)[:-1] == expected[:-1], name
        # Without cleaning, a tab is part of a word, so a space is added.
        assert "\tsea" in kinds["word' '"].surprisals("\tsea", context="the")["text"].tolist()


def test_the_first_token_is_scored_by_a_documented_distribution(models: Models) -> None:
    text = "the sea"
    for name in ("small", "char-kneser-ney-3", "char-by-word-kneser-ney-3"):
        table, reader = models[name].surprisals(text, "char", score_first=True), models[name].reader()
        reader.read(models[name].vocab.encode([" "]))
        expected = -math.log2(reader.next_probs()[0, models[name].vocab.encode(["t"])[0]])
        assert table["bits"][0] == pytest.approx(expected, rel=1e-5)
        assert models[name].surprisals(text, "char")["reason"][0] == "not scored: the first character"
        assert set(table["reason"]) == {""}
    words = models["word-kneser-ney-3"]
    unigram = words.reader().next_probs()[0, words.vocab.encode(["the"])[0]]
    assert words.surprisals(text, score_first=True)["bits"][0] == pytest.approx(-math.log2(unigram))
    assert words.score(text, score_first=True).tokens == words.score(text).tokens + 1 == 2
    assert words.surprisals("sea", score_first=True)["bits"].notna().all()


def test_texts_are_scored_together_as_alone(kinds: dict[str, LanguageModel]) -> None:
    texts = ["the sea came", "And, the zebra went\nout", "a no", "sea and sea", "the sea came in and the sea went out"]
    for name, model in kinds.items():
        alone = [model.score(text) for text in texts]
        for found, expected in zip(model.score(texts), alone, strict=True):
            assert found[:-1] == pytest.approx(expected[:-1]), name
            assert found.remarks == expected.remarks
        contexts = ["the", "", "land 5", "and so", "the"]
        tables = model.surprisals(texts, "word", context=contexts)
        assert tables["group"].tolist() == [index for index, text in enumerate(texts) for _ in text.split()]
        last = model.surprisals(texts[4], "word", context="the")
        pd.testing.assert_frame_equal(
            tables[tables["group"] == 4].drop(columns="group").reset_index(drop=True), last, rtol=1e-6
        )


def test_words_of_a_text_need_not_have_spaces_between_them(models: Models) -> None:
    model, text = models["char-uniform"], "the san\nd's tree."
    table = model.surprisals(text, words=["the", "san\nd", "'s", "tree", "."])
    assert table["text"].tolist() == ["the", "san d", "s", "tree", ""]
    assert (table["bits"] / math.log2(len(model.vocab))).tolist() == pytest.approx([2, 6, 2, 5, math.nan], nan_ok=True)
    assert table["start"].tolist() == [0, 4, 9, 12, 16]
    parts = models["word-uniform"].surprisals("so the sea", words=["so", "the", "s", "ea"])
    assert parts["reason"].tolist() == ["not scored: the first word", "", "", "part of the token before"]
    empty = model.surprisals(words=["the", "", " ", "sea"])
    assert empty["reason"].tolist() == ["without the first character", "empty", "empty", ""]
    assert len(model.surprisals(words=[])) == len(model.surprisals([])) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"words": "the sea"}, "words must be a list of words, not str"),
        ({"words": ["the", 3]}, r"words\[1\] must be a string, not int"),
        ({"words": ["the", math.nan]}, r"words\[1\] must be a string, but it is missing: .*keep_default_na=False"),
        ({"words": ["the", None]}, r"words\[1\] must be a string, but it is missing"),
        ({"words": ["the", "sea"], "groups": [1, math.nan]}, r"groups\[1\] is missing: give a label for each word"),
        ({"words": [["the"], [3]]}, r"words\[1\]\[0\] must be a string, not int"),
        ({"words": [["the"], "sea"]}, r"words\[1\] must be a list of strings, not str"),
        ({"words": pd.DataFrame({"word": ["the"]})}, "words must be a list of words, not DataFrame"),
        ({"words": ["a", "no"], "groups": [[1], [2]]}, r"groups\[0\] must be a number or a string, not list"),
        ({"text": "the sea", "words": ["the", "see"]}, r"words\[1\] = 'see': the text has 'sea' there"),
        ({"text": 3, "words": ["the"]}, "^the text must be a string, not int"),
        ({"text": "the", "words": [["the"]]}, "^the text must be a list of strings, not str"),
        ({"text": "the sea", "by": ""}, "by must be token, char, word, line"),
        ({"text": "the sea", "words": ["the"]}, "the text continues with 'sea' after the last word"),
        ({"text": ["the sea"], "words": [["the"], ["sea"]]}, "there are 1 texts, but words of 2"),
        ({"text": "the sea", "groups": [1]}, "groups are those of words: give words too"),
        ({"text": "a", "words": ["a"], "groups": [1]}, "with groups, give words and no text"),
        ({"words": ["the", "sea"], "groups": [1]}, "there are 2 words, but 1 groups"),
        ({"words": ["the"], "by": "char"}, "by = 'char': with words it must be word"),
        ({"text": "the sea", "context": 3}, "the context must be a string, not int"),
        ({"text": ["the sea", "a"], "context": ["the"]}, "there are 2 texts, but 1 contexts"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], complaint: str, models: Models) -> None:
    with pytest.raises(ParamsError, match=complaint):
        models["small"].surprisals(**arguments)


def test_a_short_text_among_others_is_named(models: Models) -> None:
    with pytest.raises(DataError, match="small: text 1 has only 0 characters: use a longer text"):
        models["small"].score(["the sea", "..."])
