"""Options of `ironbell up`, from the command line and from a file, and how they are combined."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import GRPC_PORT, HTTP_PORT, TFTP_PORT
from ironbell.base.textfile import TextFileError, read_text_file
from ironbell.codec import goyaml
from ironbell.codec.durations import SECOND, DurationError, parse_duration
from ironbell.contract.servers import node_images
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.identity import networks
from ironbell.contract.servers.racks import INSTALLS_PER_RACK

# options that may be given several times have a singular name on the command line
_FILE_NAMES = {"console": "consoles", "kernel-argument": "kernel-arguments"}
_PATHS = (
    "data_dir",
    "encryption_key_file",
    "lab",
    "osie_dir",
    "ipxe_dir",
    "node_images",
    "token_auth_file",
    "audit_log",
    "simulate_faults",
)
_WORD = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]*")
MOST_SIMULATED = 10_000
SIMULATE_SPEEDS = ("instant", "real")
SHORTEST_HISTORY_S = 60
"""Shortest history: clients that reconnect immediately still find the changes that they missed."""
DHCP_MODES = ("reservation", "proxy", "auto-proxy", "off")


class OptionsError(IronbellError):
    """An option or a line of the configuration file is wrong."""

    reason = "InvalidOptions"
    retry = Retry.NEVER


class UpOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """All options; in a configuration file they have the names of the command line without the leading dashes."""

    data_dir: str
    encryption_key_file: str = ""
    api_address: str = "127.0.0.1"
    api_port: int = 0
    token_auth_file: str = ""
    audit_log: str = ""
    history: str = "1h"
    """Time for which changes are kept, as a Go duration."""
    lab: str = ""
    simulate: bool | int = False
    """Whether to simulate; a number also simulates that many servers."""
    simulate_speed: str = "instant"
    simulate_faults: str = ""
    simulate_for: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    interface: str = ""
    advertise: str = ""
    metadata_url: str = ""
    installs_per_rack: int = INSTALLS_PER_RACK
    identity: Identity = Identity.OWN
    trusted_proxies: tuple[str, ...] = ()
    dhcp: str = "reservation"
    force: bool = False
    http_port: int = HTTP_PORT
    metadata_port: int = 0
    metadata_by_instance_id: bool = False
    tftp_port: int = TFTP_PORT
    grpc_port: int = GRPC_PORT
    workflow_http_port: int | None = None
    """None selects the port after `grpc_port`."""
    osie_dir: str = ""
    osie_url: str = ""
    ipxe_dir: str = ""
    node_images: str = ""
    """Folder of node images, for machines whose manifests name no other."""
    artefacts: dict[str, str] = {}
    consoles: tuple[str, ...] = ()
    kernel_arguments: tuple[str, ...] = ()
    syslog_host: str = ""
    user: str = ""
    log: bool = False
    """Whether a terminal shows the log instead of the screen."""

    @property
    def folder(self) -> Path:
        return Path(self.data_dir)

    @property
    def history_seconds(self) -> float:
        """Time for which changes are kept, in seconds."""
        return parse_duration(self.history) / SECOND

    @property
    def simulated_servers(self) -> int:
        """Number of simulated servers; Cluster API's test provider runs with 0 as well."""
        return 0 if isinstance(self.simulate, bool) else self.simulate

    @property
    def serves_machines(self) -> bool:
        """Return whether the servers for machines run."""
        return self.needs_root or bool(self.simulated_servers)

    @property
    def needs_root(self) -> bool:
        """Return whether firmware is served: DHCP and TFTP have privileged ports."""
        return bool(self.lab or self.interface)


def read_options(file: Path | None, given: Mapping[str, Any]) -> UpOptions:
    """Combine the file's values with those of the command line, which take precedence (None: unset).

    Raises:
        OptionsError: the file cannot be read, or an option has a wrong name, type or value.
    """
    values = _file_values(file) if file is not None else {}
    values = {_FILE_NAMES.get(str(name), name): value for name, value in values.items()}
    values |= {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    if values.get("dhcp") is False:  # YAML reads an unquoted `off` as a boolean
        values["dhcp"] = "off"
    if not values.get("data-dir"):
        raise OptionsError("data-dir is missing: set --data-dir DIR, the folder for all data")
    try:
        options = msgspec.convert(values, UpOptions)
    except msgspec.ValidationError as error:
        raise OptionsError(f"{file or 'options'}: {error}") from error
    return _at_home(_checked(options))


def _file_values(file: Path) -> dict[str, Any]:
    """The options of a configuration file.

    Raises:
        OptionsError: the file cannot be read, is not a mapping in YAML, or has an unknown option.
    """
    try:
        loaded = goyaml.load(read_text_file(file, purpose="a configuration"))
    except TextFileError as error:
        raise OptionsError(f"--config: {error}") from error
    except IronbellError as error:
        raise OptionsError(f"--config: {file}: {error}") from error
    if not isinstance(loaded, dict):
        raise OptionsError(f"--config: {file} is not a mapping of option names to values")
    known = {*UpOptions.__struct_encode_fields__, *_FILE_NAMES}
    for name in loaded:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            remedy = f'Did you mean "{near[0]}"?' if near else "`ironbell up --help` shows all options."
            raise OptionsError(f'--config: {file}: "{name}" is not an option. {remedy}')
    return loaded


def _at_home(options: UpOptions) -> UpOptions:
    """Replace `~` by the home folder: shells leave it unchanged in `--option=~/x`, and in a file no shell reads it."""
    paths = {name: _expanded(getattr(options, name)) for name in _PATHS}
    artefacts = {name: _expanded(folder) for name, folder in options.artefacts.items()}
    simulate_for = tuple(_expanded(path) for path in options.simulate_for)
    return msgspec.structs.replace(options, **paths, artefacts=artefacts, simulate_for=simulate_for)


def _checked(options: UpOptions) -> UpOptions:
    if options.dhcp not in DHCP_MODES:
        raise OptionsError(f"dhcp {options.dhcp!r} is unknown; use one of {', '.join(DHCP_MODES)}")
    if options.lab and options.interface:
        raise OptionsError("lab and interface exclude each other: the lab has a network of its own")
    if options.simulate_for and not options.simulate:
        raise OptionsError("simulate-for has no effect without simulate")
    _check_simulated(options)
    _check_history(options)
    for name in options.artefacts:
        artefact_name(name)
        if options.node_images and name == node_images.FOLDER:
            raise OptionsError(f"artefacts: the name {name!r} belongs to --node-images; choose another")
    if options.node_images and not options.serves_machines:
        raise OptionsError("node-images has no effect here: servers are served with --interface, --lab or --simulate N")
    if options.without:
        options = msgspec.structs.replace(options, without=_left_out(options.without))
    if options.advertise and not _is_ipv4(options.advertise):
        raise OptionsError(f"advertise: {options.advertise!r} is not an IPv4 address")
    try:
        networks(options.trusted_proxies)
    except ValueError as error:
        raise OptionsError(f"trusted-proxies: {error}; use addresses or networks such as 10.0.0.0/8") from error
    for name in ("api_port", "http_port", "metadata_port", "tftp_port", "grpc_port"):
        if not 0 <= getattr(options, name) <= 65535:
            raise OptionsError(f"{name.replace('_', '-')} must be between 0 and 65535")
    if not 0 <= (options.workflow_http_port or 0) <= 65535:
        raise OptionsError("workflow-http-port must be between 0 and 65535")
    return options


def _check_simulated(options: UpOptions) -> None:
    servers = options.simulated_servers
    if not isinstance(options.simulate, bool) and not 1 <= servers <= MOST_SIMULATED:
        raise OptionsError(f"simulate must be between 1 and {MOST_SIMULATED} servers, or nothing for no servers")
    if servers and options.needs_root:
        other = "lab" if options.lab else "interface"
        raise OptionsError(f"simulate with servers and {other} exclude each other: simulated ones are on the loopback")
    if options.simulate_speed not in SIMULATE_SPEEDS:
        known = ", ".join(SIMULATE_SPEEDS)
        raise OptionsError(f"simulate-speed {options.simulate_speed!r} is unknown; use one of {known}")
    if options.simulate_faults and not servers:
        raise OptionsError("simulate-faults has no effect without servers: set simulate to their number")


def _check_history(options: UpOptions) -> None:
    try:
        seconds = options.history_seconds
    except DurationError as error:
        raise OptionsError(f"history: {options.history!r} is not a duration; write it as 1h or 30m") from error
    if seconds < SHORTEST_HISTORY_S:
        raise OptionsError(f"history: {options.history!r} is too short; keep at least {SHORTEST_HISTORY_S} s")


def _left_out(words: Sequence[str]) -> tuple[str, ...]:
    """The canonical names of the components."""
    # this imports the controllers and their permissions: too much for users who leave nothing out
    from ironbell.app.components import Role, UnknownComponentError, components_named

    try:
        components = components_named(words)
    except UnknownComponentError as error:
        raise OptionsError(f"without: {error}") from error
    for component in components:
        if component.role is not Role.CONTROLLERS:
            raise OptionsError(
                f"without: {component.name} has no controllers; servers for machines run with interface or lab only"
            )
    return tuple(component.name for component in components)


def artefact_name(name: str) -> str:
    """Return the name if it is valid.

    Raises:
        OptionsError: it cannot be a URL folder.
    """
    if not _WORD.fullmatch(name):
        raise OptionsError(f"artefacts: {name!r} must be letters, digits and dashes; it becomes a URL folder")
    if name in {"t", "ipxe", "metadata", "nocloud", "reports", "osie", "tootles"}:
        raise OptionsError(f"artefacts: the name {name!r} is reserved; choose another")
    return name


def _expanded(path: str) -> str:
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError as error:
        raise OptionsError(f"{path}: this home folder does not exist; write the path without ~") from error


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
