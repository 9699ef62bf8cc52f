"""Networks: an RNN from its equations, the framework's recurrent layers, compiled loops for both, a
transformer."""
