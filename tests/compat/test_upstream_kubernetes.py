"""Every definition of upstream's installs, and every Kubernetes manifest of upstream's applies.

They come from tests/facts; a manifest with code is also tested as it is published, where that is at hand. Variables are
filled in as `clusterctl generate` would. What cannot apply is listed here with what stands in the way, and must go on
failing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from ironbell.api.client import AlreadyExists, ApiError, PatchType, WriteOptions
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec import goyaml
from ironbell.codec.cel import compile_rule
from support.programs.upstream import (
    definition_files,
    definitions,
    manifests,
    names_with_code,
    needs_originals,
    original,
    systems,
)

DEFINITIONS = Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
NAMESPACES = Collection("", "v1", "namespaces", namespaced=False)
SETS = ("v1alpha1", "v1alpha2")
"""Tinkerbell's two sets share names, so that one is installed at a time."""
STRICT = WriteOptions(field_validation="Strict", dry_run=True, field_manager="test")

_VARIABLE = re.compile(r"\$\{(\w+)(?::?[=-]([^${}]*))?\}")
VALUES = {
    "CONTROL_PLANE_MACHINE_COUNT": "1",
    "WORKER_MACHINE_COUNT": "1",
    "KUBERNETES_VERSION": "v1.34.0",
    "CLUSTER_NAME": "one",
    "NAMESPACE": "default",
    "IMAGE_FORMAT": "raw",
    "IMAGE_CHECKSUM_TYPE": "sha256",
    "CLUSTER_APIENDPOINT_PORT": "6443",
    "CLUSTER_APIENDPOINT_HOST": "192.168.1.1",
    "CTLPLANE_KUBEADM_EXTRA_CONFIG": "",
    "WORKERS_KUBEADM_EXTRA_CONFIG": "",
}
KINDLESS = "an expected object of a test of KKP's, without kind and apiVersion"
# The file, and what is wrong with it.
FAULTY = {
    "bmo/config_samples_metal3.io_v1alpha1_baremetalhost.yaml": "a placeholder that the kind has no field for",
    "bmo/config_samples_metal3.io_v1alpha1_firmwareschema.yaml": "a status that the kind has not",
    "bmo/config_samples_metal3.io_v1alpha1_hostfirmwarecomponents.yaml": "fields of an older version of the kind",
    "bmo/config_samples_metal3.io_v1alpha1_hostfirmwaresettings.yaml": "a list where the kind has a map",
    "bmo/config_samples_metal3.io_v1alpha1_preprovisioningimage.yaml": "a placeholder that the kind has no field for",
    "bmo/examples_demo-hosts.yaml": "a Machine of OpenShift, whose definition is not published there",
    "capm3/controlplane_controlplane.yaml": "a reference to a pool without the group and kind that it needs",
    "capm3/machinedeployment_machinedeployment.yaml": "a reference to a pool without the group and kind that it needs",
    "capm3/templates_cluster.yaml": "a reference to a pool without the group and kind that it needs",
    "capm3/templates_clusterclass.yaml": "fields of other versions of the kinds",
    "capt/clusterctl-template.yaml": "a configuration of clusterctl, no Kubernetes object",
    "cluster-api/clusterclass-quick-start.yaml": "kinds of the development provider, without definitions",
    "kkp/baremetal-tinkerbell-machinedeployment.yaml": "a kind of KKP, whose definition is in another file of KKP's",
    "kkp/deployment-baremetal-1.36.0-machine-controller-webhook.yaml": KINDLESS,
    "kkp/deployment-baremetal-1.36.0-machine-controller.yaml": KINDLESS,
    "kkp/deployment-baremetal-1.36.0-operating-system-manager-webhook.yaml": KINDLESS,
    "kkp/deployment-baremetal-1.36.0-operating-system-manager.yaml": KINDLESS,
    "kkp/machine-controller.yaml": "kinds of cert-manager",
    "kkp/service-baremetal-1.36.0-machine-controller-webhook.yaml": KINDLESS,
    "kkp/service-baremetal-1.36.0-operating-system-manager-webhook.yaml": KINDLESS,
    "tinkerbell/cmd_agent_example_file_template.yaml": "a file for the agent, no Kubernetes object",
    "tinkerbell/pkg_backend_file_testdata_example.yaml": "a list of objects for a file backend",
}


def documents(tinkerbell: str) -> Iterator[Any]:
    """All definitions, with one of Tinkerbell's sets."""
    for system in systems():
        yield from definitions(system, f"{tinkerbell}/" if system == "tinkerbell" else "")


def objects(text: str) -> Iterator[Any]:
    for _ in range(2):  # a default may name another variable
        text = _VARIABLE.sub(lambda found: VALUES.get(found[1], found[2] if found[2] is not None else "x"), text)
    yield from (one for one in goyaml.load_all(text.encode()) if one is not None)


@asynccontextmanager
async def server() -> AsyncIterator[ApiServer]:
    opened = ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1), compile_rule=compile_rule)
    async with opened as found:
        yield found


async def install(api_server: ApiServer, tinkerbell: str) -> None:
    """Create the definitions. Their webhooks are not there, so that versions differ in name only."""
    for document in documents(tinkerbell):
        definition = {name: part for name, part in document.items() if name != "status"}
        definition["spec"] = {name: part for name, part in definition["spec"].items() if name != "conversion"}
        body = msgspec.json.encode(definition)
        await api_server.client(SYSTEM).create(DEFINITIONS, "", body, WriteOptions(field_validation="Strict"))


def test_each_file_has_definitions() -> None:
    for system in systems():
        for name, found in definition_files(system).items():
            assert {document["kind"] for document in found} == {"CustomResourceDefinition"}, name


@pytest.mark.parametrize("tinkerbell", SETS)
async def test_definitions_install(tinkerbell: str) -> None:
    async with server() as found:
        await install(found, tinkerbell)
        served = [info for info in found.resources.all() if info.custom]
        for info in served:
            assert info.compiled
    assert len(served) > 50


async def apply(api_server: ApiServer, value: Any) -> str:
    """Apply an object as a dry run; gives what is wrong."""
    if not isinstance(value, dict) or "kind" not in value or "apiVersion" not in value:
        return "no Kubernetes object"
    group, _, version = value["apiVersion"].rpartition("/")
    info = api_server.resources.by_kind(group, version, value["kind"])
    if info is None:
        return f"{value['apiVersion']} {value['kind']} is not served"
    api, namespace = api_server.client(SYSTEM), ""
    if info.namespaced:
        namespace = value["metadata"].get("namespace", "default")
        with suppress(AlreadyExists):
            await api.create(NAMESPACES, "", msgspec.json.encode({"metadata": {"name": namespace}}))
    body = msgspec.json.encode(value)
    try:
        if info.collection == DEFINITIONS or "name" not in value["metadata"]:
            await api.create(info.collection, namespace, body, STRICT)
        else:
            name = value["metadata"]["name"]
            await api.patch(info.collection, namespace, name, body, patch_type=PatchType.APPLY, options=STRICT)
    except AlreadyExists:
        return ""
    except ApiError as error:
        return error.message
    return ""


def _version_of(name: str) -> str:
    return "v1alpha2" if "v1alpha2" in name and name.startswith("tinkerbell/") else "v1alpha1"


@pytest.mark.parametrize("tinkerbell", SETS)
async def test_manifests_apply(tinkerbell: str) -> None:
    texts = {f"{path.parent.name}/{path.name}": path.read_text() for path in manifests()}
    assert len(texts) > 40
    await _apply_all(tinkerbell, texts, FAULTY)


@needs_originals
@pytest.mark.parametrize("tinkerbell", SETS)
async def test_originals_with_code_apply(tinkerbell: str) -> None:
    texts = {name: original(name).read_text() for name in names_with_code()}
    await _apply_all(tinkerbell, texts, FAULTY.keys() & texts.keys())


async def _apply_all(tinkerbell: str, texts: dict[str, str], faulty: Iterable[str]) -> None:
    found: dict[str, list[str]] = {}
    async with server() as api_server:
        await install(api_server, tinkerbell)
        for name, text in texts.items():
            if _version_of(name) != tinkerbell:
                continue
            try:
                faults = [fault for one in objects(text) if (fault := await apply(api_server, one))]
            except goyaml.YamlError as error:
                faults = [str(error)]
            if faults:
                found[name] = faults
    expected = {name for name in faulty if _version_of(name) == tinkerbell}
    unexpected = {name: faults for name, faults in found.items() if name not in expected}
    assert not unexpected
    assert found.keys() == expected, "some apply after all"
