"""N-gram language models, and storing them."""
