"""The stage train: one run of the pipeline, its checkpoints, samples and results."""
