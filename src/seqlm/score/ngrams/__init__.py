"""Scoring n-gram models."""
