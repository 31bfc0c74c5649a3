"""Endpoints, images and agents: upstream's vectors, and what it gets wrong."""

import msgspec
import pytest

from ironbell.api.capt.tinkerbellcluster import TinkerbellClusterSpec
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.cluster.common import ApiEndpoint
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.codec.gotemplate import TemplateError
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.contract.servers.directory import agent_id
from ironbell.controllers.capt.cluster import endpoint
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.controllers.capt.templates import image_url
from ironbell.provisioner.lifecycle.observe import PROGRESS_S

A, B = ("192.168.1.10", 443), ("192.168.1.20", 6443)
REGISTRY = "ghcr.io/tinkerbell/cluster-api-provider-tinkerbell"


@pytest.mark.parametrize(
    ("own", "cluster", "expected"),
    [
        (("", 0), A, A),
        (A, ("", 0), A),
        (A, B, A),
        (("own", 0), B, B),
        (("own", 0), ("", 0), ("own", 6443)),
        (("own", 1234), ("cluster", 0), ("own", 1234)),
        (("own", 0), ("cluster", 0), ("cluster", 6443)),
        (("", 1234), ("cluster", 0), ("cluster", 1234)),
        (("", 0), ("", 443), None),
        (("", 0), ("", 0), None),
    ],
)
def test_endpoints(own: tuple[str, int], cluster: tuple[str, int], expected: tuple[str, int] | None) -> None:
    found = endpoint(ApiEndpoint(host=own[0], port=own[1]), ApiEndpoint(host=cluster[0], port=cluster[1]))
    assert (None if found is None else (found.host, found.port)) == expected


def url(version: str = "v1.35.2", machine: dict[str, str] | None = None, **cluster: str) -> str:
    return image_url(
        msgspec.convert(machine or {}, TinkerbellMachineSpec), msgspec.convert(cluster, TinkerbellClusterSpec), version
    )


def test_images() -> None:
    assert url() == f"{REGISTRY}/ubuntu-2004:v1.35.2.gz"
    assert url("1.19.4") == f"{REGISTRY}/ubuntu-2004:1.19.4.gz"
    assert url("v1.35.2+build.1") == f"{REGISTRY}/ubuntu-2004:v1.35.2_build.1.gz"
    assert url(imageLookupBaseRegistry="") == f"{REGISTRY}/ubuntu-2004:v1.35.2.gz", "empty is not set"
    assert url(imageLookupOSDistro="Debian", imageLookupOSVersion="12.9") == f"{REGISTRY}/debian-129:v1.35.2.gz"
    assert url(machine={"imageLookupOSVersion": "24.04"}, imageLookupOSVersion="22.04").endswith(
        "ubuntu-2404:v1.35.2.gz"
    )
    published = "{{.BaseRegistry}}:{{.OSVersion}}-{{.KubernetesVersion}}-{{.Architecture}}.gz"
    own = {"imageLookupFormat": published, "imageLookupOSVersion": "24.04"}
    assert url(machine=own, imageLookupBaseRegistry="r/ubuntu") == "r/ubuntu:2404-v1.35.2-amd64.gz"


def test_a_format_that_names_something_else_is_an_error() -> None:
    with pytest.raises(TemplateError):
        url(imageLookupFormat="{{.Nonsense}}")


@pytest.mark.parametrize(
    ("agent", "instance", "macs", "expected"),
    [
        ("", "02:00:00:00:00:01", ["02:00:00:00:00:01"], "02:00:00:00:00:01"),
        ("", "d3b0a1de-0000-4000-8000-000000000001", ["02-00-00-00-00-0A"], "02:00:00:00:00:0a"),
        ("", "02:00:00:00:00:02", ["02:00:00:00:00:01", "02:00:00:00:00:02"], "02:00:00:00:00:02"),
        ("rack-1-7", "02:00:00:00:00:01", ["02:00:00:00:00:01"], "rack-1-7"),
        ("", "some-id", [], "some-id"),
    ],
)
def test_device_1_is_what_the_agent_calls_itself(agent: str, instance: str, macs: list[str], expected: str) -> None:
    interfaces = [{"dhcp": {"mac": mac}} for mac in macs]
    spec = {"agentID": agent, "interfaces": interfaces, "metadata": {"instance": {"id": instance}}}
    assert agent_id(HARDWARE.convert({"metadata": {"name": "s"}, "spec": spec})) == expected


def test_an_installation_wakes_its_machine_when_something_follows_and_tells_the_rest_now_and_then() -> None:
    def workflow(state: str, action: str, percent: int, said: str = "") -> Workflow:
        progress = {"actionID": "1", "percent": percent}
        return WORKFLOW.convert(
            {
                "metadata": {
                    "namespace": "default",
                    "name": "w",
                    "annotations": {PROGRESS: msgspec.json.encode(progress).decode()},
                },
                "status": {
                    "state": state,
                    "currentState": {"actionID": "1", "actionName": action},
                    "tasks": [{"name": "t", "actions": [{"id": "1", "name": action, "message": said}]}],
                },
            }
        )

    reconciler = TinkerbellMachineReconciler("http://192.0.2.1:7080")
    at_once, later, _of_rack = [one for one in reconciler.declaration.watches if one.kind is WORKFLOW]
    assert (at_once.delay_s, later.delay_s) == (0.0, PROGRESS_S)
    begins, goes_on, says = (
        workflow("RUNNING", "a", 10),
        workflow("RUNNING", "a", 20),
        workflow("RUNNING", "a", 20, "x"),
    )
    ends = workflow("SUCCESS", "a", 20)
    assert at_once.relevant is not None
    assert later.relevant is not None
    assert [at_once.relevant(*pair) for pair in ((None, begins), (begins, goes_on), (goes_on, ends), (ends, None))] == [
        True,
        False,
        True,
        True,
    ]
    assert [later.relevant(*pair) for pair in ((begins, goes_on), (goes_on, says))] == [True, False]
