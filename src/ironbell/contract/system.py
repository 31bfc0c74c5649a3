"""A controller system as one value: everything that the rest of Ironbell needs to know to run, install and document it.

Each package below `controllers` defines its own in its module `system` (two, where two components share code), and
`app.systems` lists the packages. Components, roles, webhooks, definitions, `--without`, Leases and the reference are
derived from that list, in the embedded API and on a cluster alike.

The module that defines a system is imported by every command, so it imports nothing heavy: what takes long to load is
named by its module (`Lazy`), and a test loads all of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from ironbell.api.client import Api
    from ironbell.base.clock import Clock
    from ironbell.base.randomness import Randomness
    from ironbell.contract.access import Permissions
    from ironbell.contract.admission import Admission
    from ironbell.contract.admission_lookups import InformedAdmission
    from ironbell.kube.cache.caches import Informers
    from ironbell.kube.decision import AnyKind
    from ironbell.kube.manager.controller import Controller

T = TypeVar("T")


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """A value in a module that is imported when the value is needed."""

    module: str
    name: str

    def load(self) -> T:
        """Import the module, and return the value."""
        value: T = getattr(importlib.import_module(self.module), self.name)
        return value


class Closable(Protocol):
    """Something with open connections or processes."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Definitions(Enum):
    """Installation of the CustomResourceDefinitions of a system's kinds."""

    ALWAYS = "Always"
    """Everywhere: servers toward machines need them, whichever controllers run."""
    WITH_SYSTEM = "WithSystem"
    """Where the system runs: another provider may bring the same kinds with versions and webhooks of its own."""
    WITH_WEBHOOKS = "WithWebhooks"
    """Where their webhooks are answered, because without these they cannot be written; the embedded API answers
    them itself, and installs them unless the system is left out."""


@dataclass(frozen=True)
class Provider:
    """A system's entry in clusterctl's inventory of providers."""

    entry: str
    name: str
    type: str
    version: str


@dataclass(frozen=True)
class Webhooks:
    """Names of the objects through which an API server finds the webhooks that a system's process answers."""

    configuration: str
    secret: str
    """The Secret with the certificates."""


@dataclass(frozen=True)
class Option:
    """One option of `ironbell run` that is a system's own."""

    flag: str
    name: str
    """Its key among the values that `System.read_settings` is given."""
    help: str
    type: str = "text"
    """`text`, `seconds` (a duration), `count` (0 or more) or `file`."""
    default: Any = ""
    multiple: bool = False
    metavar: str | None = None
    environment: str | None = None
    show_default: bool = False


@dataclass(frozen=True)
class Settings:
    """Settings of systems from their users: typed values, at most one of each type."""

    values: tuple[object, ...] = ()

    def of(self, kind: type[T]) -> T:
        """Return the value of a type, or that type's defaults."""
        return next((value for value in self.values if isinstance(value, kind)), None) or kind()


@dataclass(frozen=True)
class SecretMount:
    """A Secret that a system's pods mount if it exists."""

    volume: str
    secret: str
    folder: str


DEFAULT_SETTINGS = Settings()


@dataclass
class Runtime:
    """Environment that a process gives to the controllers that run in it."""

    api: Api
    """The API under the identity that reads for all controllers."""
    api_of: Callable[[str], Api | None]
    """The API under the identity of a controller, or another of `Permissions.identities`, by its name; None where all
    of them use the process's own."""
    clock: Clock
    randomness: Randomness
    informers: Informers
    settings: Settings = field(default_factory=Settings)
    namespace: str = ""
    """The only namespace that is watched; empty for all."""
    _shared: dict[object, Any] = field(default_factory=dict)

    def own_api(self, name: str) -> Api:
        """Return the API under an identity of its own, where there is one."""
        return self.api_of(name) or self.api

    def shared(self, create: Callable[[Runtime], C]) -> C:
        """Return what `create` gives, created once for all systems of the process and closed with it."""
        if create not in self._shared:
            self._shared[create] = create(self)
        value: C = self._shared[create]
        return value

    async def close(self) -> None:
        """Close what systems share, the newest first. Cancellation point."""
        while self._shared:
            _create, value = self._shared.popitem()
            await value.close()


@dataclass(frozen=True)
class KindAdmission:
    """Defaults and checks of a system's kinds."""

    alone: Sequence[Admission]
    """By what an object itself shows."""
    informed: Sequence[InformedAdmission] = ()
    """By other objects as well."""


@dataclass(frozen=True)
class System:
    """One controller system."""

    name: str
    """The name of its component, in commands, Leases, Deployments and `--without`."""
    summary: str
    kinds: tuple[Lazy[Sequence[AnyKind]], ...]
    """The kinds that it defines."""
    permissions: Lazy[Permissions]
    controllers: Lazy[Callable[[Runtime], Sequence[Controller]]]
    aliases: tuple[str, ...] = ()
    definitions: Definitions = Definitions.WITH_SYSTEM
    admission: Lazy[KindAdmission] | None = None
    admitted: frozenset[str] = frozenset()
    """Names of the definitions that `admission` is about, known without loading it."""
    converted: frozenset[str] = frozenset()
    """Names of the definitions whose objects are converted between versions."""
    scale_checked: frozenset[str] = frozenset()
    """Names of the definitions whose scale subresource is checked by `admission`."""
    webhooks_of: str = ""
    """The system whose process answers the webhooks of these kinds on a cluster; empty: this one's."""
    webhooks: Webhooks | None = None
    """Names for the webhooks of this system's process; None: derived from the system's name."""
    provider: Provider | None = None
    options: tuple[Option, ...] = ()
    read_settings: Lazy[Callable[[Mapping[str, Any]], tuple[object, ...]]] | None = None
    """Values of all options of `ironbell run`, by name, to typed settings; raises `IronbellError` for an option that
    cannot be used."""
    view: Lazy[Callable[[Api, Settings], AbstractAsyncContextManager[Api]]] | None = None
    """The API as this system's process sees it, where that is not the API of the cluster that it runs on."""
    mounts: tuple[SecretMount, ...] = ()
    is_installed_by_default: bool = False
    """Whether `ironbell install` installs it if no components are named."""
    answers_engine_webhooks: bool = False
    """Whether its process answers the warnings about the engine's kinds, and checks references that cross
    namespaces."""

    def load_kinds(self) -> list[AnyKind]:
        """Import the kinds that it defines."""
        return [kind for kinds in self.kinds for kind in kinds.load()]

    @property
    def answering(self) -> str:
        """The system whose process answers the webhooks of these kinds."""
        return self.webhooks_of or self.name

    @property
    def webhook_names(self) -> Webhooks:
        return self.webhooks or Webhooks(f"ironbell-{self.name}", f"ironbell-{self.name}-webhook-tls")
