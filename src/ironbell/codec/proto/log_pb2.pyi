from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Stream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STREAM_UNSPECIFIED: _ClassVar[Stream]
    STDOUT: _ClassVar[Stream]
    STDERR: _ClassVar[Stream]
    AGENT: _ClassVar[Stream]
STREAM_UNSPECIFIED: Stream
STDOUT: Stream
STDERR: Stream
AGENT: Stream

class LogLine(_message.Message):
    __slots__ = ("stream", "text", "age_ms")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    text: str
    age_ms: int
    def __init__(self, stream: _Optional[_Union[Stream, str]] = ..., text: _Optional[str] = ..., age_ms: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("percent", "done_bytes", "total_bytes", "bytes_per_second")
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    percent: float
    done_bytes: int
    total_bytes: int
    bytes_per_second: int
    def __init__(self, percent: _Optional[float] = ..., done_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ..., bytes_per_second: _Optional[int] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("agent_id", "workflow_id", "action_id", "execution_id", "first_sequence", "oldest_sequence", "lines", "progress", "end", "exit_code")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    workflow_id: str
    action_id: str
    execution_id: str
    first_sequence: int
    oldest_sequence: int
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    progress: Progress
    end: bool
    exit_code: int
    def __init__(self, agent_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., action_id: _Optional[str] = ..., execution_id: _Optional[str] = ..., first_sequence: _Optional[int] = ..., oldest_sequence: _Optional[int] = ..., lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., end: _Optional[bool] = ..., exit_code: _Optional[int] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("next_sequence", "durable_sequence")
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    next_sequence: int
    durable_sequence: int
    def __init__(self, next_sequence: _Optional[int] = ..., durable_sequence: _Optional[int] = ...) -> None: ...

class MachineReport(_message.Message):
    __slots__ = ("agent_id", "kind", "text")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[MachineReport.Kind]
        PANIC: _ClassVar[MachineReport.Kind]
        AGENT_FAILURE: _ClassVar[MachineReport.Kind]
        NOTICE: _ClassVar[MachineReport.Kind]
    UNSPECIFIED: MachineReport.Kind
    PANIC: MachineReport.Kind
    AGENT_FAILURE: MachineReport.Kind
    NOTICE: MachineReport.Kind
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    kind: MachineReport.Kind
    text: str
    def __init__(self, agent_id: _Optional[str] = ..., kind: _Optional[_Union[MachineReport.Kind, str]] = ..., text: _Optional[str] = ...) -> None: ...

class MachineReportResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
