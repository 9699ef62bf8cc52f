"""Backpropagation through time (section 8.7): its equations, its truncation, its reach."""
