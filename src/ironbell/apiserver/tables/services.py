"""Tables of what is reached over a network, and of storage.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age_of,
    column,
    entries,
    labels_text,
    name_of,
    named,
    number,
    part,
    some,
    texts,
)
from ironbell.apiserver.verbs.scale import selector_text

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_WIDTH = 16


def _service(item: dict[str, Any]) -> list[Any]:
    spec = part(item, "spec")
    ports = ",".join(_port(entry) for entry in entries(spec, "ports"))
    addresses = texts(spec, "clusterIPs") or [str(spec.get("clusterIP") or NONE)]
    return [spec.get("type", ""), addresses[0], _external(item), ports or NONE]


def _port(entry: dict[str, Any]) -> str:
    node = number(entry, "nodePort")
    return f"{number(entry, 'port')}{f':{node}' if node else ''}/{entry.get('protocol', '')}"


def _external(item: dict[str, Any]) -> str:
    spec = part(item, "spec")
    given = texts(spec, "externalIPs")
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join(filter(None, [_balancer(item), *given])) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _balancer(item: dict[str, Any]) -> str:
    found = entries(part(item, "status", "loadBalancer"), "ingress")
    text = ",".join(sorted({str(entry.get("ip") or entry.get("hostname") or "") for entry in found} - {""}))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _endpoints(item: dict[str, Any]) -> str:
    shown: list[str] = []
    for subset in entries(item, "subsets"):
        addresses = [str(entry.get("ip", "")) for entry in entries(subset, "addresses")]
        ports = entries(subset, "ports")
        shown += [_joined(ip, number(port, "port")) for port in ports for ip in addresses] if ports else addresses
    return some(shown, len(shown))


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice(item: dict[str, Any]) -> list[Any]:
    ports = [str(entry.get("port") or entry.get("name") or "*") for entry in entries(item, "ports")]
    addresses = [address for entry in entries(item, "endpoints") for address in texts(entry, "addresses")]
    unset = [UNSET if text == NONE else text for text in (some(ports, len(ports)), some(addresses, len(addresses)))]
    return [item.get("addressType", ""), *unset]


def _ingress(item: dict[str, Any]) -> list[Any]:
    spec = part(item, "spec")
    rules = entries(spec, "rules")
    hosts = [str(rule["host"]) for rule in rules if rule.get("host")]
    shown = some(hosts, len(rules)) if len(hosts) > 3 else ",".join(hosts)
    return [spec.get("ingressClassName") or NONE, shown or "*", _balancer(item), "80, 443" if spec.get("tls") else "80"]


def _default_name(item: dict[str, Any], *annotations: str) -> str:
    found = part(item, "metadata", "annotations")
    is_default = any(found.get(annotation) == "true" for annotation in annotations)
    return f"{name_of(item)} (default)" if is_default else name_of(item)


def _ingress_class(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, parameters = part(item, "spec"), part(item, "spec", "parameters")
    group = parameters.get("apiGroup")
    kind = f"{parameters.get('kind', '')}{f'.{group}' if group else ''}"
    shown = f"{kind}/{parameters.get('name', '')}" if parameters else NONE
    name = _default_name(item, "ingressclass.kubernetes.io/is-default-class")
    return [name, spec.get("controller", ""), shown, age_of(item, now)]


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(item: dict[str, Any]) -> str:
    is_going = part(item, "metadata").get("deletionTimestamp")
    return "Terminating" if is_going else str(part(item, "status").get("phase", ""))


def _class(item: dict[str, Any]) -> str:
    old = part(item, "metadata", "annotations").get("volume.beta.kubernetes.io/storage-class")
    return str(old or part(item, "spec").get("storageClassName") or "")


def _volume(item: dict[str, Any]) -> list[Any]:
    spec, claim = part(item, "spec"), part(item, "spec", "claimRef")
    return [
        part(spec, "capacity").get("storage", "0"), _modes(texts(spec, "accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), _phase(item),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "", _class(item),
        spec.get("volumeAttributesClassName") or UNSET, part(item, "status").get("reason", ""),
    ]  # fmt: skip


def _claim(item: dict[str, Any]) -> list[Any]:
    spec, status = part(item, "spec"), part(item, "status")
    bound = [part(status, "capacity").get("storage", "0"), _modes(texts(status, "accessModes"))]
    return [
        _phase(item), spec.get("volumeName", ""), *(bound if spec.get("volumeName") else ["", ""]), _class(item),
        spec.get("volumeAttributesClassName") or UNSET,
    ]  # fmt: skip


def _storage_class(item: dict[str, Any], now: datetime) -> list[Any]:
    name = _default_name(
        item, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
    )
    return [
        name, item.get("provisioner", ""), item.get("reclaimPolicy") or "Delete",
        item.get("volumeBindingMode") or "Immediate", bool(item.get("allowVolumeExpansion")), age_of(item, now),
    ]  # fmt: skip


_CLASS = column("StorageClass", "Class of the storage.")
_ATTRIBUTES = column("VolumeAttributesClass", "Class of the volume's attributes.")
_VOLUME_MODE = column("VolumeMode", "Whether it is a file system or a block device.", wide=True)
_CAPACITY = column("Capacity", "How much it holds.")
_ACCESS = column("Access Modes", "Who may use it at the same time.")
_STATUS = column("Status", "What it is at.")


def _volume_mode(item: dict[str, Any]) -> list[Any]:
    return [part(item, "spec").get("volumeMode") or UNSET]


PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "Service"): named(
        column("Type", "How it is reached."), column("Cluster-IP", "Address inside the cluster."),
        column("External-IP", "Address outside the cluster."), column("Port(s)", "Its ports."), cells=_service,
        more=(column("Selector", "Which pods are behind it.", wide=True),),
        more_cells=lambda item: [labels_text(part(item, "spec", "selector"))],
    ),
    ("", "Endpoints"): named(
        column("Endpoints", "What is behind the service."), cells=lambda item: [_endpoints(item)]
    ),
    ("discovery.k8s.io", "EndpointSlice"): named(
        column("AddressType", "What its addresses are."), column("Ports", "Its ports."),
        column("Endpoints", "Its addresses."), cells=_slice,
    ),
    ("networking.k8s.io", "Ingress"): named(
        column("Class", "Who serves it."), column("Hosts", "Names that it is for."),
        column("Address", "Where it is reached."), column("Ports", "Its ports."), cells=_ingress,
    ),
    ("networking.k8s.io", "IngressClass"): Printer(
        (NAME, column("Controller", "Who serves it."), column("Parameters", "Where more is said."), AGE), _ingress_class
    ),
    ("networking.k8s.io", "NetworkPolicy"): named(
        column("Pod-Selector", "Which pods it is for."),
        cells=lambda item: [selector_text(part(item, "spec", "podSelector")) or NONE],
    ),
    ("", "PersistentVolume"): named(
        _CAPACITY, _ACCESS, column("Reclaim Policy", "What becomes of it."), _STATUS, column("Claim", "Who has it."),
        _CLASS, _ATTRIBUTES, column("Reason", "Why it is so."), cells=_volume, more=(_VOLUME_MODE,),
        more_cells=_volume_mode,
    ),
    ("", "PersistentVolumeClaim"): named(
        _STATUS, column("Volume", "What it got."), _CAPACITY, _ACCESS, _CLASS, _ATTRIBUTES, cells=_claim,
        more=(_VOLUME_MODE,), more_cells=_volume_mode,
    ),
    ("storage.k8s.io", "StorageClass"): Printer(
        (
            NAME, column("Provisioner", "Who makes volumes."), column("ReclaimPolicy", "What becomes of them."),
            column("VolumeBindingMode", "When a volume is chosen."),
            column("AllowVolumeExpansion", "Whether volumes can grow."), AGE,
        ),
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttachment"): named(
        column("Attacher", "Who attaches it."), column("PV", "The volume."), column("Node", "Where to."),
        column("Attached", "Whether it is attached.", type="boolean"),
        cells=lambda item: [
            part(item, "spec").get("attacher", ""), part(item, "spec", "source").get("persistentVolumeName", ""),
            part(item, "spec").get("nodeName", ""), bool(part(item, "status").get("attached")),
        ],
    ),
    ("storage.k8s.io", "CSINode"): named(
        column("Drivers", "How many drivers it has.", type="integer"),
        cells=lambda item: [len(entries(part(item, "spec"), "drivers"))],
    ),
}  # fmt: skip
