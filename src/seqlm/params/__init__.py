"""The typed settings of the pipeline, one module for each section of ``params.yaml``."""
