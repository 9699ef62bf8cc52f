"""Scores: the surprisals of each model on the scored text of each split."""
