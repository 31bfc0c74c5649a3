"""Builds disk images of operating systems, and the Debian file trees that they and the in-memory OS begin with."""
