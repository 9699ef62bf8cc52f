"""A template for the script of a new stage, ``lengths``."""

from seqlm.lengths.settings import LengthsParams

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load


@stage()
def main(layout: Layout) -> None:
    """Count lines by their length."""
    from seqlm.lengths.counting import count_lengths

    from seqlm.core.files import write_json

    params = load(layout.params, "lengths", LengthsParams)
    text = layout.split("train").read_text(encoding="utf-8")
    write_json(layout.reports("lengths", "counts.json"), count_lengths(text.splitlines(), params.longest))


if __name__ == "__main__":
    main()
