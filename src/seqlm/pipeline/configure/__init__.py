"""The whole of params.yaml, checked, and the runs that it describes."""
