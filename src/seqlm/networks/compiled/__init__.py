"""The recurrent networks as compiled loops for the processor."""
