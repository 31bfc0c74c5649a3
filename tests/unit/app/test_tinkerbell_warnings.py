"""What is warned of when fields are applied that have no effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.compiled import plain_shape
from ironbell.apiserver.warnings import collecting
from ironbell.app.admission.warnings import warn_of_tinkerbell, warnings_of
from ironbell.app.run.webhooks import ineffective_review

REDFISH = "the redfish driver is used, on port 443 (providerOptions.redfish.port)"


def _bmc(**connection: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"connection": {"host": "h", "insecureTLS": True, **connection}}}


@pytest.mark.parametrize(
    ("connection", "fields"),
    [
        ({}, []),
        ({"port": 623}, []),
        ({"port": 443}, []),
        ({"port": 8443, "providerOptions": {"redfish": {"port": 8443}}}, []),
        ({"port": 8443}, ["spec.connection.port"]),
        ({"providerOptions": {"preferredOrder": ["gofish"]}}, []),
        (
            {"providerOptions": {"preferredOrder": ["ipmitool", "gofish"]}},
            ["spec.connection.providerOptions.preferredOrder"],
        ),
        (
            {"providerOptions": {"ipmitool": {"port": 623}, "intelAMT": {"hostScheme": "http"}}},
            ["spec.connection.providerOptions.ipmitool", "spec.connection.providerOptions.intelAMT"],
        ),
    ],
)
def test_drivers_and_ports_of_a_bmc(connection: dict[str, Any], fields: list[str]) -> None:
    assert warnings_of("bmc.tinkerbell.org", "machines", _bmc(**connection)) == [
        f"{field} has no effect: {REDFISH}." for field in fields
    ]


def _hardware(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"auto": {"enrollmentEnabled": True}}, "spec.auto.enrollmentEnabled"),
        ({"references": {"lvm": {"name": "x"}}}, "spec.references"),
        ({"interfaces": [{"isoboot": {"sourceISO": "http://x/y"}}]}, "spec.interfaces[0].isoboot"),
        ({"interfaces": [{}, {"netboot": {"rpi": {"serialNum": "1"}}}]}, "spec.interfaces[1].netboot.rpi"),
        ({"interfaces": [{"netboot": {"pxelinux": {"config": "x"}}}]}, "spec.interfaces[0].netboot.pxelinux"),
    ],
)
def test_fields_of_hardware(spec: dict[str, Any], field: str) -> None:
    (text,) = warnings_of("tinkerbell.org", "hardware", _hardware(**spec))
    assert text.startswith(f"{field} has no effect: ")
    assert asyncio.run(ineffective_review(HARDWARE)(_hardware(**spec))) == [text], "by the webhook as well"


def test_handlers_of_a_template_and_rules() -> None:
    text = "tasks:\n- actions:\n  - name: a\n    on-timeout: [x]\n    # on-failure: no\n    # {on-failure: [y]}\n"
    (found,) = warnings_of("tinkerbell.org", "templates", {"metadata": {"name": "x"}, "spec": {"data": text}})
    assert found.startswith("spec.data: on-timeout of an action has no effect: ")
    text = 'tasks:\n- actions:\n  - {name: a, on-failure: [x], "on-timeout": [y]}\n'
    flow = warnings_of("tinkerbell.org", "templates", {"metadata": {"name": "x"}, "spec": {"data": text}})
    assert [one.partition(" of an action")[0] for one in flow] == ["spec.data: on-failure", "spec.data: on-timeout"]
    (found,) = warnings_of("tinkerbell.org", "workflowrulesets", {"metadata": {"name": "x"}, "spec": {}})
    assert found == "this WorkflowRuleSet has no effect: it is stored, and nothing acts on it."


def test_what_is_common_is_not_warned_of() -> None:
    spec = {
        "auto": {"enrollmentEnabled": False},
        "interfaces": [{"netboot": {"allowPXE": True, "allowWorkflow": False}}],
    }
    assert warnings_of("tinkerbell.org", "hardware", _hardware(**spec)) == []
    assert warnings_of("tinkerbell.org", "hardware", _hardware(interfaces="no list")) == []


WITH_AUTO = _hardware(auto={"enrollmentEnabled": True})
INFO = ResourceInfo(
    HARDWARE.group,
    HARDWARE.version,
    HARDWARE.plural,
    HARDWARE.kind,
    namespaced=True,
    shape=plain_shape({"type": "object"}),
)


async def test_the_embedded_api_warns_when_the_spec_is_written_and_not_when_a_status_is() -> None:
    admission = Admission()
    warn_of_tinkerbell(admission)

    async def said(
        new: dict[str, Any] | None = WITH_AUTO, old: dict[str, Any] | None = None, subresource: str = ""
    ) -> list[str]:
        request = AdmissionRequest(
            Operation.UPDATE, INFO, "default", "x", ADMIN, new=new, old=old, subresource=subresource
        )
        with collecting() as found:
            await admission.review(request)
        return list(found)

    assert len(await said()) == 1
    assert await said(old=_hardware()) == await said()
    assert await said(old=WITH_AUTO) == []
    assert await said(subresource="status") == []
    assert await said(new=None) == []
