"""What `core` and its rendering processes say to each other: frames of JSON, each behind its length.

Everything that a template sees goes through these pipes, so no secret is on a command line.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ironbell.controllers.tink.render import Rendered

LENGTH: Final = struct.Struct(">I")
ANSWER_BYTES: Final = 8 << 20
"""Of a frame that a rendering process sends: more than any document of the rendered size makes."""


class RenderWorkflow(msgspec.Struct, tag="workflow", frozen=True):
    """Render a Template's text for a Workflow."""

    text: str
    hardware: Any
    """The Hardware, or None; its JSON value where it arrives."""
    variables: Mapping[str, str]


class RenderAddress(msgspec.Struct, tag="address", frozen=True):
    """Fill in the address of custom boot media."""

    text: str
    hardware_spec: Any
    """The spec of the Hardware; its JSON value where it arrives."""


class Check(msgspec.Struct, tag="check", frozen=True):
    """Whether a text parses."""

    text: str


Request: TypeAlias = RenderWorkflow | RenderAddress | Check


class Answer(msgspec.Struct, frozen=True):
    """What a request came to. `seconds` is the processor time that it took."""

    seconds: float = 0.0
    workflow: Rendered | None = None
    text: str = ""
    problem: str = ""
    """Why nothing was rendered; empty if something was."""
    reason: str = ""
    is_limit: bool = False
    """Whether the problem is that it took more than it may."""
    defect: str = ""
    """A traceback: an error of ours."""
    is_last: bool = False
    """The process has grown by this request, and ends."""


requests: Final = msgspec.json.Decoder(Request)
answers: Final = msgspec.json.Decoder(Answer)
encode: Final = msgspec.json.Encoder().encode


def framed(body: bytes) -> bytes:
    """A frame."""
    return LENGTH.pack(len(body)) + body
