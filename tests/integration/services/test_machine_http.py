"""Boot and metadata over real HTTP: routes, Range, and that no machine sees another one's data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from aiohttp import ClientSession, web
from msgspec import structs

from ironbell.api.capt.names import ANNOTATION_PROVISIONED, LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip, Netboot
from ironbell.api.tinkerbell.metadata import HardwareMetadata, Instance
from ironbell.api.tinkerbell.workflow import (
    CurrentState,
    Workflow,
    WorkflowAction,
    WorkflowSpec,
    WorkflowStatus,
    WorkflowTask,
)
from ironbell.contract.servers.boot_progress import BootEvent, BootStage
from ironbell.contract.servers.boot_token import Identity, Mint, annotation, metadata_token, minted
from ironbell.contract.servers.claim import USER_DATA_OF, WITHDRAWN
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootSettings
from ironbell.provisioner.user_data import EARLY, FindWorkflow
from ironbell.services.boot.binaries import IpxeBinaries
from ironbell.services.boot.http import BootHttp
from ironbell.services.metadata.http import MetadataHttp
from ironbell.services.workflow.index import WorkflowTable

MAC = "52:54:00:aa:00:01"


def hardware(name: str, mac: str, address: str, *, allow: bool = True, user_data: str = "") -> Hardware:
    nic = Interface(dhcp=Dhcp(mac=mac, ip=Ip(address=address)), netboot=Netboot(allow_pxe=allow))
    return Hardware(
        metadata=ObjectMeta(name=name, namespace="site"), spec=HardwareSpec(interfaces=[nic], user_data=user_data)
    )


def nothing_installs(_namespace: str, _name: str) -> None:
    """There is no Workflow of this name."""


@asynccontextmanager
async def serving(
    directory: HardwareDirectory, folder: Path, events: list[BootEvent]
) -> AsyncIterator[tuple[ClientSession, str]]:
    settings = NetbootSettings(osie_url="http://{address}:7080/osie", grpc_authority="{address}:42113")
    boot = BootHttp(directory, lambda: settings, IpxeBinaries((folder,)), {"osie": folder}, observer=events.append)
    application = web.Application()
    application.add_routes([*boot.routes(), *MetadataHttp(directory, nothing_installs, events.append).routes()])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with ClientSession(f"http://127.0.0.1:{port}") as client:
            yield client, f"127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def test_script_is_found_by_mac_in_the_path_and_by_address(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    async with serving(directory, tmp_path, events) as (client, _):
        for path in (
            f"/ipxe/script/{MAC}/auto.ipxe",
            "/ipxe/script/52-54-00-AA-00-01/auto.ipxe",
            "/ipxe/script/auto.ipxe",
        ):
            async with client.get(path) as answer:
                assert answer.status == 200
                assert "kernel http://127.0.0.1:7080/osie/vmlinuz-x86_64" in await answer.text()
        async with client.get("/ipxe/script/52:54:00:00:00:99/auto.ipxe") as answer:
            assert answer.status == 404
            assert "52:54:00:00:00:99" in await answer.text()
        async with client.get(f"/ipxe/script/{MAC}/other.ipxe") as answer:
            assert answer.status == 404
    assert {event.stage for event in events} == {BootStage.SCRIPT}


async def test_machine_without_hardware_is_served_only_where_the_site_says_so(tmp_path: Path) -> None:
    settings = NetbootSettings(osie_url="http://{address}:7080/osie", grpc_authority="{address}:42113")
    for serve_unknown, status in ((True, 200), (False, 404)):
        boot = BootHttp(HardwareDirectory(), lambda: settings, IpxeBinaries(()), serve_unknown=serve_unknown)
        application = web.Application()
        application.add_routes(boot.routes())
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with (
            ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client,
            client.get(f"/ipxe/script/{MAC}/auto.ipxe") as answer,
        ):
            assert answer.status == status
            if serve_unknown:
                text = await answer.text()
                assert "worker_id=${mac} hw_addr=${mac}" in text
                assert "set arch ${buildarch}" in text
        await runner.cleanup()


async def test_machine_that_may_not_netboot_is_told_to_boot_its_disk(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1", allow=False))
    async with (
        serving(directory, tmp_path, events) as (client, _),
        client.get(f"/ipxe/script/{MAC}/auto.ipxe") as answer,
    ):
        assert answer.status == 200
        assert "sanboot" in await answer.text()
    assert [event.stage for event in events] == [BootStage.DISK]


async def test_two_hardware_with_one_address_are_not_served(tmp_path: Path) -> None:
    directory = HardwareDirectory()
    directory.upsert(hardware("one", MAC, "127.0.0.1", user_data="secret one"))
    directory.upsert(hardware("two", MAC, "127.0.0.1", user_data="secret two"))
    async with serving(directory, tmp_path, []) as (client, _):
        for path in (f"/ipxe/script/{MAC}/auto.ipxe", "/2009-04-04/user-data", "/nocloud/user-data", "/metadata"):
            async with client.get(path) as answer:
                assert answer.status == 409
                assert "secret" not in await answer.text()


async def test_metadata_is_only_for_its_own_address(tmp_path: Path) -> None:
    directory = HardwareDirectory()
    directory.upsert(hardware("one", MAC, "192.0.2.77", user_data="secret"))
    async with serving(directory, tmp_path, []) as (client, _):
        for path in ("/2009-04-04/user-data", "/2009-04-04/meta-data/hostname", "/nocloud/user-data", "/metadata"):
            for headers in ({}, {"X-Forwarded-For": "192.0.2.77"}):
                async with client.get(path, headers=headers) as answer:
                    assert answer.status == 404
                    assert "secret" not in await answer.text()
        async with client.get("/2009-04-04/") as answer:
            assert await answer.text() == "meta-data/\nuser-data"


async def test_requests_that_are_refused_are_one_line_each_minute(tmp_path: Path) -> None:
    directory = HardwareDirectory()
    for name in ("one", "two"):
        directory.upsert(hardware(name, MAC, "127.0.0.1"))
    with structlog.testing.capture_logs() as logged:
        async with serving(directory, tmp_path, []) as (client, _):
            for number in range(30):
                async with client.get(f"/ipxe/script/52:54:00:bb:00:{number:02x}/auto.ipxe") as answer:
                    assert answer.status == 404
                async with client.get("/nocloud/user-data") as answer:
                    assert answer.status == 409
    assert [line["event"] for line in logged] == ["machine not served", "metadata not served"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (f"/ipxe/binary/{MAC}/snp.efi", "snp.efi does not exist; served are undionly.kpxe, vmlinuz-x86_64"),
        ("/osie/vmlinuz-aarch64", "vmlinuz-aarch64 does not exist; served are undionly.kpxe, vmlinuz-x86_64"),
    ],
)
async def test_the_log_lists_what_is_served_when_a_name_is_not(tmp_path: Path, path: str, why: str) -> None:
    for name in ("undionly.kpxe", "vmlinuz-x86_64"):
        (tmp_path / name).write_bytes(b"MZ")
    with structlog.testing.capture_logs() as logged:
        async with serving(HardwareDirectory(), tmp_path, []) as (client, _):
            for _ in range(3):
                async with client.get(path) as answer:
                    assert answer.status == 404
    assert [(line["event"], line["path"], line["why"]) for line in logged] == [("boot file not served", path, why)]


async def test_any_number_in_a_path_of_metadata_is_a_key_or_404(tmp_path: Path) -> None:
    machine = hardware("m", MAC, "127.0.0.1")
    instance = HardwareMetadata(instance=Instance(ssh_keys=["ssh-ed25519 AAAA"]))
    machine = structs.replace(machine, spec=structs.replace(machine.spec, metadata=instance))
    directory = HardwareDirectory()
    directory.upsert(machine)
    async with serving(directory, tmp_path, []) as (client, _):
        for number, status in (("0", 200), ("1", 404), ("9" * 5000, 404), ("-1", 404), ("\u0660", 404)):
            async with client.get(f"/2009-04-04/meta-data/public-keys/{number}/openssh-key") as answer:
                assert answer.status == status, number


async def test_user_data_read_and_final_report_are_observed(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1", user_data="#cloud-config\n"))
    report = {"name": "modules-final", "event_type": "finish", "result": "SUCCESS", "description": "up"}
    async with serving(directory, tmp_path, events) as (client, _):
        async with client.get("/2009-04-04/user-data/") as answer:
            assert await answer.text() == "#cloud-config\n"
        async with client.post("/reports/cloud-init", json=report) as answer:
            assert answer.status == 200
        async with client.post("/reports/cloud-init", data=b"\xff\x00") as answer:
            assert answer.status == 400
        async with client.post("/reports/cloud-init", data=b"x" * 100_000) as answer:
            assert answer.status == 400
    assert [event.stage for event in events] == [BootStage.METADATA, BootStage.INSTALLED]


async def test_a_failure_is_observed_with_its_module_and_the_end_of_its_output_and_no_secrets(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    lines = [*map(str, range(50)), "kubeadm join --token abcdef.0123456789abcdef", "\x1b[31mrefused\x1b[0m", ""]
    output = "\n".join(lines)
    failure = {"event_type": "finish", "result": "FAIL", "description": "running config-scripts-user"}
    async with serving(directory, tmp_path, events) as (client, _):
        for name in ("modules-final/config-scripts-user", "modules-final"):
            async with client.post("/reports/cloud-init", json={"name": name, "output": output, **failure}) as answer:
                assert answer.status == 200
    assert [(event.stage, event.failed) for event in events] == [
        (BootStage.PROBLEM, "modules-final/config-scripts-user"),
        (BootStage.INSTALLED_WITH_ERRORS, "modules-final"),
    ]
    assert events[0].message == "cloud-init failed in modules-final/config-scripts-user: running config-scripts-user"
    assert events[0].output[-2:] == ("kubeadm join --token [redacted]", "refused")
    assert len(events[0].output) == 20


@pytest.mark.parametrize(
    ("stage", "fails"),
    [
        ("modules-config/config-locale", False),
        ("modules-config", False),
        ("init-local/search-ConfigDrive", False),
        ("init-network/config-write_files", True),
        ("modules-config/config-runcmd", True),
        ("init-network/consume-user-data", True),
        ("modules-final", True),
    ],
)
async def test_only_what_carries_out_bootstrap_data_fails_a_bootstrap(stage: str, fails: bool, tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    failure = {"name": stage, "event_type": "finish", "result": "FAIL", "description": "no locale-gen"}
    async with (
        serving(directory, tmp_path, events) as (client, _),
        client.post("/reports/cloud-init", json=failure) as answer,
    ):
        assert answer.status == 200
    assert [event.failed for event in events] == [stage if fails else ""]


async def test_artefacts_have_ranges_and_stay_in_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "osie"
    folder.mkdir()
    (folder / "vmlinuz-x86_64").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "secret").write_text("secret")
    (folder / "way-out").symlink_to(tmp_path / "secret")
    directory = HardwareDirectory()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    async with serving(directory, folder, []) as (client, authority):
        async with client.get("/osie/vmlinuz-x86_64", headers={"Range": "bytes=256-511"}) as answer:
            assert answer.status == 206
            assert await answer.read() == bytes(range(256))
        async with client.head("/osie/vmlinuz-x86_64") as answer:
            assert answer.headers["Content-Length"] == "25600"
        # aiohttp's client would take the dot out; apt does not
        reader, writer = await asyncio.open_connection(*authority.split(":"))
        writer.write(b"HEAD /osie/./vmlinuz-x86_64 HTTP/1.0\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()
        for path in ("/osie/way-out", "/osie/../secret", "/osie/%2e%2e/secret", "/osie/", "/osie/%00"):
            async with client.get(path) as answer:
                assert answer.status in {404, 400}, path
                assert "secret" not in (await answer.text()).replace("/secret", "")
    assert authority


async def test_ipxe_binary_by_upstreams_name_with_trace_suffix(tmp_path: Path) -> None:
    (tmp_path / "snponly.efi").write_bytes(b"MZ")
    suffix = f"-00-{'a' * 32}-{'b' * 16}-01"
    async with serving(HardwareDirectory(), tmp_path, []) as (client, _):
        for name in ("snp-x86_64.efi", f"snp-x86_64.efi{suffix}"):
            async with client.get(f"/ipxe/binary/{MAC}/{name}") as answer:
                assert await answer.read() == b"MZ"
        async with client.get("/ipxe/binary/undionly.kpxe") as answer:
            assert answer.status == 404


async def test_a_network_that_cannot_be_described_is_not_served_and_reported(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    nic = Interface(dhcp=Dhcp(mac=MAC, ip=Ip(address="127.0.0.1"), vlan_id="5000"))
    directory.upsert(Hardware(metadata=ObjectMeta(name="one"), spec=HardwareSpec(interfaces=[nic])))
    async with serving(directory, tmp_path, events) as (client, _), client.get("/nocloud/network-config") as answer:
        assert answer.status == 404
        assert 'vlan_id "5000" is not a number from 1 to 4094.' in await answer.text()
    (event,) = events
    assert event.stage is BootStage.PROBLEM
    assert 'vlan_id "5000"' in event.message


async def test_a_report_that_comes_in_pieces_is_whole(tmp_path: Path) -> None:
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    body = b'{"name": "modules-final", "event_type": "finish", "result": "SUCCESS", "description": "up"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 30):
            yield body[start : start + 30]
            await asyncio.sleep(0.02)  # so that they are not sent as one

    async with (
        serving(directory, tmp_path, events) as (client, _),
        client.post("/reports/cloud-init", data=pieces()) as answer,
    ):
        assert answer.status == 200
    assert [event.stage for event in events] == [BootStage.INSTALLED]


async def test_a_report_that_does_not_come_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbell.services.metadata.http.BODY_TIMEOUT_S", 0.05)
    directory, events = HardwareDirectory(), list[BootEvent]()
    directory.upsert(hardware("one", MAC, "127.0.0.1"))
    async with serving(directory, tmp_path, events) as (_, address):
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(b"POST /reports/cloud-init HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        async with asyncio.timeout(10):
            assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def metadata_of(
    one: Hardware, identity: Identity, find: FindWorkflow = nothing_installs, *, by_instance_id: bool = False
) -> AsyncIterator[ClientSession]:
    directory = HardwareDirectory()
    directory.upsert(one)
    application = web.Application()
    application.add_routes(MetadataHttp(directory, find, identity=identity, by_instance_id=by_instance_id).routes())
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            yield client
    finally:
        await runner.cleanup()


async def test_user_data_is_gone_once_it_was_withdrawn() -> None:
    one = hardware("one", MAC, "127.0.0.1")
    one.metadata.annotations[USER_DATA_OF] = WITHDRAWN
    async with (
        metadata_of(one, Identity.COMPAT) as client,
        client.get("/2009-04-04/user-data") as answer,
    ):
        assert answer.status == 404
        assert "withdrawn" in await answer.text()


async def test_user_data_that_is_there_is_served_whoever_wrote_it() -> None:
    """Such as upstream's controllers, which know nothing of a mark of ours that says that it was withdrawn."""
    one = hardware("one", MAC, "127.0.0.1", user_data="#cloud-config\n# of upstream")
    one.metadata.labels.update({LABEL_OWNER_NAME: "m", LABEL_OWNER_NAMESPACE: "site"})
    one.metadata.annotations[USER_DATA_OF] = WITHDRAWN
    async with metadata_of(one, Identity.COMPAT) as client:
        for path in ("/2009-04-04/user-data", "/nocloud/user-data"):
            async with client.get(path) as answer:
                assert (answer.status, await answer.text()) == (200, one.spec.user_data)


async def test_user_data_waits_until_the_machine_is_installed_for_its_owner() -> None:
    """What boots before that is another system, or half of one."""
    one = hardware("one", MAC, "127.0.0.1", user_data="#cloud-config")
    one.metadata.labels.update(dict(zip((LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE), ("m", "site"), strict=True)))
    one.metadata.annotations[USER_DATA_OF] = "site/m 7"
    table = WorkflowTable()
    async with metadata_of(one, Identity.COMPAT, table.get) as client:

        async def asked(path: str) -> tuple[int, str]:
            async with client.get(path) as answer:
                return answer.status, await answer.text()

        for state, current, status in (
            (None, "", 503),
            ("", "", 503),
            ("PENDING", "", 503),
            ("RUNNING", "a", 503),
            ("FAILED", "b", 503),
            ("RUNNING", "b", 200),
            ("POST", "b", 200),
            ("SUCCESS", "b", 200),
        ):
            if state is not None:
                table.upsert(workflow(state, current))
            for path in ("/2009-04-04/user-data", "/nocloud/user-data"):
                assert (state, current, (await asked(path))[0]) == (state, current, status)
            assert (await asked("/2009-04-04/meta-data/hostname"))[0] == 200
            assert (await asked("/nocloud/meta-data"))[0] == 200
        table.upsert(workflow("RUNNING", "a"))
        code, why = await asked("/2009-04-04/user-data")
        assert (code, why) == (503, "the machine is not installed: workflow m is RUNNING\n")
        for annotation_of, value in ((EARLY, "true"), (ANNOTATION_PROVISIONED, "true"), (USER_DATA_OF, None)):
            before = dict(one.metadata.annotations)
            one.metadata.annotations.pop(annotation_of, None)
            one.metadata.annotations.update({} if value is None else {annotation_of: value})
            assert (annotation_of, (await asked("/2009-04-04/user-data"))[0]) == (annotation_of, 200)
            one.metadata.annotations.clear()
            one.metadata.annotations.update(before)


async def test_metadata_by_instance_id_is_for_machines_behind_nat_where_the_site_allows_it() -> None:
    instance = HardwareMetadata(instance=Instance(id=MAC, hostname="node-1"))
    plain = hardware("one", MAC, "192.0.2.77", user_data="#cloud-config")
    one = structs.replace(plain, spec=structs.replace(plain.spec, metadata=instance))
    base = f"/tootles/instanceID/{MAC}/2009-04-04"

    async def asked(client: ClientSession, path: str) -> tuple[int, str]:
        async with client.get(path) as answer:
            return answer.status, await answer.text()

    async with metadata_of(one, Identity.COMPAT, by_instance_id=True) as client:
        assert await asked(client, f"{base}/meta-data/hostname") == (200, "node-1")
        assert await asked(client, f"{base}/user-data") == (200, "#cloud-config")
        assert (await asked(client, f"{base}/"))[1] == "meta-data/\nuser-data"
        assert (await asked(client, "/tootles/instanceID/other/2009-04-04/user-data"))[0] == 404
        assert (await asked(client, "/2009-04-04/user-data"))[0] == 404, "by address as ever"
    async with metadata_of(one, Identity.COMPAT) as client:
        status, text = await asked(client, f"{base}/user-data")
        assert (status, "--metadata-by-instance-id" in text) == (404, True)
    async with metadata_of(one, Identity.STRICT, by_instance_id=True) as client:
        status, text = await asked(client, f"{base}/user-data")
        assert (status, "#cloud-config" in text) == (404, False)


def workflow(state: str, current: str) -> Workflow:
    """Of two actions."""
    actions = [WorkflowAction(id=one, name=one) for one in "ab"]
    status = WorkflowStatus(
        state=state,
        current_state=CurrentState(action_id=current) if current else None,
        tasks=[WorkflowTask(name="t", id="t", actions=actions)],
    )
    return Workflow(
        metadata=ObjectMeta(name="m", namespace="site"), spec=WorkflowSpec(hardware_ref="one"), status=status
    )


async def test_with_strict_identity_every_path_but_the_storage_layout_needs_the_token() -> None:
    one = hardware("one", MAC, "127.0.0.1", user_data="#cloud-config")
    token = "ab" * 32
    one.metadata.annotations.update(annotation(minted(Mint("wf"), token, now="2026-11-22T12:00:00Z")))
    good = f"/t/{metadata_token(token)}"
    paths = ("/2009-04-04/user-data", "/2009-04-04/meta-data/hostname", "/nocloud/user-data", "/nocloud/meta-data")
    async with metadata_of(one, Identity.STRICT) as client:
        for path in paths:
            for base, status in (("", 404), ("/t/wrong", 404), (f"/t/{token}", 404), (good, 200)):
                async with client.get(base + path) as answer:
                    assert (base, answer.status) == (base, status)
        for base, status in (("", 404), ("/t/wrong", 404), (good, 200)):
            said = {"name": "modules-final", "event_type": "finish", "result": "SUCCESS", "description": "up"}
            async with client.post(f"{base}/reports/cloud-init", json=said) as answer:
                assert answer.status == status
        async with client.get("/metadata") as answer:
            assert answer.status == 200
    async with metadata_of(one, Identity.COMPAT) as client:
        for base, status in (("", 200), ("/t/wrong", 404), (good, 200)):
            async with client.get(f"{base}/2009-04-04/user-data") as answer:
                assert answer.status == status
