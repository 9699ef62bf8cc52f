"""The text that is scored: which part of a split, where its tokens are, and what unknown ones cost."""
