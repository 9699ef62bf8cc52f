"""Surprisals of the words that readers saw: the rows of a table, their beginnings, contexts, and groups."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import seqlm
from seqlm.core.errors import DataError, ParamsError
from seqlm.models.index import Models
from seqlm.models.inputs import By, Space
from seqlm.models.language_model import LanguageModel
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.networks.building import build_network
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.models.base import Uniform
from small_runs import config
from smoke import ROOT

LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"
SENTENCE = "The old man, who didn't care -- he'd said so -- paid $5.00 in 1984"
CHOSEN = [
    "small", "small+dynamic", "char-kneser-ney-3", "char-kneser-ney-4+dynamic", "word-kneser-ney-3",
    "word-kneser-ney-3+dynamic", "subword-kneser-ney-3", "char-by-word-kneser-ney-3", "char-laplace-2", "word-uniform",
]  # fmt: skip
UNCLEANED = {f"{kind}{sep!r}": (kind, sep) for kind in ("char", "word", "subword") for sep in ("", " ", "\n")}
OTHERS = ["mixture", "arpa", "network over words"]
REASONS = {"", "removed by cleaning", "part of the token before"}


@pytest.fixture(scope="module")
def kinds(models: Models) -> dict[str, LanguageModel]:
    """Models of every kind, of texts that are cleaned and that are not, with each way to join lines."""
    found: dict[str, LanguageModel] = {name: models[name] for name in CHOSEN}
    found["mixture"] = next(each for each in models.values() if each.info.family == "mixture")
    found["arpa"] = seqlm.open_arpa(LMPLZ, eos=False)
    for name, (kind, separator) in UNCLEANED.items():
        vocab = replace(models[f"{kind}-uniform"].vocab, line_separator=separator, normalise="none", separators=None)
        found[name] = NGram.of(Uniform(NgramCounts([(np.arange(len(vocab)),) * 2])), vocab)
    words = models["word-uniform"].vocab
    network = build_network(config("words", token="word"), len(words), 0)
    found["network over words"] = StaticNetwork(replace(models["small"].info, token="word"), words, network)
    return found


def total_bits(model: LanguageModel, text: str, context: str | None = None) -> float:
    """Return the bits of all tokens of a text, and of the spelling of unknown ones."""
    found = model.score_text(text, context)
    if not len(found.scored[0]):
        return 0.0
    score = model.score(text, context=context)
    assert found.score("the text", text)[:-1] == score[:-1]
    return (score.nll + found.encoded.spelling[np.isfinite(found.nll)].sum()) / math.log(2)


def ways(model: LanguageModel) -> Iterator[Space]:
    kind = model.vocab.token_kind
    yield from ("before",) if kind.is_lossless and not kind.is_character else get_args(Space)


PIECES = st.one_of(
    st.sampled_from(["the", "Sea", "didn't", "“out”", "e\u0301te\u0301", "--", "$5.00", "1984", *"☂ü", "(and)", "a-b"]),
    st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\n\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)


@pytest.mark.parametrize("name", [*CHOSEN, *UNCLEANED, *OTHERS])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8)
@given(text=st.lists(PIECES, max_size=12).map("".join), context=st.sampled_from([None, "and so", "the land.\n", "5"]))
@example(text=SENTENCE, context=None)
@example(text="'the\r\n\n -- \n sea'", context="the")
@example(text="...", context=None)
@example(text="", context=None)
def test_each_word_has_a_row_and_all_bits_belong_to_words(
    name: str, text: str, context: str | None, kinds: dict[str, LanguageModel]
) -> None:
    model, words = kinds[name], text.split()
    whole = " ".join(words)
    total = pytest.approx(total_bits(model, whole, context))
    has_ink = model.score_text(whole, context).encoded.text.strip() and words
    assert model.surprisals(whole, context=context)["bits"].sum() == total
    for space in ways(model):
        table = model.surprisals(words=words, context=context, space=space)
        assert len(table) == len(words)
        assert set(table["reason"]) <= REASONS | {"not scored: the model has no distribution of a first token"}
        assert (table["bits"].isna() == (table["reason"] != "")).all()
        # With "after", the space between the context and the text belongs to neither. A first word that cleaning
        # divides has no bits if its first part has none.
        if has_ink and (space == "before" or context is None) and not table["reason"].str.startswith("not").any():
            assert table["bits"].sum() == total, space


def test_each_word_is_cleaned_alone(models: Models) -> None:
    words = SENTENCE.split()
    table = models["small"].surprisals(words=words)
    cleaned = ["the", "old", "man", "who", "didn t", "care", "", "he d", "said", "so", "", "paid", "", "in", ""]
    assert table["text"].tolist() == cleaned
    assert list(table) == ["position", "text", "bits", "unknown", "reason"]
    # A word that cleaning divides has the bits of all its characters, and of the space before it.
    tokens = models["small"].surprisals(SENTENCE)
    begin = "".join(tokens["text"]).index(" didn t")
    assert table["bits"][4] == pytest.approx(tokens["bits"][begin : begin + len(" didn t")].sum())
    # The text itself gives the same rows.
    pd.testing.assert_frame_equal(models["small"].surprisals(SENTENCE, by="word"), table)


def test_reading_times_are_joined_to_surprisals_by_hand(models: Models) -> None:
    # Two sentences as a screen shows them in self-paced reading: a cross, and then one word after the other.
    words = ["+", "'It", "sounds", "plausible", "to-night,'", "+", "The", "(for", "so", "him)"]
    times = pd.DataFrame({"word": words, "sentence": [1] * 5 + [2] * 5, "ms": range(300, 310)}, index=range(100, 110))
    uniform, bits = models["char-uniform"], math.log2(len(models["char-uniform"].vocab))
    found = uniform.surprisals(words=times["word"], groups=times["sentence"], space="after")
    joined = times.assign(bits=found["bits"], reason=found["reason"], cleaned=found["text"])
    # Each character costs the same. A word costs its letters and the space after it, which the last one lacks: "it ",
    # "sounds ", "plausible ", "to night". b, g and p are not in train: each is also charged as one of all 1,114,112
    # characters. The crosses are removed.
    characters, unknown = ([math.nan, 3, 7, 10, 8, math.nan, 4, 4, 3, 3], [0, 0, 0, 2, 1, 0, 0, 0, 0, 0])
    expected = [number * bits + more * math.log2(1_114_112) for number, more in zip(characters, unknown, strict=True)]
    assert joined["bits"].tolist() == pytest.approx(expected, nan_ok=True)
    assert joined["cleaned"].tolist() == ["", "it", "sounds", "plausible", "to night", "", "the", "for", "so", "him"]
    assert joined["reason"].tolist() == ["removed by cleaning", *[""] * 4] * 2
    assert joined[["word", "ms"]].equals(times[["word", "ms"]])
    # Rows of a sentence need not be together, and labels may be anything.
    shuffled = times.assign(sentence=["ab"[number - 1] for number in times["sentence"]])
    shuffled = shuffled.iloc[np.arange(10).reshape(2, 5).T.ravel()]
    again = uniform.surprisals(words=shuffled["word"], groups=shuffled["sentence"], space="after")
    assert again.loc[times.index, "bits"].equals(found["bits"])
    assert again["group"].tolist()[:3] == ["a", "b", "a"]


def test_a_space_belongs_to_the_word_before_or_after_it(models: Models) -> None:
    model, text = models["small"], "the sea came"
    tokens = model.surprisals(text)["bits"].to_numpy()
    before, after = (model.surprisals(text, "word", space)["bits"].tolist() for space in get_args(Space))
    # "the", " sea", " came", or "the ", "sea ", "came".
    assert before == pytest.approx([tokens[:3].sum(), tokens[3:7].sum(), tokens[7:].sum()])
    assert after == pytest.approx([tokens[:4].sum(), tokens[4:8].sum(), tokens[8:].sum()])
    with pytest.raises(ParamsError, match="include the space before a word"):
        models["subword-kneser-ney-3"].surprisals(text, "word", "after")


def test_the_bytes_of_a_character_belong_to_its_word(kinds: dict[str, LanguageModel]) -> None:
    model = kinds["subword' '"]
    tokens = model.surprisals("üa")
    assert tokens["text"].tolist() == [" ", "<0xC3>", "<0xBC>", "a"]
    words = model.surprisals("üa", words=["ü", "a"])
    assert words["bits"].tolist() == pytest.approx([tokens["bits"][:3].sum(), tokens["bits"][3]])


@pytest.mark.parametrize("name", ["small", "char-kneser-ney-3", "char-by-word-kneser-ney-3", "subword-kneser-ney-3"])
def test_a_text_begins_as_if_it_followed_a_space(name: str, models: Models) -> None:
    model = models[name]
    reader, expected = model.reader(), 0.0
    reader.read(int(model.vocab.encode([" "])[0]))
    # A subword includes the space before it, so it follows another one.
    for token in model.vocab.encode(model.vocab.tokenize("he" if name.startswith(("small", "char")) else " he")):
        expected -= math.log2(reader.next_probs()[token])
        reader.read(int(token))
    found = model.surprisals(words=["He"])
    assert found["bits"].tolist() == pytest.approx([expected], rel=1e-5)
    assert model.surprisals("He sat", by="word")["bits"][0] == pytest.approx(expected, rel=1e-5)


def test_a_first_word_is_one_without_a_known_context(kinds: dict[str, LanguageModel]) -> None:
    words, network = kinds["word-kneser-ney-3"], kinds["network over words"]
    unigram = words.reader().next_probs()[words.vocab.encode(["the"])[0]]
    assert words.surprisals("the sea")["bits"][0] == pytest.approx(-math.log2(unigram))
    assert words.score("the").tokens == 1
    # A network over words has read nothing from which it could predict a first one.
    found = network.surprisals("the sea came", by="word")
    assert found["reason"].tolist() == ["not scored: the model has no distribution of a first token", "", ""]
    assert found["bits"].isna().tolist() == [True, False, False]
    assert network.score("the sea came").tokens == 2
    assert network.surprisals("sea", context="the")["bits"].notna().all()
    with pytest.raises(DataError, match="the text has no word that can be scored: use a longer text"):
        network.score("the")
    # A first word is drawn by its frequency in train.
    assert network.generate("", 1, temperature=0) == network.vocab.tokens[1]
    with pytest.raises(DataError, match="has no distribution of a first word: pass a prefix"):
        network.next_tokens()


@pytest.mark.parametrize("name", [*CHOSEN, *UNCLEANED, *OTHERS])
def test_the_entropy_before_each_token_and_the_likeliest_next_ones(name: str, kinds: dict[str, LanguageModel]) -> None:
    model = kinds[name]
    table = model.surprisals("the sea", entropy=True, context="came")
    assert table.drop(columns="entropy").equals(model.surprisals("the sea", context="came"))
    if name.endswith(("uniform", "'")):
        assert table["entropy"].to_numpy() == pytest.approx(math.log2(len(model.vocab)))
    following = model.next_tokens("came the", top=len(model.vocab))
    assert list(following) == ["token", "probability", "bits"]
    assert following["probability"].is_monotonic_decreasing
    assert following["probability"].sum() == pytest.approx(1, abs=1e-3)
    assert 2 ** -following["bits"].to_numpy() == pytest.approx(following["probability"])
    assert following[:3].equals(model.next_tokens("came the", top=3))
    if not model.vocab.token_kind.is_lossless:  # "sea" is the second token; dynamic models count anew elsewhere
        assert table["entropy"][1] == pytest.approx((following["probability"] * following["bits"]).sum())
        bits_of = following.set_index("token")["bits"]
        assert table["bits"][1] == pytest.approx(bits_of.get("sea"), rel=0.01)  # or counted anew earlier


def test_a_model_over_words_is_charged_for_separators_only_per_character(models: Models) -> None:
    model, text = models["word-kneser-ney-3"], "the sea came in"
    separators = model.vocab.separators
    assert separators is not None
    # Three spaces, each followed by a word.
    nats = -3 * (math.log(separators.after_word[" "]) + math.log(separators.after_blank[""]))
    score = model.score(text)
    assert score.bits_per_character == pytest.approx((score.nll + nats) / math.log(2) / len(text))
    assert model.surprisals(text)["bits"].sum() == pytest.approx(score.nll / math.log(2))
    # The second space in a row, and one at the end of a line that nothing follows.
    more = model.score(f"{text}\n\nand").bits_per_character
    assert more != pytest.approx(model.score(f"{text} and").bits_per_character)


@pytest.mark.parametrize("name", [*CHOSEN, *OTHERS])
def test_a_context_is_read_and_not_scored(name: str, kinds: dict[str, LanguageModel]) -> None:
    model, (before, text) = kinds[name], ("The sea came, and", "the land -- went out")
    if name in ("char-kneser-ney-4+dynamic", "word-kneser-ney-3+dynamic"):
        pytest.skip("counted anew in equal parts of the whole text")
    for space in ways(model):
        own = model.surprisals(f"{before} {text}", "word", space)[4:].drop(columns="position").reset_index(drop=True)
        found = model.surprisals(text, "word", space, context=before).drop(columns="position")
        pd.testing.assert_frame_equal(found, own)
    for context in (before, f"{before}\n"):
        assert model.score(text, context=context).tokens >= model.score(text).tokens


def test_a_space_after_the_context_is_added_only_if_there_is_none(kinds: dict[str, LanguageModel]) -> None:
    for name in ("small", "word-kneser-ney-3", *UNCLEANED):
        model = kinds[name]
        assert model.score(" sea", context="the")[:-1] == model.score("sea", context="the")[:-1], name
        # A space that the context has is not scored, unless it is part of the first subword.
        with_space, without = (model.surprisals("sea", context=context)["bits"] for context in ("the", "the "))
        is_scored_alone = model.vocab.token_kind.is_character
        assert without.tolist() == pytest.approx(with_space[int(is_scored_alone) :].tolist()), name
    # A tab separates words as a space does.
    assert kinds["word' '"].surprisals("\tsea\tand", "word", context="the")["text"].tolist() == ["sea", "and"]


def test_blanks_before_a_text_are_not_scored(models: Models) -> None:
    play = seqlm.fit_ngram("ROMEO:\nBut, soft!\n\nJULIET:\nAy me!\n\n" * 20, order=4, by="char")
    tokens = [play.score("But, soft!", context=f"ROMEO:{blanks}").tokens for blanks in ("", "\n", "\n\n\n\n", " ")]
    assert tokens == [11, 10, 10, 10]
    for model in (play, models["small"], models["subword-kneser-ney-3"], models["word-kneser-ney-3"]):
        expected = model.surprisals("me the sea", by="word")
        pd.testing.assert_frame_equal(model.surprisals(" me the sea", by="word"), expected)
        assert len(model.surprisals("  ", by="word")) == 0
    # A line end before a text is the separator that it follows.
    after_line_end = play.surprisals("\nBut", by="word")["bits"][0]
    assert after_line_end == play.surprisals("But", by="word", context="\n")["bits"][0]
    assert after_line_end < play.surprisals("But", by="word")["bits"][0]


def test_a_line_end_is_a_space_unless_the_model_knows_line_ends(kinds: dict[str, LanguageModel]) -> None:
    lines, spaces = "the sea\ncame\n", "the sea came "
    for name, model in kinds.items():
        if model.vocab.line_separator == "\n":
            continue
        for by in get_args(By):
            assert model.surprisals(lines, by=by).equals(model.surprisals(spaces.rstrip(), by=by)), name
            found, expected = (model.surprisals("in", by=by, context=context) for context in (lines, spaces))
            assert found.equals(expected), name
        assert model.generate(lines, 5) == model.generate(spaces, 5), name
        if not model.vocab.line_separator:  # its corpus has nothing where lines are empty
            assert model.score("the sea\n\ncame\n\n") == model.score("the sea came"), name


def test_texts_are_scored_together_as_alone(kinds: dict[str, LanguageModel]) -> None:
    texts = ["the sea came", "And, the zebra went\nout", "a no", "sea and sea", "the sea came in and the sea went out"]
    for name, model in kinds.items():
        alone = [model.score(text) for text in texts]
        for found, expected in zip(model.score(texts), alone, strict=True):
            assert found[:-1] == pytest.approx(expected[:-1]), name
            assert found.remarks == expected.remarks
        tables = model.surprisals(texts, "word", context=["the", "", "land 5", "and so", "the"])
        assert tables["group"].tolist() == [index for index, text in enumerate(texts) for _ in text.split()]
        last = model.surprisals(texts[4], "word", context="the")
        together = tables[tables["group"] == 4].drop(columns="group").reset_index(drop=True)
        pd.testing.assert_frame_equal(together, last, rtol=1e-6)


def test_words_of_a_text_need_not_have_spaces_between_them(models: Models) -> None:
    model, text = models["char-uniform"], "the san\nd's tree."
    table = model.surprisals(text, words=["the", "san\nd", "'s", "tree", "."])
    assert table["text"].tolist() == ["the", "san d", "s", "tree", ""]
    # "the", " san d", " s", " tree": every character costs the same.
    assert (table["bits"] / math.log2(len(model.vocab))).tolist() == pytest.approx([3, 6, 2, 5, math.nan], nan_ok=True)
    parts = models["word-uniform"].surprisals("so the sea", words=["so", "the", "s", "ea"])
    assert parts["reason"].tolist() == ["", "", "", "part of the token before"]
    for other in (model, seqlm.fit_ngram("the sea came in\n" * 9, by="char")):
        empty = other.surprisals(words=["the", "", " ", "sea"])
        assert empty["reason"].tolist() == ["", "removed by cleaning", "removed by cleaning", ""]
        assert empty["bits"].dropna().tolist() == other.surprisals(words=["the", "sea"])["bits"].tolist()
    assert len(model.surprisals(words=[])) == len(model.surprisals([])) == 0


COLUMN, SHIFTED = pd.Series(["the sea", "a"]), pd.Series(["a", "b"], index=[1, 0])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"words": "the sea"}, "words must be a list of words, not str"),
        ({"words": ["the", 3]}, r"words\[1\] must be a string, not int"),
        ({"words": ["the", math.nan]}, r"words\[1\] must be a string, but it is missing: .*keep_default_na=False"),
        ({"words": ["the", "sea"], "groups": [1, math.nan]}, r"groups\[1\] is missing: pass a label for each word"),
        ({"words": [["the"], "sea"]}, r"words\[1\] must be a list of strings, not str"),
        ({"words": ["a", "no"], "groups": [[1], [2]]}, "a label in groups must be a number or a string"),
        ({"text": "the sea", "words": ["the", "see"]}, r"words\[1\] = 'see': the text has 'sea' there"),
        ({"text": "the sea", "by": "line"}, "surprisals: by = 'line': should be 'token' or 'word'"),
        ({"text": "the sea", "space": "Before"}, "surprisals: space = 'Before': should be 'before' or 'after'"),
        ({"text": "the sea", "words": ["the"]}, "the text continues with 'sea' after the last word"),
        ({"text": "the sea", "groups": [1]}, "groups require words: pass words too"),
        ({"text": "a", "words": ["a"], "groups": [1]}, "with groups, pass words and no text"),
        ({"words": ["the", "sea"], "groups": [1]}, "2 words, but 1 group:"),
        ({"words": {"the", "sea"}}, "not set, which has no order: pass a list"),
        ({"text": {"the sea", "a"}}, "the text must be a string, not set, which has no order: pass a list"),
        ({"text": [["the", "sea"]]}, r"the text\[0\] must be a string, not list: join its words with spaces"),
        ({"text": pd.DataFrame({"a": ["the"]})}, "not DataFrame: pass one of its columns"),
        ({"words": COLUMN, "groups": SHIFTED}, "words and groups have different indexes: take both from one table, or"),
        ({"text": COLUMN, "context": SHIFTED}, "text and context have different indexes"),
        ({"text": "the sea", "by": "word", "entropy": True}, "entropy is that of tokens, not by = 'word'"),
        ({"words": ["the"], "by": "token"}, "by = 'token': with words it must be word"),
        ({"text": "the sea", "context": 3}, "the context must be a string, not int"),
        ({"text": pd.Series(["the", "sea"])}, "the text is a column of single words: pass it as words="),
        ({"text": ["the sea", "a"], "context": ["the"]}, "2 texts, but 1 context:"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_scored(
    arguments: dict[str, Any], complaint: str, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LanguageModel, "score_batch", None)
    with pytest.raises(ParamsError, match=complaint):
        models["small"].surprisals(**arguments)


def test_a_text_without_tokens_among_others_is_named(models: Models) -> None:
    with pytest.raises(DataError, match="small: text 1 has no character that can be scored: use a longer text"):
        models["small"].score(["the sea", "..."])
