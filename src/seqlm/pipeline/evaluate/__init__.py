"""Models compared on the text that they were scored on."""
