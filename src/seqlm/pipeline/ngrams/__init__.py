"""The stage `ngrams`: statistics of the whole text."""
