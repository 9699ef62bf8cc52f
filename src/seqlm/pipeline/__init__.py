"""The stages of the pipeline: what only they use. The library imports nothing of it."""
