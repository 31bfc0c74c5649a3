"""Pivots: clusters change their management cluster. `alone.perform` is the entry."""
