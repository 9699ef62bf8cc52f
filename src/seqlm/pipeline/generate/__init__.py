"""Generation of text with trained models."""
