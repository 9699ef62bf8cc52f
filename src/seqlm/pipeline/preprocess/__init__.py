"""The stage `preprocess`: from a raw corpus to three cleaned splits."""
