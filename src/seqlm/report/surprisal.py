"""A passage of text as HTML, shaded by the surprisal of its pieces."""

import html
from typing import Any


def shade(bits: float | None) -> int:
    """Return the step of the colour scale, 0 to 9, for a surprisal in bits; 1.2 bits a step."""
    return 9 if bits is None else min(int(bits / 1.2), 9)


def passage_html(found: dict[str, Any]) -> str:
    """Return a passage as HTML: a span a token, classed by its shade, titled with its bits."""
    pieces = []
    for token, bits in zip(found["tokens"], found["bits"], strict=True):
        shown = html.escape(token + found["joiner"]).replace("\n", "<br>")
        title = "infinite" if bits is None else f"{bits} bits"
        pieces.append(f'<span class="s{shade(bits)}" title="{title}">{shown}</span>')
    return "".join(pieces)
