"""Trained models as objects that score and generate text."""
