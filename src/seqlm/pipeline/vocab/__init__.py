"""The stage `vocab`: its settings, and what it warns of."""
