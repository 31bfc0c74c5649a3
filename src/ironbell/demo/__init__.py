"""Aside: the demonstration, an installation from power-off to login on a virtual machine."""
