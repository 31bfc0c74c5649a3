"""The HTTP face of the embedded API: what kubectl and every other Kubernetes client talks to.

`serve` (in `serve.py`) opens the listeners; `handler.py` takes each request through authentication, routing and the
verbs, and turns every error into a `Status` object. Storage and validation of objects are not part of it.
"""
