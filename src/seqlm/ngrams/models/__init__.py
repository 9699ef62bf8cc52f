"""n-gram language models, and storing them."""
