"""Result of a reconciler: actions, needs, and the reason for waiting. Plain frozen data.

`decide(observed, now)` of a controller returns a `Decision`; the runtime (`kube.manager.manager`) carries it out, the
test kit (`kube.testing`) carries it out prefix by prefix, and a dry run prints it.

Rules that the runtime holds for every decision:

* Actions are executed in order. The first that fails stops the rest.
* `Conflict`, `AlreadyExists` on a create and `NotFound` on a patch mean that the observed state is out of date: the key
  is requeued with backoff. A delete of a missing object is a success.
* A precondition that names the resourceVersion which was observed stays good after an earlier action of the same
  decision wrote the same object under that precondition: the runtime follows the versions of its own writes.
* An effect that is not idempotent names its `intent`, and an earlier write of the same decision carries the same
  `intent` and a precondition (a create, or a patch with `resource_version`). One intent is performed at most once:
  a controller that sees a stored intent without an outcome does not know whether it happened, and decides (retry as
  a new intent, fail, query). `kube.testing.crash_check` proves it.

Failure modes: `DecisionError` for a decision that breaks these rules; it is a defect of the controller and not retried.

Source: docs/architecture.md (Reconcilers).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from ironbell.api.client import Propagation
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import plain
from ironbell.base.errors import IronbellError, Retry

V = TypeVar("V")
AnyKind: TypeAlias = Kind[Any]
Key: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped kinds."""
Fields: TypeAlias = dict[str, Any]
"""A JSON object as plain data."""


class DecisionError(IronbellError):
    """A decision breaks the rules of this module: a defect of the controller."""

    reason = "InvalidDecision"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object. The name is in `body`; `apiVersion` and `kind` are filled in."""

    kind: AnyKind
    namespace: str
    body: Fields
    _: KW_ONLY
    intent: str = ""


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386 patch. With `resource_version` it is rejected if the object has changed since."""

    kind: AnyKind
    namespace: str
    name: str
    body: Fields
    _: KW_ONLY
    subresource: str = ""
    resource_version: str = ""
    intent: str = ""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902 patch; a failing `test` operation is terminal, a stale `resource_version` is a conflict."""

    kind: AnyKind
    namespace: str
    name: str
    operations: tuple[Fields, ...]
    _: KW_ONLY
    subresource: str = ""
    resource_version: str = ""
    intent: str = ""


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply with the controller's name as field manager; creates the object when it does not exist."""

    kind: AnyKind
    namespace: str
    name: str
    body: Fields
    _: KW_ONLY
    subresource: str = ""
    force: bool = True


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object; a missing object is a success."""

    kind: AnyKind
    namespace: str
    name: str
    _: KW_ONLY
    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = Propagation.BACKGROUND


@dataclass(frozen=True, slots=True)
class Emit:
    """An event on an object, aggregated and rate limited; losing it never fails a reconcile."""

    kind: AnyKind
    namespace: str
    name: str
    uid: str
    _: KW_ONLY
    reason: str
    message: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True)
class Effect:
    """Something outside Kubernetes, done by the performer registered as `performer`.

    The performer returns the actions that store the outcome, good or bad; they are executed next, before the rest of
    the decision. It raises when nothing is to be stored: the rest is dropped and the key is requeued with backoff
    (unless the error has `Retry.NEVER`). After `timeout_s` it is cancelled, which is treated as an error.
    """

    performer: str
    arguments: Any
    """A frozen struct or dataclass. No secrets in it: performers look those up."""
    _: KW_ONLY
    timeout_s: float = 30.0
    intent: str = ""
    """Identity of this attempt, stored before it starts; empty if repeating the effect does no harm."""
    outdates: tuple[Query[Any], ...] = ()
    """Facts that are forgotten once it has run, whatever came of it."""


Write: TypeAlias = Create | MergePatch | JsonPatch | Apply | Delete
Action: TypeAlias = Write | Emit | Effect


class Query(Generic[V]):
    """Base of queries about the world outside; `V` is the type of the answer.

    Subclasses are frozen dataclasses with hashable fields. The resolver is registered by the subclass.
    """

    __slots__ = ()
    subject: ClassVar[str]
    """Subject of the answer, as events and conditions name it when there is no answer: `the power state`."""


@dataclass(frozen=True, slots=True)
class Need(Generic[V]):
    """A fact that the object depends on. The key is requeued whenever a newer answer (or error) has arrived.

    Declare it in every decision that depends on the fact, fresh or not: an answer is renewed somewhat before it reaches
    `max_age_s` (at least one second). A failed query is repeated with backoff from one second to `max_age_s`.
    """

    query: Query[V]
    max_age_s: float
    newer_than: datetime | None = None
    """Ignore answers to queries before this moment, such as the start of an effect."""
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Fact(Generic[V]):
    """The last answer with the moment of its query, and the error if the last query failed.

    `value` survives later errors (then `error` is set and `error_at` newer than `at`). An answer is true at some
    moment between query and answer: it is newer than events before the query, and its age begins with its arrival, so
    that a slow answer is not too old when it arrives.
    """

    value: V | None
    at: datetime | None
    error: IronbellError | None = None
    error_at: datetime | None = None
    answered_at: datetime | None = None
    """Moment when the answer came; None is the moment of the query."""

    @property
    def known_since(self) -> datetime | None:
        """Moment from which the answer's age is measured."""
        return self.answered_at or self.at

    def fresh(self, now: datetime, max_age_s: float, newer_than: datetime | None = None) -> bool:
        """Return whether an answer to a query at or after `newer_than` came at most `max_age_s` ago."""
        since = self.known_since
        if self.at is None or since is None or (newer_than is not None and self.at < newer_than):
            return False
        return now - since <= timedelta(seconds=max_age_s)

    def within(self, now: datetime, max_age_s: float | None) -> Fact[V] | None:
        """Return the fact for a decision that accepts answers up to this age (None: of any age).

        An older answer is withheld; the error of a later attempt stays, as if there had never been an answer. None if
        nothing is left.
        """
        if max_age_s is None or self.fresh(now, max_age_s):
            return self
        return None if self.error is None else Fact(None, None, self.error, self.error_at)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Reason why nothing more happens now. The controller stores it on the object; the runtime logs changes."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions to carry out now, in order, and the time of the next reconcile unless something watched changes."""

    actions: tuple[Action, ...] = ()
    needs: tuple[Need[Any], ...] = ()
    waiting: Waiting | None = None
    requeue_after_s: float | None = None


DONE = Decision()
"""Nothing to do and nothing to wait for."""


def do(
    *actions: Action | None,
    needs: Iterable[Need[Any]] = (),
    waiting: Waiting | None = None,
    requeue_after_s: float | None = None,
) -> Decision:
    """A decision of these actions; None among them is left out, so that optional writes read well."""
    return Decision(tuple(a for a in actions if a is not None), tuple(needs), waiting, requeue_after_s)


def wait(
    reason: str,
    message: str,
    *actions: Action | None,
    needs: Iterable[Need[Any]] = (),
    requeue_after_s: float | None = None,
) -> Decision:
    """Return a decision that waits, after the actions that report this on the object."""
    return do(*actions, needs=needs, waiting=Waiting(reason, message), requeue_after_s=requeue_after_s)


def create(kind: AnyKind, body: Resource | Fields, *, intent: str = "") -> Create:
    """Create this object, in its own namespace, with `apiVersion` and `kind` filled in."""
    fields = plain(body) if isinstance(body, Resource) else body
    fields = {**fields, "apiVersion": kind.api_version, "kind": kind.kind}
    return Create(kind, fields["metadata"].get("namespace", "") if kind.namespaced else "", fields, intent=intent)


def patch(kind: AnyKind, target: Resource, body: Fields, *, locked: bool = False, intent: str = "") -> MergePatch:
    """Merge-patch fields that we own; `locked` adds the observed resourceVersion as precondition."""
    version = target.metadata.resource_version if locked or intent else ""
    return MergePatch(kind, *target.key, body, resource_version=version, intent=intent)


def patch_status(kind: AnyKind, target: Resource, status: Fields, *, intent: str = "") -> MergePatch:
    """Merge-patch our own status, with the observed resourceVersion as precondition."""
    return MergePatch(
        kind,
        *target.key,
        {"status": status},
        subresource="status" if kind.has_status else "",
        resource_version=target.metadata.resource_version,
        intent=intent,
    )


def delete(kind: AnyKind, target: Resource, *, propagation: Propagation = Propagation.BACKGROUND) -> Delete:
    """Delete exactly this object, not a later one of the same name."""
    return Delete(kind, *target.key, uid=target.metadata.uid, propagation=propagation)


def emit(kind: AnyKind, target: Resource, *, reason: str, message: str, warning: bool = False) -> Emit:
    """An event on this object."""
    event_type = "Warning" if warning else "Normal"
    return Emit(kind, *target.key, target.metadata.uid, reason=reason, message=message, type=event_type)


def check(decision: Decision) -> None:
    """Hold a decision to the rules on intents and needs.

    Raises:
        DecisionError: an effect's intent is not stored before it, or is stored without a precondition; a need asks
            for answers younger than any can be.
    """
    for need in decision.needs:
        if need.max_age_s < 1:
            raise DecisionError(f"{type(need.query).__name__}: max_age_s is {need.max_age_s:g}, at least 1 is needed")
    stored: set[str] = set()
    for action in decision.actions:
        if isinstance(action, Effect):
            _check_effect(action, stored)
        elif isinstance(action, Create | MergePatch | JsonPatch) and action.intent:
            if not isinstance(action, Create) and not action.resource_version:
                raise DecisionError(f"intent {action.intent!r} is stored without a resourceVersion precondition")
            stored.add(action.intent)


def _check_effect(effect: Effect, stored: set[str]) -> None:
    try:
        hash(effect.arguments)
    except TypeError:
        raise DecisionError(f"arguments of effect {effect.performer!r} must be a frozen struct") from None
    if effect.intent and effect.intent not in stored:
        raise DecisionError(f"effect {effect.performer!r}: no earlier write of the decision stores {effect.intent!r}")
