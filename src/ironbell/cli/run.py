"""`ironbell run`: components against any Kubernetes API."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from ironbell.app.systems import SYSTEMS
from ironbell.base.ports import GRPC_PORT, HTTP_PORT, TFTP_PORT, UPSTREAM_METADATA_PORT
from ironbell.cli.options import api_options, named_folder
from ironbell.cli.session import SECONDS
from ironbell.contract.system import Option, Settings


def _list_components() -> str:
    from ironbell.app.components import COMPONENTS, GROUPS

    lines = []
    for component in COMPONENTS:
        older = f" (also: {', '.join(component.aliases)})" if component.aliases else ""
        lines.append(f"  {component.name:<16}{component.summary}{older}")
    for group, role in GROUPS.items():
        lines.append(f"  {group:<16}All of: {', '.join(c.name for c in COMPONENTS if c.role is role)}.")
    return "\n".join(lines)


_ARGUMENTS = "ironbell.run.arguments"
_TYPES: Mapping[str, Any] = {
    "text": click.STRING,
    "seconds": SECONDS,
    "count": click.IntRange(min=0),
    "file": click.Path(path_type=Path, dir_okay=False),
}
"""Types of the options of systems."""


class _Listing(click.Command):
    """Shows the components in its help, and remembers what it was told: a part of it may run in another process."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Components"):
            formatter.write(_list_components() + "\n")


def _system_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all systems, in their order."""
    for system in reversed(SYSTEMS):
        for option in reversed(system.options):
            command = click.option(option.flag, option.name, **_details(option))(command)
    return command


def _details(option: Option) -> dict[str, Any]:
    details: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if option.multiple:
        return {**details, "multiple": True}
    details |= {"type": _TYPES[option.type], "default": option.default, "show_default": option.show_default}
    return {**details, "envvar": option.environment} if option.environment else details


@click.command(cls=_Listing)
@click.argument("components", nargs=-1, required=True, metavar="COMPONENT...")
@api_options
@click.option("--namespace", "-n", default="", help="Look at this namespace only.  [default: all]")
@click.option(
    "--health-address",
    default="",
    help="Serve /healthz, /readyz and /metrics here, as ADDRESS:PORT; where several processes are run, the workflow "
    "service has the port after that of the boot services, and controllers have the one after that.",
)
@click.option("--grace", "grace_s", type=SECONDS, default="20s", show_default=True, help="Time to end in.")
@click.option("--workers", multiple=True, metavar="[CONTROLLER=]N", help="Reconciles at a time.")
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Let one replica work.")
@click.option(
    "--lease-namespace", default="", help="Namespace of the Leases.  [default: the pod's, else ironbell-system]"
)
@click.option(
    "--lease-duration", type=SECONDS, default="15s", show_default=True, help="After it a dead leader is replaced."
)
@click.option("--renew-deadline", type=SECONDS, default="10s", show_default=True, help="After it a leader gives up.")
@click.option("--retry-period", type=SECONDS, default="2s", show_default=True, help="Time between tries.")
@click.option("--webhook-address", default="", help="tink-controller, cluster-api: answer webhooks here.")
@click.option("--webhook-host", "webhook_hosts", multiple=True, help="Name by which the API server calls them.")
@_system_options
@click.option(
    "--identity",
    type=click.Choice(["own", "strict", "compat"]),
    default="own",
    show_default=True,
    help="Servers and capt, the same for all of them: own, machines are known by the token of their boot for our "
    "Templates and those annotated so, others by address; strict, all by token; compat, all by agent id, as upstream. "
    "capt beside an upstream Tinkerbell needs compat.",
)
@click.option(
    "--trusted-proxies",
    multiple=True,
    metavar="CIDR",
    help="Servers: address or network of proxies before us: over HTTP the machine's address is in X-Forwarded-For, "
    "over gRPC it is not compared.",
)
@click.option("--data-dir", default="/var/lib/ironbell", show_default=True, help="Servers: folder for logs and copies.")
@click.option("--interface", default="", help="Servers: serve this network interface only.  [default: all]")
@click.option("--advertise", default="", help="Servers: our address for machines.")
@click.option(
    "--dhcp",
    type=click.Choice(["reservation", "proxy", "auto-proxy", "off"]),
    default="reservation",
    show_default=True,
    help="Servers: who gives addresses.",
)
@click.option("--force", is_flag=True, help="Servers: give addresses even where another DHCP server answers.")
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    default=HTTP_PORT,
    show_default=True,
    help="Servers: scripts, artefacts, metadata.",
)
@click.option(
    "--metadata-port",
    type=click.IntRange(0, 65535),
    default=0,
    help=f"Servers: a second port for metadata, such as {UPSTREAM_METADATA_PORT} for templates of older "
    "Tinkerbell; 0: none.",
)
@click.option(
    "--metadata-by-instance-id",
    is_flag=True,
    help="Servers: serve metadata also to whoever knows an instance id, below /tootles/instanceID/ID.",
)
@click.option("--tftp-port", type=click.IntRange(0, 65535), default=TFTP_PORT, show_default=True, help="Servers: TFTP.")
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    default=GRPC_PORT,
    show_default=True,
    help="Servers: the workflow service.",
)
@click.option("--grpc-authority", default="", help="Servers: HOST:PORT of the workflow service, where it is elsewhere.")
@click.option("--osie-dir", default="", help="Servers: folder of the in-memory OS.")
@click.option("--osie-url", default="", help="Servers: where machines fetch the in-memory OS instead of from us.")
@click.option("--ipxe-dir", default="", help="Servers: folder of own iPXE binaries.")
@click.option("--node-images", default="", help="Servers: folder of images of nodes, served as /images/.")
@click.option("--artefacts", multiple=True, metavar="NAME=FOLDER", help="Servers: serve a folder as /NAME/.")
@click.option("--console", "consoles", multiple=True, help="Servers: console of the in-memory OS.")
@click.option("--kernel-argument", "kernel_arguments", multiple=True, help="Servers: argument of the in-memory OS.")
@click.option("--syslog-host", default="", help="Servers: where the in-memory OS sends its log.")
@click.option("--user", default="", help="Servers: account to become.  [default: ironbell if it exists, else 60770]")
@click.option("--only-controllers", is_flag=True, hidden=True)
@click.pass_context
def run(ctx: click.Context, /, components: tuple[str, ...], **given: Any) -> None:
    """Run components against any Kubernetes API: this pod's, or a kubeconfig's.

    Controllers elect a leader per component; servers toward machines run on every replica. The workflow service
    (tink-server) beside boot services (smee, tootles), as in `wire`, is a process of its own, and so are controllers
    beside servers; each is started again if it dies. SIGTERM lets work in progress finish and hands the leases over; a
    second one ends the process at once.
    """
    from ironbell.app.processes.logs import configure_logging
    from ironbell.app.run.parts import find_connection

    options, is_part = _options(components, given), given["only_controllers"]
    connection = find_connection(options.kubeconfig, options.context)
    servers = () if is_part else _servers(components)
    if servers:
        _become_servers(servers, given, _other_arguments(ctx, given) if options.components else ())
    from ironbell.app.processes.child import report
    from ironbell.app.processes.privileges import drop_privileges, named_account
    from ironbell.app.run.components import run_components

    configure_logging(process="-".join(component.name for component in options.components))
    if is_part:
        drop_privileges(named_account(given["user"]))
    failed = (lambda why: report("failed", message=why)) if is_part else (lambda _why: None)
    sys.exit(run_components(options, connection, failed))


def _servers(words: tuple[str, ...]) -> tuple[str, ...]:
    from ironbell.app.components import Role, components_named

    return tuple(component.name for component in components_named(words) if component.role is Role.SERVER)


def _become_servers(servers: tuple[str, ...], given: dict[str, Any], controllers: tuple[str, ...]) -> NoReturn:
    """Go on as what serves machines, or as what supervises that."""
    from ironbell.app.run.servers_config import ServersConfig
    from ironbell.app.run.split import after, become_servers, become_supervisor, split

    published = dict(named_folder(text) for text in given["artefacts"])
    if given["osie_dir"]:
        published["osie"] = given["osie_dir"]
    kubeconfig: Path | None = given["kubeconfig"]
    config = ServersConfig(
        name="-".join(servers),
        wire=_wire(servers, given),
        kubeconfig=str(kubeconfig.absolute()) if kubeconfig is not None else "",
        context=given["context"],
        health_address=given["health_address"],
        grace_s=given["grace_s"],
        published=published,
        ipxe_dir=given["ipxe_dir"],
        node_images=given["node_images"],
        is_supervised=bool(controllers),
    )
    parts = split(config)
    if len(parts) == 1 and not controllers:
        become_servers(parts[0])
    if controllers:
        controllers = (*controllers, "--health-address", after(given["health_address"], len(parts)))
    become_supervisor(parts, controllers=controllers, grace_s=given["grace_s"])


def _other_arguments(context: click.Context, given: dict[str, Any]) -> tuple[str, ...]:
    """Arguments of `ironbell` for a process with the controllers alone; what is given last counts."""
    reach = [("--kubeconfig", str(given["kubeconfig"] or "")), ("--context", given["context"])]
    more = [word for option, value in reach if value for word in (option, value)]
    return ("run", *context.meta[_ARGUMENTS], *more, "--only-controllers")


def _options(words: tuple[str, ...], given: dict[str, Any]) -> Any:
    from ironbell.app.components import Role, components_named
    from ironbell.app.processes.health import read_address
    from ironbell.app.run.controllers import controller_names
    from ironbell.app.run.options import ElectionOptions, RunOptions, read_workers

    components = tuple(one for one in components_named(words) if one.role is Role.CONTROLLERS)
    if given["health_address"]:
        read_address(given["health_address"])
    if given["webhook_address"]:
        read_address(given["webhook_address"])
    election = ElectionOptions(
        given["leader_elect"],
        given["lease_namespace"],
        given["lease_duration"],
        given["renew_deadline"],
        given["retry_period"],
    )
    kubeconfig: Path | None = given["kubeconfig"]
    return RunOptions(
        components,
        kubeconfig=kubeconfig,
        context=given["context"],
        namespace=given["namespace"],
        election=election.checked(),
        workers=read_workers(given["workers"], controller_names()),
        health_address=given["health_address"],
        grace_s=given["grace_s"],
        webhook_address=given["webhook_address"],
        webhook_hosts=given["webhook_hosts"],
        is_supervised=given["only_controllers"],
        settings=_read_settings(given),
    )


def _read_settings(given: dict[str, Any]) -> Settings:
    readers = [system.read_settings.load() for system in SYSTEMS if system.read_settings is not None]
    return Settings(tuple(value for read in readers for value in read(given)))


def _wire(servers: tuple[str, ...], given: dict[str, Any]) -> Any:
    from ironbell.app.site.options import artefact_name
    from ironbell.app.wire.config import WireConfig
    from ironbell.contract.servers.boot_token import Identity
    from ironbell.contract.servers.netboot import CONSOLES
    from ironbell.contract.servers.node_images import FOLDER

    names = tuple(artefact_name(named_folder(text)[0]) for text in given["artefacts"])
    if given["node_images"]:
        if FOLDER in names:
            raise click.BadParameter(f"the name {FOLDER!r} is taken by --node-images", param_hint="--artefacts")
        names = (*names, FOLDER)
    return WireConfig(
        folder=str(Path(given["data_dir"]).absolute()),
        serves=servers,
        namespace=given["namespace"],
        interface=given["interface"],
        advertise=given["advertise"],
        dhcp_mode=given["dhcp"],
        force=given["force"],
        http_port=given["http_port"],
        metadata_port=given["metadata_port"],
        metadata_by_instance_id=given["metadata_by_instance_id"],
        tftp_port=given["tftp_port"],
        grpc_port=given["grpc_port"],
        grpc_authority=given["grpc_authority"],
        artefacts=("osie", *names) if given["osie_dir"] else names,
        osie_url=given["osie_url"],
        consoles=given["consoles"] or CONSOLES,
        extra_kernel_arguments=given["kernel_arguments"],
        syslog_host=given["syslog_host"],
        identity=Identity(given["identity"]),
        trusted_proxies=_proxies(given["trusted_proxies"]),
        user=given["user"],
    )


def _proxies(texts: tuple[str, ...]) -> tuple[str, ...]:
    from ironbell.contract.servers.identity import networks

    try:
        networks(texts)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}; give an address or a network such as 10.0.0.0/8", param_hint="--trusted-proxies"
        ) from error
    return texts
