"""Select the text of each split that models are scored on, as tokens of one kind."""

import click

from harness import stage
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.heldout.settings import HeldoutParams
from seqlm.vocab.settings import KINDS


@stage()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of token.")
def main(layout: Layout, kind: str) -> None:
    """Select the text of each split that models are scored on, and price the tokens that the vocabulary lacks."""
    from seqlm.heldout.folds import cross_validate
    from seqlm.heldout.selection import select_heldout

    params = load(layout.params, "heldout", HeldoutParams)
    selections = select_heldout(layout, kind, params.max_chars)
    sizes = ", ".join(f"{split} {selection.scored_chars:,}" for split, selection in selections.items())
    click.echo(f"{kind}: scored characters: {sizes}")
    if kind == "char":
        cross_validate(layout)


if __name__ == "__main__":
    main()
