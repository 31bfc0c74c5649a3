"""Go's text/template with sprig's hermetic functions, as Tinkerbell's workflow templates use them.

`render(text, data)` gives the same bytes as Go, or fails where Go fails; `tests/go/gotemplate` holds both to it.
Pure: no clock, no environment, no files. Where this departs from Go: complex numbers, pointers' addresses, and the
bounds of `limits`.

Source: golang/go: src/text/template; Masterminds/sprig v3.3.0; tinkerbell/tinkerbell: tink/controller.
"""

from ironbell.codec.gotemplate.engine import FUNCTIONS, check, render
from ironbell.codec.gotemplate.errors import LimitError, TemplateError
from ironbell.codec.gotemplate.functions import Function, Library, P
from ironbell.codec.gotemplate.values import Field, Int64, Pointer, Struct, StructType, TypedList, strings

__all__ = [
    "FUNCTIONS",
    "Field",
    "Function",
    "Int64",
    "Library",
    "LimitError",
    "P",
    "Pointer",
    "Struct",
    "StructType",
    "TemplateError",
    "TypedList",
    "check",
    "render",
    "strings",
]
