"""Worlds for the engine and its front doors: servers, their owners, installations."""
