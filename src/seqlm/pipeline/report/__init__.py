"""The page that a person reads: one HTML file with everything in it."""
