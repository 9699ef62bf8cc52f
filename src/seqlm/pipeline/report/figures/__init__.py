"""Figures: functions from tables to a matplotlib Figure, and one look for all of them."""
