"""The kinds of networks, each declared in a module of its own: a new kind is a new module, and changes no other."""
