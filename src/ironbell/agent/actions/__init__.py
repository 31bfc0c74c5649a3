"""Built-in actions: one module each, run as `python -m ironbell.agent.actions NAME`.

Each takes the environment variables of the upstream action of that name and does what that one documents, with its
defects fixed; `support` modules (devices, mounts, download, decompress, transfer) are shared between them.
"""
