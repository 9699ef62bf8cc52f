"""Scoring networks."""
