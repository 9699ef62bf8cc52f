"""The stage `train`: one run of the pipeline, its settings, samples and results."""
