"""Figures: functions from data to a matplotlib Figure, and one look for all of them."""
