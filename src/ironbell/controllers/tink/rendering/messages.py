"""Messages between `core` and its rendering processes: frames of JSON, each after its length.

All data of a template passes through these pipes, so no secret is on a command line.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ironbell.controllers.tink.render import Rendered

LENGTH: Final = struct.Struct(">I")
ANSWER_BYTES: Final = 8 << 20
"""Maximum size of a frame from a rendering process: more than any document of the allowed size needs."""


class RenderWorkflow(msgspec.Struct, tag="workflow", frozen=True):
    """Render a Template's text for a Workflow."""

    text: str
    hardware: Any
    """The Hardware or None; the receiver gets its JSON value."""
    variables: Mapping[str, str]


class RenderAddress(msgspec.Struct, tag="address", frozen=True):
    """Fill in the address of custom boot media."""

    text: str
    hardware_spec: Any
    """The spec of the Hardware; the receiver gets its JSON value."""


class Check(msgspec.Struct, tag="check", frozen=True):
    """Check whether a text parses."""

    text: str


Request: TypeAlias = RenderWorkflow | RenderAddress | Check


class Answer(msgspec.Struct, frozen=True):
    """The response to a request. `seconds` is the processor time that the request took."""

    seconds: float = 0.0
    workflow: Rendered | None = None
    text: str = ""
    problem: str = ""
    """The error that prevented the rendering; empty on success."""
    reason: str = ""
    is_limit: bool = False
    """Whether the problem is an exceeded limit."""
    defect: str = ""
    """The traceback of a defect in Ironbell."""
    is_last: bool = False
    """Whether the process has grown by this request, and exits."""


requests: Final = msgspec.json.Decoder(Request)
answers: Final = msgspec.json.Decoder(Answer)
encode: Final = msgspec.json.Encoder().encode


def framed(body: bytes) -> bytes:
    """The frame of a message."""
    return LENGTH.pack(len(body)) + body
