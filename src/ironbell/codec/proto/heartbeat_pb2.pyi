from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class BeatRequest(_message.Message):
    __slots__ = ("agent_id", "workflow_id", "action_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    workflow_id: str
    action_id: str
    def __init__(self, agent_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., action_id: _Optional[str] = ...) -> None: ...

class BeatResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
