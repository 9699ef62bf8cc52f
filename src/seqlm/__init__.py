"""Sequence language models, from n-grams to recurrent networks."""
