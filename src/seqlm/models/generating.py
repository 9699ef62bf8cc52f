"""The text that a model generates, as it grows."""

from collections.abc import Sequence

from seqlm.core.errors import ParamsError
from seqlm.vocab.vocabulary import Vocab

_INCOMPLETE = "\ufffd"
"""What the bytes of a subword become that are only the beginning of a character."""


class GrowingText:
    """The text of tokens that come one by one, up to the first stop string."""

    def __init__(self, vocab: Vocab, stop: Sequence[str] = ()) -> None:
        """Begin after a prefix: a word follows a space."""
        self._vocab, self._stop = vocab, stop
        self._tokens: list[str] = []
        """Subwords whose last character is incomplete."""
        self._held = ""
        """Text that may be the beginning of a stop string."""
        self.ended = False
        """Whether a stop string has come."""

    def add(self, token: int) -> str:
        """Take a token and return the text that is certain now and was not before."""
        self._tokens.append(self._vocab.tokens[token])
        text = self._vocab.join(self._tokens)
        if text.endswith(_INCOMPLETE):
            return ""
        self._tokens = []
        return self._without_stop(self._vocab.token_kind.separator + text)

    def rest(self) -> str:
        """Return the text that remains when no more tokens come."""
        if self.ended:
            return ""
        certain = self._without_stop(self._vocab.join(self._tokens)) if self._tokens else ""
        return certain + ("" if self.ended else self._held)

    def _without_stop(self, text: str) -> str:
        text = self._held + text
        places = [place for stop in self._stop if (place := text.find(stop)) >= 0]
        if places:
            self.ended = True
            return text[: min(places)]
        most = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - most :]
        return text[: len(text) - most]


def _overlap(text: str, stop: str) -> int:
    """Return how many of the last characters of a text begin a stop string."""
    longest = min(len(stop) - 1, len(text))
    return next((length for length in range(longest, 0, -1) if text.endswith(stop[:length])), 0)


def check_stop(stop: object) -> tuple[str, ...]:
    """Return stop strings as a tuple. Raises ParamsError for anything but strings with characters."""
    found = () if stop is None else (stop,) if isinstance(stop, str) else stop
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, str) and each for each in found):
        raise ParamsError(f"generate: stop = {stop!r}: should be a string that is not empty, or a list of such strings")
    return tuple(found)
