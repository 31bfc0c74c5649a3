"""The agent in the machine's in-memory OS, and its built-in actions.

It requests one action at a time from the workflow service, runs it as a process of its own, sends its output while it
runs, and reports the result. It imports `codec`, `base` and itself only, because it travels in an initramfs.
"""
