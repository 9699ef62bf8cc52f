"""n-gram statistics and language models that count."""
