"""From a raw corpus to three cleaned splits."""
