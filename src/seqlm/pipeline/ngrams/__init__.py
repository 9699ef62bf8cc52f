"""The stage `ngrams`: engines that count beyond memory, the choice of settings, and statistics of
the whole text."""
