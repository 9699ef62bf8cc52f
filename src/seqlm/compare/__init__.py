"""Two revisions' results, compared within tolerances."""
