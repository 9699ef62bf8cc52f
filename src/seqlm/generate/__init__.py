"""Text that the models write."""
