"""Recurrent networks: one written from its equations, the others the framework's."""
