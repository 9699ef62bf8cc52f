"""Reading a model over words as a model over characters."""
