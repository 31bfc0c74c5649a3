"""Why an object waits or failed: the object that blocks it, as a value.

`reader` reads an object and what it depends on, `rootcause` finds the object that blocks, `text` prints the answer.
"""
