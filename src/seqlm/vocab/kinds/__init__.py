"""Kinds of tokens: one module each, and the list of them."""
