"""Built-in actions: one module each, run as `python -m ironbell.agent.actions NAME`.

Each reads the environment variables of the upstream action of that name and does what that one documents, with its
defects fixed; the packages `disks` and `streams` are shared between them.
"""
