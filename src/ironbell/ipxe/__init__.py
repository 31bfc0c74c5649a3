"""Aside: builds iPXE binaries from the distribution's source package, with our script inside."""
