"""Counting the n-grams of a text, in memory or in chunks."""
