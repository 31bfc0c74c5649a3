"""Deployments and Services.

Controllers run as an unprivileged user without any writable path. Servers for machines use their node's network,
because DHCP is about that network; they start as root with the few capabilities that are needed to bind ports and to
become an ordinary user. The workflow service beside boot services is a separate container, so that a flood of the one
does not reach the other.

Source: kubernetes.io: concepts/security/pod-security-standards (restricted, and what the servers need beyond it).
"""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.app.components import Role, components_named
from ironbell.app.install.options import COMPONENT, InstallOptions, Object, Unit, labels, new_object
from ironbell.app.install.webhooks import serves_webhooks, webhook_arguments
from ironbell.app.processes.privileges import SERVICE_ID
from ironbell.app.wire.config import (
    BOOT_SERVERS,
    TINK_SERVER,
    WORKFLOW_PROCESS,
    WORKFLOW_SERVERS,
    WireConfig,
)
from ironbell.base.ports import HEALTH_PORT, HTTPS_PORT, WEBHOOK_PORT
from ironbell.contract.system import SecretMount

NOBODY = 65534
DATA = "/var/lib/ironbell"
_GRACE_S = 30


def workloads(options: InstallOptions) -> Iterator[Object]:
    """The Deployment of each unit, and a Service if other components call it."""
    for unit in options.units:
        ports = _ports(unit)
        where = {"namespace": options.namespace, "component": unit.word}
        if ports:
            services = [_service_port(name, port) for name, port in ports.items()]
            yield new_object("v1", "Service", unit.name, spec={"selector": _selector(unit), "ports": services}, **where)
        yield new_object("apps/v1", "Deployment", unit.name, spec=_deployment(unit, options), **where)


def _deployment(unit: Unit, options: InstallOptions) -> Object:
    return {
        "replicas": options.replicas,
        "selector": {"matchLabels": _selector(unit)},
        # a server holds its node's ports: the old pod must end before the new one can start
        "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}} if _serves(unit) else {},
        "template": {"metadata": {"labels": labels(unit.word)}, "spec": _pod(unit, options)},
    }


def _pod(unit: Unit, options: InstallOptions) -> Object:
    serves = _serves(unit)
    pod: Object = {
        "serviceAccountName": unit.name,
        "terminationGracePeriodSeconds": _GRACE_S,
        "affinity": {"podAntiAffinity": _apart(unit, required=serves)},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": SERVICE_ID if serves else NOBODY},
        "containers": [
            _container(unit, options, words, health_port=HEALTH_PORT + number)
            for number, words in enumerate(_processes(unit))
        ],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    for mount in _secret_mounts(unit):
        secret = {"secretName": mount.secret, "optional": True}
        pod["volumes"].append({"name": mount.volume, "secret": secret})
    if serves:
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        pod["volumes"].append({"name": "data", "emptyDir": {}})
    else:
        pod["securityContext"] |= {"runAsNonRoot": True, "runAsUser": NOBODY, "runAsGroup": NOBODY}
    return pod


def _secret_mounts(unit: Unit) -> list[SecretMount]:
    return [mount for system in unit.systems for mount in system.mounts]


def _processes(unit: Unit) -> list[tuple[str, ...]]:
    """The words of each container: names of components, or the unit's own word."""
    names = [component.name for component in unit.components]
    parts = [tuple(name for name in names if name in servers) for servers in (BOOT_SERVERS, WORKFLOW_SERVERS)]
    return parts if _serves(unit) and all(parts) else [(unit.word,)]


def _container(unit: Unit, options: InstallOptions, words: tuple[str, ...], *, health_port: int) -> Object:
    serves = _serves(unit)
    # on the node's network the port would be open to everybody, machines included
    address = "127.0.0.1" if serves else "0.0.0.0"  # noqa: S104
    more = [f"--user={SERVICE_ID}"] if serves else webhook_arguments(unit, options)
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    mounts += [{"name": mount.volume, "mountPath": mount.folder, "readOnly": True} for mount in _secret_mounts(unit)]
    return {
        "name": "ironbell" if health_port == HEALTH_PORT else WORKFLOW_PROCESS,
        "image": options.image,
        "args": ["run", *words, f"--health-address={address}:{health_port}", *more, *unit.arguments],
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{"name": name, "containerPort": port} for name, port in _ports(unit, words).items()],
        "livenessProbe": _probe("/healthz", health_port, on_node=serves)
        | {"initialDelaySeconds": 10, "periodSeconds": 20},
        "readinessProbe": _probe("/readyz", health_port, on_node=serves) | {"periodSeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {
                "drop": ["ALL"],
                **({"add": ["NET_BIND_SERVICE", "NET_RAW", "SETGID", "SETUID"]} if serves else {}),
            },
        },
        "volumeMounts": [*mounts, {"name": "data", "mountPath": DATA}] if serves else mounts,
    }


def _probe(path: str, port: int, *, on_node: bool) -> Object:
    host = {"host": "127.0.0.1"} if on_node else {}
    return {"httpGet": {"path": path, "port": port, **host}, "timeoutSeconds": 5}


def _apart(unit: Unit, *, required: bool) -> Object:
    term = {"labelSelector": {"matchLabels": _selector(unit)}, "topologyKey": "kubernetes.io/hostname"}
    if required:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _ports(unit: Unit, words: tuple[str, ...] = ()) -> dict[str, int]:
    """Ports by name which others call: of the whole pod, or of the container that runs these components."""
    names = {component.name for component in components_named(words or (unit.word,))}
    defaults = WireConfig(folder=DATA)
    ports: dict[str, int] = {}
    if _serves(unit) and names != {TINK_SERVER}:
        ports["http"] = defaults.http_port
    if TINK_SERVER in names:
        ports["grpc"] = defaults.grpc_port
    if not ports:
        ports["metrics"] = HEALTH_PORT
    if serves_webhooks(unit):
        ports["webhooks"] = WEBHOOK_PORT
    return ports


def _service_port(name: str, port: int) -> Object:
    # the API server calls webhooks at HTTPS's own port, as their configuration requires
    return {"name": name, "port": HTTPS_PORT if port == WEBHOOK_PORT else port, "targetPort": port}


def _selector(unit: Unit) -> dict[str, str]:
    return {"app.kubernetes.io/name": "ironbell", COMPONENT: unit.word}


def _serves(unit: Unit) -> bool:
    return any(component.role is Role.SERVER for component in unit.components)
