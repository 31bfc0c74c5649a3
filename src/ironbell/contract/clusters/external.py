"""Objects of providers: looked up by reference in the version that keeps a contract.

A reconciler that looks them up has `DEFINITIONS` among its watches and `BY_GROUP_KIND` among its indexes (both of
`contract.clusters.references`). Its keys come back when what they looked up comes, changes or goes, and when the
definition of the kind does. What is not known yet is `UNKNOWN`, which is not `MISSING`: nobody may conclude from it
that something was deleted.

Source: kubernetes-sigs/cluster-api: controllers/external/util.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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
from ironbell.kube.decision import AnyKind
from ironbell.kube.reconciler import Cache, DynamicWatch, Unsynced, owner_keys


class State(Enum):
    """What is known of an object."""

    EXISTS = "exists"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """Its kind has not been listed yet, or cannot be."""
    NO_SUCH_KIND = "no such kind"


class ReferencedObjectMissingError(IronbellError):
    """An object is needed that is not there."""

    reason = "ReferencedObjectMissing"


@dataclass(frozen=True, slots=True)
class External:
    """What a look-up gave."""

    state: State
    reference: ObjectReference
    namespace: str
    kind: Kind[Unstructured] | None = None
    """Known unless the state is NO_SUCH_KIND."""
    contract: str = ""
    obj: Unstructured | None = None
    problem: str = ""
    """What the API or the definition lacks, where the state is UNKNOWN or NO_SUCH_KIND; UNKNOWN without one passes."""

    @property
    def exists(self) -> bool:
        return self.state is State.EXISTS

    @property
    def is_missing(self) -> bool:
        """Whether the object certainly is not there."""
        return self.state is State.MISSING

    @property
    def is_deleting(self) -> bool:
        """Whether it is there and its deletion was asked for."""
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
        """What to tell a person who waits for it."""
        name = f"{self.reference.kind} {self.namespace}/{self.reference.name}"
        if self.state is State.EXISTS:
            return name
        if self.state is State.MISSING:
            return f"{name} does not exist"
        if self.state is State.UNKNOWN:
            return f"{name} cannot be read yet" + (f": {self.problem}" if self.problem else "")
        return f"{name} cannot be read: {self.problem}"


def read_reference(cache: Cache, reference: Reference, namespace: str) -> External:
    """The object that a reference names, in the version of the newest contract."""
    about = ObjectReference(reference.api_group, reference.kind, reference.name)
    try:
        contracted = resolve(cache, about.api_group, about.kind)
    except NoSuchKindError as error:
        return External(State.NO_SUCH_KIND, about, namespace, problem=error.message)
    return _read(cache, contracted, about, namespace)


def read_version(cache: Cache, api_version: str, kind: str, namespace: str, name: str) -> External:
    """The object that a reference with an apiVersion names, in that version."""
    group, _, version = api_version.rpartition("/")
    about = ObjectReference(group, kind, name)
    try:
        contracted = resolve_version(cache, group, version, kind)
    except NoSuchKindError as error:
        return External(State.NO_SUCH_KIND, about, namespace, problem=error.message)
    return _read(cache, contracted, about, namespace)


def external_watch(owner: AnyKind) -> DynamicWatch:
    """Look at owners of kind `owner` when an object changes that they control, of whatever looked-up kind."""
    return DynamicWatch(lambda obj, _cache: owner_keys(owner, obj))


def _read(cache: Cache, contracted: Contracted, about: ObjectReference, namespace: str) -> External:
    kind, contract = contracted.kind, contracted.contract
    found = cache.dynamic(kind, namespace if kind.namespaced else "", about.name)
    if isinstance(found, Unsynced):
        return External(State.UNKNOWN, about, namespace, kind, contract, problem=found.problem)
    state = State.MISSING if found is None else State.EXISTS
    return External(state, about, namespace, kind, contract, found)
