"""Event: something that happened to an object; in the core group and as events.k8s.io/v1.

Both are the same stored objects. The older names of fields are those that are stored; the newer version shows
`note`, `regarding` and `deprecated*`.

Source: kubernetes/api: core/v1/types.go, events/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironbell.api.crd.markers import Int32, Schema, Time
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class ObjectReference(Model, frozen=True):
    """Another object, as far as it is known."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Model, frozen=True):
    """Component that reports."""

    component: str = ""
    host: str = ""


class EventSeries(Model, frozen=True):
    """Repetitions."""

    count: Int32 = 0
    last_observed_time: Time = None


class Event(Resource, frozen=True):
    """Something that happened to an object."""

    involved_object: Annotated[ObjectReference, Schema("The object.")] = ObjectReference()
    reason: Annotated[str, Schema("Reason of the action, as one CamelCase word.")] = ""
    message: Annotated[str, Schema("Description of the event, for people.")] = ""
    source: Annotated[EventSource, Schema("Component that reports.")] = EventSource()
    first_timestamp: Annotated[Time, Schema("When it happened first.")] = None
    last_timestamp: Annotated[Time, Schema("When it happened last.")] = None
    count: Annotated[Int32, Schema("How often it happened.")] = 0
    type: Annotated[str, Schema("Normal or Warning.")] = ""
    event_time: Annotated[Time, Schema("When it was observed first, to the microsecond.", nullable=True)] = None
    series: Annotated[EventSeries | None, Schema("Repetitions.")] = None
    action: Annotated[str, Schema("Action that was done or tried.")] = ""
    related: Annotated[ObjectReference | None, Schema("A second object that plays a part.")] = None
    reporting_component: Annotated[str, Schema("Name of the reporting controller.")] = ""
    reporting_instance: Annotated[str, Schema("Instance of the controller.")] = ""


class EventsEvent(Resource, frozen=True):
    """Something that happened to an object."""

    event_time: Annotated[Time, Schema("When it was observed first, to the microsecond.", nullable=True)] = None
    series: Annotated[EventSeries | None, Schema("Repetitions.")] = None
    reporting_controller: Annotated[str, Schema("Name of the reporting controller.")] = ""
    reporting_instance: Annotated[str, Schema("Instance of the controller.")] = ""
    action: Annotated[str, Schema("Action that was done or tried.")] = ""
    reason: Annotated[str, Schema("Reason of the action, as one CamelCase word.")] = ""
    regarding: Annotated[ObjectReference, Schema("The object.")] = ObjectReference()
    related: Annotated[ObjectReference | None, Schema("A second object that plays a part.")] = None
    note: Annotated[str, Schema("Description of the event, for people.")] = ""
    type: Annotated[str, Schema("Normal or Warning.")] = ""
    deprecated_source: Annotated[EventSource, Schema("Component that reports.")] = EventSource()
    deprecated_first_timestamp: Annotated[Time, Schema("When it happened first.")] = None
    deprecated_last_timestamp: Annotated[Time, Schema("When it happened last.")] = None
    deprecated_count: Annotated[Int32, Schema("How often it happened.")] = msgspec.field(default=0)


EVENT: Kind[Event] = Kind(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    model=Event,
    short_names=("ev",),
    columns=(
        Column("Last Seen", ".lastTimestamp", type="date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", ".involvedObject.name"),
        Column("Message", ".message"),
    ),
    description="Something that happened to an object.",
)

EVENTS_EVENT: Kind[EventsEvent] = Kind(
    group="events.k8s.io",
    version="v1",
    kind="Event",
    plural="events",
    model=EventsEvent,
    short_names=("ev",),
    columns=(
        Column("Last Seen", ".deprecatedLastTimestamp", type="date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", ".regarding.name"),
        Column("Message", ".note"),
    ),
    description="Something that happened to an object.",
)
