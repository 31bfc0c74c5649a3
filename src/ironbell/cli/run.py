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

    width = 2 + max(len(name) for name in (*(component.name for component in COMPONENTS), *GROUPS))
    lines = []
    for component in COMPONENTS:
        older = f" (also: {', '.join(component.aliases)})" if component.aliases else ""
        lines.append(f"  {component.name:<{width}}{component.summary}{older}")
    for group, role in GROUPS.items():
        lines.append(f"  {group:<{width}}All of: {', '.join(c.name for c in COMPONENTS if c.role is role)}.")
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
    """Shows the components in its help, and keeps its arguments: another process may run some of the components."""

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
@click.option("--namespace", "-n", default="", help="Watch only this namespace.  [default: all]")
@click.option(
    "--health-address",
    default="",
    help="Serve /healthz, /readyz and /metrics at ADDRESS:PORT; with several processes, the workflow service has the "
    "next port after the boot services, and the controllers have the one after that.",
)
@click.option("--grace", "grace_s", type=SECONDS, default="20s", show_default=True, help="Time limit of the shutdown.")
@click.option("--workers", multiple=True, metavar="[CONTROLLER=]N", help="Number of concurrent reconciles.")
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Let only one replica work.")
@click.option(
    "--lease-namespace", default="", help="Namespace of the Leases.  [default: the pod's, else ironbell-system]"
)
@click.option(
    "--lease-duration",
    type=SECONDS,
    default="15s",
    show_default=True,
    help="Time after which a dead leader is replaced.",
)
@click.option(
    "--renew-deadline", type=SECONDS, default="10s", show_default=True, help="Time after which a leader gives up."
)
@click.option("--retry-period", type=SECONDS, default="2s", show_default=True, help="Time between attempts.")
@click.option("--webhook-address", default="", help="tink-controller, cluster-api: address of the webhooks.")
@click.option("--webhook-host", "webhook_hosts", multiple=True, help="Name by which the API server calls the webhooks.")
@_system_options
@click.option(
    "--identity",
    type=click.Choice(["own", "strict", "compat"]),
    default="own",
    show_default=True,
    help="Servers and capt; use the same value for all of them. own: machines are identified by the token of their "
    "boot for our Templates and those annotated so, others by address; strict: all by token; compat: all by agent id, "
    "as upstream. capt beside an upstream Tinkerbell needs compat.",
)
@click.option(
    "--trusted-proxies",
    multiple=True,
    metavar="CIDR",
    help="Servers: address or network of trusted proxies: over HTTP the machine's address is in X-Forwarded-For, over "
    "gRPC it is not compared.",
)
@click.option("--data-dir", default="/var/lib/ironbell", show_default=True, help="Servers: folder for logs and copies.")
@click.option("--interface", default="", help="Servers: serve only this network interface.  [default: all]")
@click.option("--advertise", default="", help="Servers: address of this host for machines.")
@click.option(
    "--dhcp",
    type=click.Choice(["reservation", "proxy", "auto-proxy", "off"]),
    default="reservation",
    show_default=True,
    help="Servers: how machines get their addresses.",
)
@click.option("--force", is_flag=True, help="Servers: assign addresses even if another DHCP server answers.")
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    default=HTTP_PORT,
    show_default=True,
    help="Servers: port for scripts, artefacts and metadata.",
)
@click.option(
    "--metadata-port",
    type=click.IntRange(0, 65535),
    default=0,
    help=f"Servers: additional port for metadata, such as {UPSTREAM_METADATA_PORT} for templates of older "
    "Tinkerbell; 0: none.",
)
@click.option(
    "--metadata-by-instance-id",
    is_flag=True,
    help="Servers: also serve metadata to clients that know an instance id, below /tootles/instanceID/ID.",
)
@click.option(
    "--tftp-port",
    type=click.IntRange(0, 65535),
    default=TFTP_PORT,
    show_default=True,
    help="Servers: port for TFTP.",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    default=GRPC_PORT,
    show_default=True,
    help="Servers: port of the workflow service.",
)
@click.option(
    "--grpc-authority", default="", help="Servers: HOST:PORT of the workflow service, if it runs on another host."
)
@click.option("--osie-dir", default="", help="Servers: folder of the in-memory OS.")
@click.option("--osie-url", default="", help="Servers: URL of the in-memory OS, instead of this host.")
@click.option("--ipxe-dir", default="", help="Servers: folder of custom iPXE binaries.")
@click.option("--node-images", default="", help="Servers: folder of node images, served as /images/.")
@click.option("--artefacts", multiple=True, metavar="NAME=FOLDER", help="Servers: serve a folder as /NAME/.")
@click.option("--console", "consoles", multiple=True, help="Servers: console of the in-memory OS.")
@click.option("--kernel-argument", "kernel_arguments", multiple=True, help="Servers: argument of the in-memory OS.")
@click.option("--syslog-host", default="", help="Servers: host to which the in-memory OS sends its log.")
@click.option("--user", default="", help="Servers: account to run as.  [default: ironbell if it exists, else 60770]")
@click.option("--only-controllers", is_flag=True, hidden=True)
@click.pass_context
def run(ctx: click.Context, /, components: tuple[str, ...], **given: Any) -> None:
    """Run components against any Kubernetes API: this pod's, or that of a kubeconfig.

    Controllers elect a leader per component; servers for machines run on every replica. The workflow service
    (tink-server) beside boot services (smee, tootles), as in `wire`, runs in a separate process, and so do controllers
    beside servers; each is started again if it dies. SIGTERM lets work in progress finish and releases the leases; a
    second one ends the process immediately.
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
    failed = (lambda reason: report("failed", message=reason)) if is_part else (lambda _reason: None)
    sys.exit(run_components(options, connection, failed))


def _servers(words: tuple[str, ...]) -> tuple[str, ...]:
    from ironbell.app.components import Role, components_named

    return tuple(component.name for component in components_named(words) if component.role is Role.SERVER)


def _become_servers(servers: tuple[str, ...], given: dict[str, Any], controllers: tuple[str, ...]) -> NoReturn:
    """Continue as the process that serves machines, or that supervises such processes."""
    from ironbell.app.run.split import after, become_servers, become_supervisor, split
    from ironbell.app.wire.config import ServersConfig

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
    """Arguments of `ironbell` for a process with only the controllers; the last value of an option takes precedence."""
    reach = [("--kubeconfig", str(given["kubeconfig"] or "")), ("--context", given["context"])]
    more = [word for option, value in reach if value for word in (option, value)]
    return ("run", *context.meta[_ARGUMENTS], *more, "--only-controllers")


def _options(words: tuple[str, ...], given: dict[str, Any]) -> Any:
    from ironbell.app.components import Role, components_named
    from ironbell.app.processes.health import read_address
    from ironbell.app.run.controllers import controller_names
    from ironbell.app.run.options import ElectionOptions, RunOptions, read_workers

    components = tuple(component for component in components_named(words) if component.role is Role.CONTROLLERS)
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
            raise click.BadParameter(f"the name {FOLDER!r} belongs to --node-images", param_hint="--artefacts")
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
            f"{error}; use an address or a network such as 10.0.0.0/8", param_hint="--trusted-proxies"
        ) from error
    return texts
