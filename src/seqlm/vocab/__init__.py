"""Vocabularies, and splits encoded with them."""
