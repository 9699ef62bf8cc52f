"""The ARPA format of n-gram models."""
