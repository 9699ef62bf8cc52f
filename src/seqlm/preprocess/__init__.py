"""Decoding and cleaning texts."""
