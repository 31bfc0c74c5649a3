"""References into another namespace, and the rights that their writers must have there. Pure.

Controllers follow references with rights of their own, which are wider than those of the people who write them. So the
writer of a reference must hold the rights that it makes use of; a reference within one's own namespace needs none.

The verb `use` belongs to no API: it grants nothing but references. It is held by controllers that copy references
which their owners were allowed to set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.core import SECRET
from ironbell.api.tinkerbell import TEMPLATE

Object: TypeAlias = Mapping[str, Any]

USE: Final = "use"
_CLUSTER_API: Final = "cluster.x-k8s.io"
_INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Access:
    """A right, as a SubjectAccessReview asks for it."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def __str__(self) -> str:
        return f"{self.verb} {self.full_resource}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True, slots=True)
class Crossing:
    """A reference into another namespace."""

    path: str
    kind: str
    namespace: str
    name: str
    rights: tuple[Access, ...]
    """Rights of people, of which the writer needs one."""
    rights_of_controllers: tuple[Access, ...] = ()
    """Rights that suffice as well, and that messages do not mention."""
    receiver: str = ""
    """Address that receives the contents, where that is part of the reference."""

    @property
    def any_of(self) -> tuple[Access, ...]:
        return *self.rights, *self.rights_of_controllers

    @property
    def identity(self) -> tuple[str, ...]:
        """The same for a reference that says the same in another place of the object."""
        return self.kind, self.namespace, self.name, self.receiver

    def cause(self, user: str) -> str:
        """Return the reason why a writer without the rights may not set it."""
        denied = " nor ".join(map(str, self.rights))
        denied = f"may neither {denied}" if len(self.rights) > 1 else f"may not {denied}"
        where = f'{self.path} names {self.kind} "{self.namespace}/{self.name}"'
        return f'{where}, and user "{user}" {denied} in namespace "{self.namespace}"'

    def remedy(self, own_namespace: str) -> str:
        """Return the remedy for its writer."""
        first = self.rights[0]
        role = f'a Role in namespace "{self.namespace}" with the verb "{first.verb}" on {first.full_resource}'
        return f'Name a {self.kind} in namespace "{own_namespace}", or ask an administrator for {role}.'


def crossings(group: str, plural: str, obj: Object, namespace: str) -> list[Crossing]:
    """The references of an object in `namespace` into other namespaces; empty for kinds that have none."""
    find = _KINDS.get((group, plural))
    references = find(mapping_at(obj, "spec")) if find is not None else ()
    return [crossing for crossing in references if crossing.name and crossing.namespace not in ("", namespace)]


def split(new: Sequence[Crossing], old: Sequence[Crossing]) -> tuple[list[Crossing], list[Crossing]]:
    """Return the references that a write adds, and those that existed before."""
    known = {crossing.identity for crossing in old}
    added = [crossing for crossing in new if crossing.identity not in known]
    return added, [crossing for crossing in new if crossing.identity in known]


def secret_references(connection: Object) -> Iterator[tuple[str, str, str]]:
    """Path within the connection, namespace and name of the Secrets that a BMC's connection names."""
    yield "authSecretRef", *_place(mapping_at(connection, "authSecretRef"))
    hmac = mapping_at(mapping_at(mapping_at(connection, "providerOptions"), "rpc"), "hmac")
    for algorithm, references in mapping_at(hmac, "secrets").items():
        for number, reference in enumerate(references or ()):
            yield f"providerOptions.rpc.hmac.secrets[{algorithm}][{number}]", *_place(reference)


def may_read_secret(namespace: str, name: str) -> Access:
    """The right to read a Secret."""
    return Access("get", SECRET.group, SECRET.plural, namespace, name)


def mapping_at(obj: Object, name: str) -> Object:
    """A mapping within an object; empty where there is none."""
    value = obj.get(name)
    return value if isinstance(value, Mapping) else {}


def _of_bmc(spec: Object) -> Iterator[Crossing]:
    yield from _of_connection(spec, "")


def _of_task(spec: Object) -> Iterator[Crossing]:
    """Nobody records the address of a Task's BMC: where the password goes is part of the reference."""
    connection = mapping_at(spec, "connection")
    redfish = mapping_at(mapping_at(connection, "providerOptions"), "redfish")
    yield from _of_connection(spec, f"{connection.get('host', '')}:{redfish.get('port') or ''}")


def _of_connection(spec: Object, receiver: str) -> Iterator[Crossing]:
    for path, namespace, name in secret_references(mapping_at(spec, "connection")):
        rights = (may_read_secret(namespace, name),)
        copied = (Access(USE, SECRET.group, SECRET.plural, namespace, name),)
        yield Crossing(f"spec.connection.{path}", SECRET.kind, namespace, name, rights, copied, receiver)


def _of_job(spec: Object) -> Iterator[Crossing]:
    """A user who may create Jobs beside the Machine can power it anyway."""
    namespace, name = _place(mapping_at(spec, "machineRef"))
    use = Access(USE, MACHINE.group, MACHINE.plural, namespace, name)
    create = Access("create", JOB.group, JOB.plural, namespace)
    yield Crossing("spec.machineRef", MACHINE.kind, namespace, name, (use, create))


def _of_tinkerbell_cluster(spec: Object) -> Iterator[Crossing]:
    yield from _of_override(spec, "spec")


def _of_tinkerbell_cluster_template(spec: Object) -> Iterator[Crossing]:
    """A controller creates the objects of a template, so that the writer of the template needs the right."""
    yield from _of_override(mapping_at(mapping_at(spec, "template"), "spec"), "spec.template.spec")


def _of_override(spec: Object, path: str) -> Iterator[Crossing]:
    namespace, name = _place(mapping_at(spec, "templateOverrideRef"))
    rights = Access("get", TEMPLATE.group, TEMPLATE.plural, namespace, name)
    copied = Access(USE, TEMPLATE.group, TEMPLATE.plural, namespace, name)
    yield Crossing(f"{path}.templateOverrideRef", TEMPLATE.kind, namespace, name, (rights,), (copied,))


def _of_cluster(spec: Object) -> Iterator[Crossing]:
    """In the stored version and in the older one."""
    topology = mapping_at(spec, "topology")
    for path, namespace, name in (
        ("classRef", *_place(mapping_at(topology, "classRef"))),
        ("class", str(topology.get("classNamespace") or ""), str(topology.get("class") or "")),
    ):
        rights = Access("get", _CLUSTER_API, "clusterclasses", namespace, name)
        yield Crossing(f"spec.topology.{path}", "ClusterClass", namespace, name, (rights,))


def _place(reference: Any) -> tuple[str, str]:
    place = reference if isinstance(reference, Mapping) else {}
    return str(place.get("namespace") or ""), str(place.get("name") or "")


_KINDS: Final[Mapping[tuple[str, str], Callable[[Object], Iterator[Crossing]]]] = {
    (MACHINE.group, MACHINE.plural): _of_bmc,
    (TASK.group, TASK.plural): _of_task,
    (JOB.group, JOB.plural): _of_job,
    (_INFRASTRUCTURE, "tinkerbellclusters"): _of_tinkerbell_cluster,
    (_INFRASTRUCTURE, "tinkerbellclustertemplates"): _of_tinkerbell_cluster_template,
    (_CLUSTER_API, "clusters"): _of_cluster,
}
KINDS: Final = frozenset(_KINDS)
"""Group and plural of all kinds that may refer to other namespaces."""
