"""The agent in the machine's in-memory OS, and its built-in actions.

It asks the workflow service for one action at a time, runs it as a process of its own, sends its output while it
runs, and reports how it ended. It imports `codec`, `base` and itself only, because it travels in an initramfs.
"""
