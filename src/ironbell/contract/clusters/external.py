"""Objects of providers: looked up by reference in the version that keeps a contract.

A reconciler that looks them up has `DEFINITIONS` among its watches and `BY_GROUP_KIND` among its indexes (both of
`contract.clusters.references`). Its keys are requeued when the object that they read is created, changed or deleted,
and when the definition of the kind is. An object that cannot be read yet is `UNKNOWN`, which is not `MISSING`: no
controller may conclude from it that the object was deleted.

Source: kubernetes-sigs/cluster-api: controllers/external/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.errors import IronbellError
from ironbell.contract.clusters.references import (
    Contracted,
    NoSuchKindError,
    ObjectReference,
    Reference,
    resolve,
    resolve_version,
)
from ironbell.contract.fields import text_at
from ironbell.kube.decision import AnyKind
from ironbell.kube.reconciler import Cache, DynamicWatch, Unsynced, owner_keys


class State(Enum):
    """State of an object, as far as it is known."""

    EXISTS = "exists"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """Its kind has not been listed yet, or cannot be."""
    NO_SUCH_KIND = "no such kind"


class ReferencedObjectMissingError(IronbellError):
    """A required object does not exist."""

    reason = "ReferencedObjectMissing"


@dataclass(frozen=True, slots=True)
class External:
    """Result of reading a reference."""

    state: State
    reference: ObjectReference
    namespace: str
    kind: Kind[Unstructured] | None = None
    """Known unless the state is NO_SUCH_KIND."""
    contract: str = ""
    obj: Unstructured | None = None
    problem: str = ""
    """Problem of the API or the definition in the states UNKNOWN and NO_SUCH_KIND; UNKNOWN without one is temporary."""

    @property
    def exists(self) -> bool:
        return self.state is State.EXISTS

    @property
    def is_missing(self) -> bool:
        """Return whether the object certainly does not exist."""
        return self.state is State.MISSING

    @property
    def is_deleting(self) -> bool:
        """Return whether the object exists and is being deleted."""
        return self.obj is not None and self.obj.metadata.deletion_timestamp is not None

    @property
    def kind_and_object(self) -> tuple[Kind[Unstructured], Unstructured]:
        """Kind and object.

        Raises:
            NotFoundError: there is none.
        """
        if self.kind is None or self.obj is None:
            raise ReferencedObjectMissingError(str(self))
        return self.kind, self.obj

    def __str__(self) -> str:
        """Message for a user who waits for the object."""
        name = f"{self.reference.kind} {self.namespace}/{self.reference.name}"
        if self.state is State.EXISTS:
            return name
        if self.state is State.MISSING:
            return f"{name} does not exist"
        if self.state is State.UNKNOWN:
            return f"{name} cannot be read yet" + (f": {self.problem}" if self.problem else "")
        return f"{name} cannot be read: {self.problem}"


@dataclass(frozen=True, slots=True)
class ProviderObject:
    """Plain data of a provider's object, and the contract that they keep."""

    body: Mapping[str, Any]
    contract: str

    @classmethod
    def of(cls, external: External) -> Self:
        """Raises `ReferencedObjectMissingError` if there is none."""
        return cls(external.kind_and_object[1].body, external.contract)

    @property
    def failure_reason(self) -> str:
        """Return the reason why it will never reach its desired state (v1beta1 contract)."""
        return text_at(self.body, "status", "failureReason")

    @property
    def failure_message(self) -> str:
        return text_at(self.body, "status", "failureMessage")


def read_reference(cache: Cache, reference: Reference, namespace: str) -> External:
    """The object that a reference names, in the version of the newest contract."""
    target = ObjectReference(reference.api_group, reference.kind, reference.name)
    try:
        contracted = resolve(cache, target.api_group, target.kind)
    except NoSuchKindError as error:
        return External(State.NO_SUCH_KIND, target, namespace, problem=error.message)
    return _read(cache, contracted, target, namespace)


def read_version(cache: Cache, api_version: str, kind: str, namespace: str, name: str) -> External:
    """The object that a reference with an apiVersion names, in that version."""
    group, _, version = api_version.rpartition("/")
    target = ObjectReference(group, kind, name)
    try:
        contracted = resolve_version(cache, group, version, kind)
    except NoSuchKindError as error:
        return External(State.NO_SUCH_KIND, target, namespace, problem=error.message)
    return _read(cache, contracted, target, namespace)


def external_watch(owner: AnyKind) -> DynamicWatch:
    """Look at owners of kind `owner` when an object changes that they control, of whatever looked-up kind."""
    return DynamicWatch(lambda obj, _cache: owner_keys(owner, obj))


def _read(cache: Cache, contracted: Contracted, target: ObjectReference, namespace: str) -> External:
    kind, contract = contracted.kind, contracted.contract
    obj = cache.dynamic(kind, namespace if kind.namespaced else "", target.name)
    if isinstance(obj, Unsynced):
        return External(State.UNKNOWN, target, namespace, kind, contract, problem=obj.problem)
    state = State.MISSING if obj is None else State.EXISTS
    return External(state, target, namespace, kind, contract, obj)
