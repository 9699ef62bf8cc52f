"""Bringing one corpus here, verified."""
