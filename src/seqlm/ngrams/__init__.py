"""n-gram statistics and n-gram language models."""
