"""The text that models are scored on: which part of each split, and what its unknown tokens cost."""
