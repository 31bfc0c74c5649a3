"""Kubernetes' own end-to-end tests of its API machinery, on both servers.

What does not pass is listed with its reason in `endtoend.yaml`, and nothing else: a spec that is not listed has to
pass, and a listed one that passes is listed in vain.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.programs.endtoend import Outcome, all_specs, listed_for, program, read_listed, run_specs
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

LISTED = read_listed(Path(__file__).parent / "endtoend.yaml")
SAMPLE = (
    (
        "API priority and fairness should ensure that requests can be classified by adding FlowSchema and "
        "PriorityLevelConfiguration"
    ),
    "API priority and fairness should support FlowSchema API operations [Conformance]",
    "API priority and fairness should support PriorityLevelConfiguration API operations [Conformance]",
    "AggregatedDiscovery should support aggregated discovery interface [Conformance]",
    "Discovery should locate the groupVersion and a resource within each APIGroup [Conformance]",
    "FieldValidation should detect unknown and duplicate fields of a typed object [Conformance]",
    "MutatingAdmissionPolicy [Privileged:ClusterAdmin] should mutate a Deployment [Conformance]",
    "OpenAPIV3 should round trip OpenAPI V3 for all built-in group versions",
    "ServerSideApply should give up ownership of a field if forced applied by a controller",
    "Servers with support for Table transformation should return pod details",
    "ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should validate against a Deployment [Conformance]",
    'client-go should negotiate watch and report errors with accept "application/vnd.kubernetes.protobuf"',
)
PASSES_WITHIN_S = 300.0
"""For a spec that has to pass; the slowest takes two minutes on a machine that is not busy."""
FAILS_WITHIN_S = 60.0
"""For one that waits in vain, mostly for what never runs."""
AT_ONCE = 4
WAITING_AT_ONCE = 16

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "endtoend"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "no kubelet"}]},
}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE: dict[str, Any] = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "endtoend"},
    "spec": {"holderIdentity": "endtoend", "leaseDurationSeconds": 40},
}
RENEW_S = 10.0


@pytest.fixture(scope="session")
def specs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of all specs."""
    try:
        program()
    except CannotBuild as error:
        missing_program(f"Kubernetes' end-to-end tests: {error}")
    return all_specs(tmp_path_factory.mktemp("specs"))


@pytest.fixture
def node(api: KubeApi) -> Iterator[None]:
    """A Node, which some specs look for. Nothing runs on it.

    Its Lease is renewed as a kubelet's is: a continued list expires only where something was written meanwhile.
    """
    api.made("/api/v1/nodes", NODE)
    api.made(LEASES, LEASE)
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(api, ended))
    renewing.start()
    yield
    ended.set()
    renewing.join()
    api.delete(f"{LEASES}/endtoend")
    api.delete("/api/v1/nodes/endtoend")


def _renew(api: KubeApi, ended: threading.Event) -> None:
    while not ended.wait(RENEW_S):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        api.patch(f"{LEASES}/endtoend", {"spec": {"renewTime": now}})


def test_listed_specs_exist(specs: list[str]) -> None:
    listed = [spec for each in LISTED for spec in each.specs]
    assert not set(listed) - set(specs)
    assert len(listed) == len(set(listed))


@pytest.mark.usefixtures("node")
def test_sample(api: KubeApi, specs: list[str], tmp_path: Path) -> None:
    assert set(SAMPLE) <= set(specs) - listed_for(LISTED, api.name).keys()
    outcomes = run_specs(SAMPLE, kubeconfig=api.kubeconfig, folder=tmp_path, limit_s=PASSES_WITHIN_S, at_once=AT_ONCE)
    assert not [str(outcome) for outcome in outcomes if not outcome.passed]


@pytest.mark.soak
@pytest.mark.usefixtures("node")
def test_all(api: KubeApi, specs: list[str], tmp_path: Path, print_figures: Callable[[str], None]) -> None:
    listed = listed_for(LISTED, api.name)
    due = [spec for spec in specs if spec not in listed]
    outcomes = run_specs(
        due, kubeconfig=api.kubeconfig, folder=tmp_path / "due", limit_s=PASSES_WITHIN_S, at_once=AT_ONCE
    )
    in_vain = run_specs(
        listed,
        kubeconfig=api.kubeconfig,
        folder=tmp_path / "listed",
        limit_s=FAILS_WITHIN_S,
        at_once=WAITING_AT_ONCE,
    )
    print_figures(_counted(api.name, outcomes, in_vain, listed))
    assert not [str(outcome) for outcome in outcomes if not outcome.passed]
    assert not [outcome.spec for outcome in in_vain if outcome.passed], "listed in endtoend.yaml, and passes"


def _counted(server: str, outcomes: list[Outcome], in_vain: list[Outcome], listed: dict[str, str]) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    reasons = Counter(listed[outcome.spec] for outcome in in_vain)
    lines = [f"{server}: {passed} of {len(outcomes)} specs pass, in {seconds:.0f} s; {len(in_vain)} are listed:"]
    return "\n".join([*lines, *(f"  {count:3} {reason}" for reason, count in reasons.most_common())])
