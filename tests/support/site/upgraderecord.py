"""What the API of a site says while the site is killed and started again as another version: one history.

Every collection is watched from the version of its first list on, across the restart, without another list: an object
that is missing afterwards although no watch has reported its deletion is lost.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from support.api.kubeapi import KubeApi, connect

HARDWARE = "/apis/tinkerbell.org/v1alpha1/hardware"
WORKFLOWS = "/apis/tinkerbell.org/v1alpha1/workflows"
TINKERBELL_MACHINES = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/tinkerbellmachines"
MACHINES = "/apis/cluster.x-k8s.io/v1beta2/machines"
CLUSTERS = "/apis/cluster.x-k8s.io/v1beta2/clusters"
DEPLOYMENTS = "/apis/cluster.x-k8s.io/v1beta2/machinedeployments"
CLAIMED_BY, HELD = "ironbell.dev/claimed-by", "ironbell.dev/hold"
_BUILTIN = ("/api/v1/secrets", "/api/v1/configmaps", "/api/v1/namespaces")
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WATCH_S = 20.0
_PAUSE_S = 0.2
_CONNECTIONS = 64
"""One for each collection, and some for requests."""

Object = dict[str, Any]


@dataclass
class Claim:
    """One owner's claim on one server."""

    server: str
    owner: str
    """`KIND NAMESPACE/NAME UID`."""
    released: bool = False


@dataclass
class Recorder:
    """The objects of all collections by their uid, and the claims on servers in their order."""

    kubeconfig: Path
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)
    """By the path of the collection and the uid."""
    claims: list[Claim] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    installations: dict[str, set[str]] = field(default_factory=dict)
    """The uids of the Workflows that installed a TinkerbellMachine's server, by the machine's uid."""
    interrupted: set[str] = field(default_factory=set)
    """Owners whose Workflow was under way when the site was killed."""
    _versions: dict[str, str] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _connection: KubeApi | None = None
    _served: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def api(self) -> KubeApi:
        """Access to the site as it is now."""
        assert self._connection is not None
        return self._connection

    def begin(self) -> None:
        """List all collections, and watch them from then on."""
        self.serve()
        for path in self._collections():
            found = self.api.get(path).json
            self._versions[path] = found["metadata"]["resourceVersion"]
            self.objects[path] = {}
            for item in found["items"]:
                self._changed(path, "ADDED", item)
        for path in self.objects:
            self._threads.append(threading.Thread(target=self._follow, args=(path,), daemon=True, name=path))
            self._threads[-1].start()

    def _collections(self) -> list[str]:
        definitions = self.api.get(_DEFINITIONS).json["items"]
        stored = [(item["spec"], version) for item in definitions for version in item["spec"]["versions"]]
        return [
            *_BUILTIN,
            *(f"/apis/{s['group']}/{v['name']}/{s['names']['plural']}" for s, v in stored if v["storage"]),
        ]

    def serve(self) -> None:
        """The site serves, with the kubeconfig that it has written."""
        self._connection = connect("embedded", self.kubeconfig, connections=_CONNECTIONS)
        self._served.set()

    def interrupt(self) -> None:
        """The site is about to be killed: note whose Workflows are under way."""
        self._served.clear()
        with self._lock:
            for item in self.objects[WORKFLOWS].values():
                if item.get("status", {}).get("state") not in ("SUCCESS", "FAILED", "TIMEOUT"):
                    self.interrupted |= {owner["uid"] for owner in item["metadata"].get("ownerReferences", [])}

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * _WATCH_S)

    def all(self, path: str) -> list[Object]:
        """The objects of a collection."""
        with self._lock:
            return list(self.objects[path].values())

    def uids(self, path: str) -> dict[str, str]:
        """The uids of a collection's objects by their name."""
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in self.all(path)}

    def lost_and_unknown(self) -> list[str]:
        """Objects that the API does not list although no watch has reported their deletion, and the other way round;
        empty as soon as the watches have reported all that has happened."""
        found: list[str] = []
        for path in self.objects:
            listed = {item["metadata"]["uid"]: item for item in self.api.get(path).json["items"]}
            with self._lock:
                known = dict(self.objects[path])
            found += [f"{path} {_name(known[uid])} is lost" for uid in known.keys() - listed.keys()]
            found += [f"{path} {_name(listed[uid])} was not reported" for uid in listed.keys() - known.keys()]
        return found

    def check_claims(self) -> None:
        """No server was claimed twice, none was taken from an owner that lives, none was installed again in vain.

        Raises:
            AssertionError: with all that is wrong.
        """
        with self._lock:
            problems = list(self.problems)
            servers = Counter(claim.owner for claim in self.claims)
            problems += [f"{owner} has claimed {count} servers" for owner, count in servers.items() if count > 1]
            living = {item["metadata"]["uid"] for item in self.objects[TINKERBELL_MACHINES].values()}
            problems += [
                f"{claim.server} was released, and its owner lives: {claim.owner}"
                for claim in self.claims
                if claim.released and _uid(claim.owner) in living
            ]
            problems += [
                f"the server of TinkerbellMachine {uid} was installed {len(workflows)} times"
                for uid, workflows in self.installations.items()
                if len(workflows) > 1 + (uid in self.interrupted)
            ]
        assert problems == []

    @property
    def owners(self) -> dict[str, str]:
        """The owner of each server that is claimed."""
        with self._lock:
            return {claim.server: claim.owner for claim in self.claims if not claim.released}

    def _follow(self, path: str) -> None:
        while not self._ended.is_set():
            if not self._served.wait(_PAUSE_S):
                continue
            # a site that is killed ends its watches in any way
            with contextlib.suppress(urllib3.exceptions.HTTPError, AssertionError, StopIteration, OSError):
                self._watch(path)
            self._ended.wait(_PAUSE_S)

    def _watch(self, path: str) -> None:
        for event in self._events(path):
            kind, item = event["type"], event["object"]
            if kind == "ERROR":
                with self._lock:
                    self.problems.append(f"{path} cannot be watched on: {item.get('message')}")
                self._ended.set()
                return
            with self._lock:
                self._versions[path] = item["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    self._changed(path, kind, item)

    def _events(self, path: str) -> Iterator[Object]:
        seconds = int(_WATCH_S) - 5
        since = self._versions[path]
        with self.api.watch(
            path, timeout=_WATCH_S, resourceVersion=since, allowWatchBookmarks=True, timeoutSeconds=seconds
        ) as watch:
            while not self._ended.is_set():
                try:
                    yield watch.next()
                except (StopIteration, json.JSONDecodeError):
                    return

    def _changed(self, path: str, kind: str, item: Object) -> None:
        metadata = item["metadata"]
        if kind == "DELETED":
            self.objects[path].pop(metadata["uid"], None)
        else:
            self.objects[path][metadata["uid"]] = item
        if path == HARDWARE:
            self._hardware_changed(kind, metadata)
        elif path == WORKFLOWS and item["spec"].get("hardwareRef") and _is_installation(metadata):
            for owner in metadata.get("ownerReferences", []):
                self.installations.setdefault(owner["uid"], set()).add(metadata["uid"])

    def _hardware_changed(self, kind: str, metadata: Object) -> None:
        name, annotations = metadata["name"], metadata.get("annotations", {})
        owner = annotations.get(CLAIMED_BY, "")
        if kind == "DELETED":
            self.problems.append(f"Hardware {name} was deleted")
        if HELD in annotations:
            self.problems.append(f"{name} is held: {annotations[HELD]}")
        claim = next((claim for claim in self.claims if claim.server == name and not claim.released), None)
        if claim is not None and claim.owner != owner:
            claim.released = True
            if owner:
                self.problems.append(f"{name} of {claim.owner} was claimed by {owner}")
        if owner and (claim is None or claim.owner != owner):
            twice = [other.server for other in self.claims if other.owner == owner and not other.released]
            if twice:
                self.problems.append(f"{owner} has claimed {name} beside {', '.join(twice)}")
            self.claims.append(Claim(name, owner))


def _is_installation(metadata: Object) -> bool:
    """Whether a Workflow has the name of its TinkerbellMachine; those that wipe have others."""
    return any(owner["name"] == metadata["name"] for owner in metadata.get("ownerReferences", []))


def _uid(owner: str) -> str:
    return owner.rpartition(" ")[2]


def _name(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
