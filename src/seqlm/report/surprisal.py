"""A passage of text as HTML, shaded by the surprisal of its tokens."""

import html
from typing import Any

from seqlm.score.surprisal_view import INFINITE

_BITS_PER_SHADE = 1.2
_DARKEST = 9


def passage_html(passage: dict[str, Any]) -> str:
    """Return a passage (:func:`seqlm.score.surprisal_view.passage`) as HTML.

    Each token is a span with its bits as the title; the class of a scored token, s0 to s9, is its shade.
    """
    spans = []
    for token, bits in zip(passage["tokens"], passage["bits"], strict=True):
        text = html.escape(token + passage["joiner"]).replace("\n", "<br>")
        if bits is None:
            spans.append(f'<span title="not scored">{text}</span>')
        elif bits == INFINITE:
            spans.append(f'<span class="s{_DARKEST}" title="{INFINITE}">{text}</span>')
        else:
            spans.append(
                f'<span class="s{min(int(bits / _BITS_PER_SHADE), _DARKEST)}" title="{bits} bits">{text}</span>'
            )
    return "".join(spans)
