"""Builds iPXE binaries from the distribution's source package, with our script inside; used by a command only."""
