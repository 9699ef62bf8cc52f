"""The stage `report`: figures, the page, the playground, the summary, and the comparison with the
book."""
