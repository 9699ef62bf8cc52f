"""Models set against each other on the text that they were scored on."""
