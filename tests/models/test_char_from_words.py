"""A model over words, read as a model over characters."""

from collections.abc import Sequence

import numpy as np
import pytest

from seqlm.models.char_from_words import CharacterPredictor, CharacterReader, Lexicon, State
from seqlm.models.ngrams import EvolvingCounts
from seqlm.models.spelling import SpellingModel
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.separators import Separators, estimate_separators
from smoke import ROOT

WORDS = (ROOT / "data" / "sample.txt").read_text(encoding="ascii").lower().replace(".", "").split()[:2000]
TEXT = "".join(" ".join(WORDS[start : start + 9]) + "\n" for start in range(0, len(WORDS), 9))
TOKENS = ["<unk>", *sorted(set(WORDS))]
CHARACTERS = ["<unk>", " ", "\n", *sorted(set("".join(WORDS)))]
IDS = np.array([TOKENS.index(word) for word in WORDS])
COUNTS = np.bincount(IDS).tolist()
SPELLING = SpellingModel(TOKENS[1:])
BIGRAM = KneserNey(count_ngrams(IDS, len(TOKENS), 2), 2, unknown="good_turing")


def lexicon(separator: str, characters: Sequence[str] = CHARACTERS) -> Lexicon:
    return Lexicon(TOKENS, COUNTS, characters, estimate_separators(TEXT, separator))


def predictor(separator: str) -> CharacterPredictor:
    return CharacterPredictor(lexicon(separator), BIGRAM)


def read(reader: CharacterPredictor, state: State, characters: Sequence[str]) -> tuple[State, list[int]]:
    """Return the state after some characters, and the ids of the words that ended."""
    words = list[int]()
    for character in characters:
        _, state, ended = reader.step(state, character)
        words += ended
    return state, words


def nll(characters: Sequence[str], separator: str) -> np.ndarray:
    return CharacterReader(lexicon(separator), CHARACTERS, EvolvingCounts.fixed(BIGRAM)).nll(characters)


@pytest.mark.parametrize("separator", ["", " ", "\n"])
def test_the_probabilities_of_all_characters_sum_to_one(separator: str) -> None:
    beginning = TEXT[:60].replace("\n", separator) + "xyz" + TEXT[60:90].replace("\n", separator)
    possible = [character for character in CHARACTERS if character != "\n" or separator == "\n"]
    reader = predictor(separator)
    state = reader.begin()
    for index, character in enumerate(beginning):
        probs = [reader.step(state, other).prob for other in possible]
        # Unlikely hypotheses are dropped, so a little is missing.
        assert 1 - 1e-3 <= sum(probs) <= 1 + 1e-9
        prob, state, _ = reader.step(state, character)
        assert prob == probs[possible.index(character)] > 0, index


def test_a_text_costs_as_much_as_its_words_and_separators() -> None:
    words = [*WORDS[:40], "unheardof", *WORDS[40:50]]
    ids = np.array([lexicon(" ").id_of.get(word, 0) for word in words])
    separators = estimate_separators(TEXT, " ")
    # The spelling model also gives the empty word a probability, which is left out.
    spelled = np.exp(-SPELLING.nll(words)) / (1 - np.exp(-SPELLING.nll([""])))
    unigram, expected = BIGRAM.next_distribution(np.empty(0, np.int64)), 0.0
    for index in range(len(words)):
        after = BIGRAM.next_distribution(ids[index - 1 : index]) if index else unigram
        known = after[ids[index]] if ids[index] else 0.0
        expected -= np.log(known + after[0] * spelled[index])
        expected -= np.log(separators.after_word[" "]) + np.log(separators.after_blank[""])
    text = " ".join(words) + " "
    reader = predictor(" ")
    first = reader.step(reader.begin(), text[0]).prob
    assert nll(text, " ").sum() - np.log(first) == pytest.approx(expected, rel=1e-9)


def test_words_that_end_without_a_separator_are_found() -> None:
    reader = predictor("")
    words = [TOKENS[number] for number in read(reader, reader.begin(), TEXT[:600].replace("\n", ""))[1]]
    assert words == WORDS[: len(words)]
    assert len(words) > 60


def test_the_model_of_each_part_gets_the_words_read_before_it() -> None:
    seen: list[list[str]] = []

    def model_after(read: Sequence[int]) -> KneserNey:
        seen.append([TOKENS[number] for number in read])
        return BIGRAM

    text = " ".join(WORDS[:30])
    counts = EvolvingCounts(model_after, num_updates=3)
    found = CharacterReader(lexicon(" "), CHARACTERS, counts).nll(text)
    assert found == pytest.approx(nll(text, " "))
    third = -(-(len(text) - 1) // 3)
    ends = [0, third, 2 * third]
    assert seen == [text[: end + 1].split(" ")[:-1] if end else [] for end in ends]


@pytest.mark.parametrize(("text", "size"), [("", 0), ("a", 0), ("qz" * 300 + " " + WORDS[0], 600 + len(WORDS[0]))])
def test_texts_of_no_length_and_very_long_words_have_finite_surprisals(text: str, size: int) -> None:
    found = nll(text, "")
    assert len(found) == size
    assert np.isfinite(found).all()


def test_characters_that_no_word_has_share_one_probability() -> None:
    fewer, more = lexicon(""), lexicon("", [*CHARACTERS, "é", "ß"])
    assert more.spelling_prob("a", "é") == fewer.spelling_prob("a", "é") / 3  # <unk> is the third of them
    assert more.spelling_prob("a", "b") == fewer.spelling_prob("a", "b")


def test_all_letters_that_the_character_vocabulary_lacks_count_as_one_letter() -> None:
    """With ``vocab.char.min_freq`` a rare letter is ``<unk>``; words with this letter are known nevertheless."""
    few = [character for character in CHARACTERS if character not in ("w", "y")]
    text = " ".join(WORDS[:60])
    shown = [character if character in few else "<unk>" for character in text]
    # One letter instead of two is easier to predict.
    found = CharacterReader(lexicon(" ", few), few, EvolvingCounts.fixed(BIGRAM)).nll(shown)
    assert found.sum() < nll(text, " ").sum()
    reader = CharacterPredictor(lexicon(" ", few), BIGRAM)
    state = reader.begin()
    for character in shown[:100]:
        probs = [reader.step(state, other).prob for other in few if other != "\n"]
        assert 1 - 1e-3 <= sum(probs) <= 1 + 1e-9
        state = reader.step(state, character).state


def test_a_reserved_token_that_train_lacks_is_no_word() -> None:
    separators = estimate_separators("a b\n", " ")
    assert Lexicon(["<unk>", "a", "b", "pad"], [5, 3, 2, 0], ["<unk>", " ", "a", "b"], separators).words == ["a", "b"]


def test_a_reading_is_dropped_only_after_the_next_character() -> None:
    """Words almost never end without a separator, so this reading is unlikely until the next character asks for it."""
    rare = Separators({" ": 1 - 1e-5, "": 1e-5}, {" ": 0.01, "": 0.99})
    two_words = Lexicon(["<unk>", "sea", "quay"], [0, 500, 500], ["<unk>", " ", *"seaquy"], rare)
    words = KneserNey(count_ngrams(np.array([1, 2] * 500), 3, 1), 1)
    reader = CharacterPredictor(two_words, words)
    state, _ = read(reader, reader.begin(), "sea")
    # p(q | sea) is at least p of a word that ends, of no separator, and of quay.
    assert reader.step(state, "q").prob > 1e-5 * 0.4
    assert read(reader, state, "quay ")[1] == [1, 2]


def test_separators_by_hand() -> None:
    text = "a b\n\nc  d\ne \nf\n"
    # Joined by nothing: "a bc  de f". Two of six words end without a separator: b and d.
    assert estimate_separators(text, "") == Separators(
        {" ": (3 + 1) / (5 + 2), "": (2 + 1) / (5 + 2)}, {" ": (1 + 1) / (4 + 2), "": (3 + 1) / (4 + 2)}
    )
    # Joined by a space: "a b  c  d e  f".
    assert estimate_separators(text, " ") == Separators({" ": 1.0}, {" ": (3 + 1) / (8 + 2), "": (5 + 1) / (8 + 2)})
    found = estimate_separators(text, "\n")
    # The last line end separates nothing.
    assert found.after_word == {" ": (3 + 1) / (5 + 2), "\n": (2 + 1) / (5 + 2)}
    assert sum(found.after_blank.values()) == pytest.approx(1)
