"""A model over words as a model over characters."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey
from seqlm.score.heldout.spelling import SpellingModel
from seqlm.score.word_to_char.reading import CharacterPredictor, Lexicon, nats_by_characters
from seqlm.score.word_to_char.separators import BlankModel, estimate_blanks
from smoke import ROOT

WORDS = (ROOT / "data" / "sample.txt").read_text(encoding="ascii").lower().replace(".", "").split()[:2000]
TEXT = "".join(" ".join(WORDS[start : start + 9]) + "\n" for start in range(0, len(WORDS), 9))
TOKENS = ["<unk>", *sorted(set(WORDS))]
CHARACTERS = ["<unk>", " ", "\n", *sorted(set("".join(WORDS)))]
IDS = np.array([TOKENS.index(word) for word in WORDS])
COUNTS = np.bincount(IDS).tolist()
LEXICON = Lexicon(TOKENS, COUNTS, CHARACTERS)
SPELLING = SpellingModel(TOKENS[1:])
NEW = COUNTS.count(1) / len(WORDS)


def model(order: int = 2) -> KneserNey:
    return KneserNey(count_ngrams(IDS, len(TOKENS), order), order)


def predictor(separator: str) -> CharacterPredictor:
    return CharacterPredictor(LEXICON, estimate_blanks(TEXT, separator), model())


def nats(characters: Sequence[str], separator: str) -> np.ndarray:
    return nats_by_characters(LEXICON, estimate_blanks(TEXT, separator), lambda _: model(), characters)


@pytest.mark.parametrize("separator", ["", " ", "\n"])
def test_the_probabilities_of_all_characters_sum_to_one(separator: str) -> None:
    beginning = TEXT[:60].replace("\n", separator) + "xyz" + TEXT[60:90].replace("\n", separator)
    told_apart = [character for character in CHARACTERS if character != "\n" or separator == "\n"]
    reader = predictor(separator)
    for place, character in enumerate(beginning):
        probs = [read_by_a_copy(reader, other) for other in told_apart]
        # Readings that are hardly likely are dropped, so that a little is missing.
        assert 1 - 1e-3 <= sum(probs) <= 1 + 1e-9
        assert reader.read(character) == probs[told_apart.index(character)] > 0, place


def read_by_a_copy(reader: CharacterPredictor, character: str) -> float:
    other = copy.copy(reader)
    other.words_read = []
    return other.read(character)


def test_a_text_costs_what_its_words_and_blanks_cost() -> None:
    words = [*WORDS[:40], "unheardof", *WORDS[40:50]]
    ids = np.array([LEXICON.id_of.get(word, 0) for word in words])
    blanks = estimate_blanks(TEXT, " ")
    # The spelling gives the empty word a chance too, which is left out.
    spelt = np.exp(-SPELLING.nats(words)) / (1 - np.exp(-SPELLING.nats([""])))
    unigram, bigram = model().next_distribution(np.empty(0, np.int64)), model()
    expected = 0.0
    for place in range(len(words)):
        after = bigram.next_distribution(ids[place - 1 : place]) if place else unigram
        known = after[ids[place]] if ids[place] else 0.0
        # As likely as words that train has once are all that it lacks.
        expected -= np.log((1 - NEW) * known + (NEW + (1 - NEW) * after[0]) * spelt[place])
        expected -= np.log(blanks.after_word[" "]) + np.log(blanks.after_blank[""])
    text = " ".join(words) + " "
    first = predictor(" ").read(text[0])
    assert nats(text, " ").sum() - np.log(first) == pytest.approx(expected, rel=1e-9)


def test_words_that_end_without_a_sign_are_found() -> None:
    reader = predictor("")
    for character in TEXT[:600].replace("\n", ""):
        reader.read(character)
    read = [TOKENS[number] for number in reader.words_read]
    assert read == WORDS[: len(read)]
    assert len(read) > 60


def test_what_was_read_makes_the_model_of_the_next_piece() -> None:
    seen: list[list[str]] = []

    def model_after(read: Sequence[int]) -> KneserNey:
        seen.append([TOKENS[number] for number in read])
        return model()

    text = " ".join(WORDS[:30])
    blanks = estimate_blanks(TEXT, " ")
    found = nats_by_characters(LEXICON, blanks, model_after, text, num_times=3)
    assert found == pytest.approx(nats(text, " "))
    third = -(-(len(text) - 1) // 3)
    ends = [0, third, 2 * third]
    assert seen == [text[: end + 1].split(" ")[:-1] if end else [] for end in ends]


def test_a_word_without_end_stays_finite() -> None:
    found = nats("qz" * 3000 + " " + WORDS[0], "")
    assert np.isfinite(found).all()


def test_characters_that_no_spelling_knows_share_one_probability() -> None:
    lacking = Lexicon(TOKENS, COUNTS, [*CHARACTERS, "é", "ß"])
    assert lacking.spelt("a", "é") == LEXICON.spelt("a", "é") / 3  # <unk> is the third of them
    assert lacking.spelt("a", "b") == LEXICON.spelt("a", "b")


def test_letters_that_the_characters_lack_are_one_letter_of_the_words() -> None:
    """With ``vocab.char.min_freq`` a rare letter is ``<unk>``; the words that have it are known all the same."""
    few = [character for character in CHARACTERS if character not in ("w", "y")]
    lexicon, blanks = Lexicon(TOKENS, COUNTS, few), estimate_blanks(TEXT, " ")
    text = " ".join(WORDS[:60])
    shown = [character if character in few else "<unk>" for character in text]
    found = nats_by_characters(lexicon, blanks, lambda _: model(), shown)
    # One letter in place of two is easier to predict.
    assert found.sum() < nats(text, " ").sum()
    reader = CharacterPredictor(lexicon, blanks, model())
    for character in shown[:100]:
        other = [read_by_a_copy(reader, lexicon.letter(told)) for told in few if told != "\n"]
        assert 1 - 1e-3 <= sum(other) <= 1 + 1e-9
        reader.read(lexicon.letter(character))


def test_words_that_train_lacks_are_those_that_it_may_have_once() -> None:
    assert LEXICON.unknown_share == NEW
    twice = Lexicon(["<unk>", "a", "b", "pad"], [5, 3, 2, 0], ["<unk>", " ", "a", "b"])
    assert twice.unknown_share == 0
    assert twice.words == ["a", "b"]  # what train does not have is reserved, and no word


@pytest.mark.parametrize("size", [0, 1])
def test_a_text_without_a_second_character_has_no_surprisals(size: int) -> None:
    assert len(nats("a" * size, "")) == 0


def test_blanks_by_hand() -> None:
    text = "a b\n\nc  d\ne \nf\n"
    # Joined by nothing: "a bc  de f". Two words of six end without a sign: b and d.
    assert estimate_blanks(text, "") == BlankModel(
        {" ": (3 + 1) / (5 + 2), "": (2 + 1) / (5 + 2)}, {" ": (1 + 1) / (4 + 2), "": (3 + 1) / (4 + 2)}
    )
    # Joined by a space: "a b  c  d e  f".
    assert estimate_blanks(text, " ") == BlankModel({" ": 1.0}, {" ": (3 + 1) / (8 + 2), "": (5 + 1) / (8 + 2)})
    found = estimate_blanks(text, "\n")
    # The last line end joins nothing.
    assert found.after_word == {" ": (3 + 1) / (5 + 2), "\n": (2 + 1) / (5 + 2)}
    assert sum(found.after_blank.values()) == pytest.approx(1)
