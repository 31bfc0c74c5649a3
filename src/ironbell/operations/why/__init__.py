"""Find the object that makes another one wait or fail.

`reader` reads an object and what it depends on, `rootcause` finds the object that blocks, `text` prints the answer.
"""
