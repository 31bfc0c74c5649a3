"""What the verbs work with: one value that holds the server's parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ironbell.api.client import NO_OPTIONS, WriteOptions
from ironbell.apiserver.admission import Admission
from ironbell.apiserver.connect import Connects
from ironbell.apiserver.identity import Identity
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.resources import Convert, ResourceInfo, Resources
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.apiserver.store.entry import Key
from ironbell.apiserver.store.store import Store
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness


@dataclass
class Context:
    """The parts of one server."""

    store: Store
    clock: Clock
    randomness: Randomness
    resources: Resources = field(default_factory=Resources)
    admission: Admission = field(default_factory=Admission)
    connects: Connects = field(default_factory=Connects)
    authorizer: RbacAuthorizer = field(default_factory=RbacAuthorizer)
    compile_rule: CompileRule | None = None
    conversions: Mapping[str, Convert] = field(default_factory=dict)
    """By `plural.group`: between the versions of custom resources whose versions differ."""


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks for what; a write's options with it."""

    identity: Identity
    info: ResourceInfo
    namespace: str
    name: str = ""
    subresource: str = ""
    options: WriteOptions = NO_OPTIONS

    @property
    def key(self) -> Key:
        return (self.namespace if self.info.namespaced else "", self.name)
