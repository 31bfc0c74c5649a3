"""What `ironbell crds` and `ironbell install --print` print, for all variants of their options."""

from __future__ import annotations

import re

from surface.checkout import Checkout
from surface.masks import masked
from surface.pool import in_parallel

CONTROLLERS = (
    "tink-controller", "rufio", "cluster-api", "kubeadm-bootstrap", "kubeadm-control-plane", "capt", "ipam",
)  # fmt: skip
SERVERS = ("smee", "tootles", "tink-server")
GROUPS = ("controllers", "wire")
ALIASES = (
    "tink", "workflow-controller", "bmc", "pbnj", "capi", "core", "cabpk", "capi-kubeadm-bootstrap", "cacpk", "kcp",
    "capi-kubeadm-control-plane", "cluster-api-tinkerbell", "infrastructure-tinkerbell", "ipam-in-cluster", "boots",
    "hegel",
)  # fmt: skip
"""The words of `ironbell run` and `ironbell install`: users have written them down, so they are named here."""
_GROUP = re.compile(r"^  group: (\S+)$", re.MULTILINE)


def crds(checkout: Checkout) -> dict[str, str]:
    """The files `crds/all.yaml`, `crds/GROUP.yaml`, one of two groups, and the error for an unknown group."""
    everything = checkout.printed("crds")
    groups = sorted(set(_GROUP.findall(everything)))
    texts = in_parallel(groups, lambda group: checkout.printed("crds", group))
    files = {f"crds/{group}.yaml": text for group, text in zip(groups, texts, strict=True)}
    refused = checkout.run("crds", "unknown.example.com")
    return files | {
        "crds/all.yaml": everything,
        "crds/two-groups.yaml": checkout.printed("crds", *groups[-2:]),
        "crds/unknown-group.txt": f"status {refused.status}\n{refused.stdout}{refused.stderr}",
    }


def cases() -> dict[str, tuple[str, ...]]:
    """Options of `ironbell install --print`, by the name of the case."""
    parts = (*CONTROLLERS, *SERVERS)
    all_words = ("--components", ",".join(parts))
    every = {f"without-{word}": tuple(part for part in parts if part != word) for word in parts}
    chosen: dict[str, tuple[str, ...]] = {
        **{f"only-{word}": (word,) for word in (*parts, *GROUPS, *ALIASES)},
        **every,
        "each": parts,
        "groups": GROUPS,
        "controllers-and-servers": ("controllers", *SERVERS),
        "tink-controller-and-rufio": ("tink-controller", "rufio"),
        "cluster-api-and-capt": ("cluster-api", "capt"),
        "cluster-api-and-ipam": ("cluster-api", "ipam"),
        "smee-and-tootles": ("smee", "tootles"),
        "smee-and-tink-server": ("smee", "tink-server"),
        "twice-the-same": ("rufio", "bmc", "rufio"),
        "unknown-component": ("nonesuch",),
        "no-component": ("",),
    }
    return {name: ("--components", ",".join(words)) for name, words in chosen.items()} | {
        "default": (),
        "default-json": ("--output", "json"),
        "namespace": (*all_words, "--namespace", "bare-metal"),
        "image": (*all_words, "--image", "registry.example.com/ironbell:9"),
        "no-replicas": (*all_words, "--replicas", "0"),
        "three-replicas": (*all_words, "--replicas", "3"),
        "arguments": ("--argument", "wire=--interface=eth1", "--argument", "wire=--dhcp=proxy", "--argument",
                      "rufio=--workers=4"),
        "argument-of-unknown-word": ("--argument", "capt=--identity=strict"),
        "argument-without-value": ("--argument", "wire"),
    }  # fmt: skip


def installs(checkout: Checkout) -> dict[str, str]:
    """A file `install/CASE.yaml` for each case; where the options are rejected, with the status and the error."""
    wanted = cases()
    outputs = in_parallel(wanted.values(), lambda words: checkout.run("install", "--print", *words))
    files: dict[str, str] = {}
    for name, output in zip(wanted, outputs, strict=True):
        failed = f"status {output.status}\n{output.stderr}" if output.status or output.stderr else ""
        files[f"install/{name}.yaml"] = masked(f"{output.stdout}{failed}")
    return files
