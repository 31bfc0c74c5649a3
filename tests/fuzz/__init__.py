"""Fuzzing of what reads strangers' bytes: each target feeds one input to the product's code and asserts what must hold.

`python -m tests.fuzz TARGET` fuzzes, guided by coverage (atheris), in a process of its own; `make test` replays the
committed corpus, which needs no atheris. See docs/contributing/index.md.

    targets   one module for each subject      engine    the process that fuzzes one target
    corpus    inputs in the repository         runner    starts engines, watches them, says when it is enough
    minimize  the smallest corpus that reaches as much
"""
