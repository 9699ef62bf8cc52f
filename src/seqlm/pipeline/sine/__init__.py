"""The noisy sine of section 8.1."""
