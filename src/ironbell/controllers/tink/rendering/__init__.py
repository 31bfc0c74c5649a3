"""Rendering Templates: the engine, and the processes apart in which a site runs it."""
