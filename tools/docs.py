"""Write the generated part of the documentation: docs/reference/cli.md, inventory.md, kinds.md, metrics.md, writes.md.

    .venv/bin/python tools/docs.py           write the files
    .venv/bin/python tools/docs.py --check   say which are out of date; status 1 if any is

The sources are the click commands, the API types and the metrics that the modules define. A unit test runs the check.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from prometheus_client.metrics import MetricWrapperBase

from ironbell.api.crd.document import crd_document
from ironbell.app.components import COMPONENTS, Component, Role
from ironbell.app.registry import KINDS
from ironbell.app.write_rules import COMPONENTS_OF, Writes, path_text, writes_of
from ironbell.cli.main import COMMANDS, cli
from ironbell.contract.servers.inventory_labels import LABELS

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
HELP_WIDTH = 100
_READING = {"get", "list", "watch"}
METRIC_SECTIONS = (
    ("Kubernetes API", "`core`", ("apiserver",)),
    (
        "Controllers, informers, event loop",
        "`core`; of these `boot` and `workflow` have informers and requests, and `boot` has events",
        ("kube",),
    ),
    (
        "Servers toward machines",
        "`boot`; those of the workflow service (`ironbell_workflow_`, `grpc_`) `workflow`",
        ("services", "app.wire.http"),
    ),
    ("Webhooks", "`ironbell run tink-controller`", ("app.admission.server",)),
    ("BMCs", "`core`", ("bmc", "controllers.rufio")),
    ("Templates", "`core`", ("controllers.tink.rendering.pool",)),
)

CLI_HEAD = """\
# Command line

An error is one line on standard error that names the cause and the remedy. A line that begins with
`ironbell: internal error` is a defect: please report it, with what the same command prints with
`IRONBELL_TRACEBACK=1` in the environment. Exit statuses: 0 success, 1 the operation failed, 2 the command line is
invalid, 130 interrupted, 141 the reader of the output has exited. `ironbell template render` exits with 1 if nothing
could be rendered, and with 2 if the rendered text is not a valid workflow; it prints the text in this case as well.

Every command that completes has `-o json`: one document on standard output, with values (`kind`, `namespace`, `name`,
`result`, `reason`, `time`) instead of text; with `--wait` it is printed at the end. Progress and warnings are written
to standard error. A command that fails prints `{"error": {"reason", "message", "status"}}` on standard output in
addition to the line on standard error; a wait that failed or timed out adds `why`, the object that blocks, in the
form of `ironbell why -o json`. `up`, `run` and `demo`, which run until they are stopped, and commands that print
manifests or a script have no `-o json`. `ironbell logs -o json` prints one object per line, since a log may have no
end.

Commands that use an API (such as `cluster`, `get`, `hardware`, `install`, `logs`, `run` and `why`) find it by
`--kubeconfig`, or else `$KUBECONFIG`, or else `~/.kube/config`. `--kubeconfig` and `--context` may be before or after
the command, as in `ironbell --context plant get hardware`. `source <(ironbell completion bash)` completes commands
and options in the shell.
"""
KINDS_HEAD = """\
# Kinds

The fields of all kinds that Ironbell defines, generated from the types. `ironbell crds` prints the same as
CustomResourceDefinitions, and `kubectl explain` shows it for a running site. [Workflows](../workflows.md) describes
how controllers use the fields; [limits](../index.md#not-there-yet) lists fields that are accepted for compatibility
and have no effect yet.

`[]` in a path stands for each item of a list, `{}` for each value of a map. A field marked *required* must be set
if its parent is set.
"""
INVENTORY_HEAD = """\
# Inventory

The parts of a server are reported from two sides: by its BMC, over Redfish, even before the first boot; and by the
agent, from inside the machine, in every Workflow. Both reports are stored in the status of the Hardware in one form,
and turned into labels by one mapping.

| report | location | available |
| --- | --- | --- |
| the BMC's | `status.attributes.outOfBand` | once the [BMC](../guide/bmc.md#inventory) answers; updated daily |
| the agent's | annotation `tinkerbell.org/agent-attributes` | a Workflow's first action; updated when it changes |

`status.attributes.inBand` has the agent's report in the form of the BMC's, without PCI devices and processor
features.

For each part, the agent's report takes precedence, and the BMC's supplies missing values. Requirements of a
TinkerbellMachine (`hardwareRequirements`) are compared with the same values. Placeholders of firmware, such as
`To be filled by O.E.M.` and `Default string`, are ignored.

In addition to Tinkerbell's attributes, Ironbell's agent reports `sizeBytes` of disks, `totalBytes` and `usableBytes`
of the memory, `uuid` of the product, and for network cards `driver` and `lldpNeighbours` (`chassisID`, `portID`,
`portDescription`, `systemName`, `managementAddress`, `vlanID`). Other servers ignore these.

## Labels

Every Hardware has these labels, so that you can select servers by them in `hardwareAffinity`,
`kubectl get hardware -l` and failure domains. An unknown value has no label. Characters that are not allowed in a
label's value are replaced by a dash, and the value is cut to 63 characters.

The annotation `ironbell.dev/inventory-labels` lists the labels that Ironbell set. **A label that you set under one of
these names keeps your value**, whatever the inventory reports; remove it, and the inventory's value is set again.
Labels that Ironbell set are changed when the machine changes, and removed when they no longer apply.

There is no label for the rack: two switches may share one, and one may serve several. If each rack has one switch,
name `ironbell.dev/switch` as the cluster's `failureDomainLabel`; otherwise label Hardware with your own.
"""
METRICS_HEAD = """\
# Metrics

Metrics are in the Prometheus text format.

| process | address | readable by |
| --- | --- | --- |
| `core` | `/metrics` of the Kubernetes API | the administrator, with `kubectl get --raw /metrics` |
| `boot` | `/metrics` of the HTTP port (7080) | every client that reaches the port, including machines |
| `workflow` | `/metrics` of the port after gRPC's (42114) | every client that reaches the port, including machines |
| `ironbell run` | `/metrics` of `--health-address` | every client that reaches that address |

No label names a single object, so the number of series does not grow with the number of machines. Names are those of
Kubernetes, controller-runtime and Tinkerbell if these have one. In addition there are `process_*` and `python_*`.
"""
WRITES_HEAD = """\
# What each process may write

Every process of Ironbell is a separate user of the Kubernetes API. This page lists everything that each of them may
write; the API rejects all other writes, with the reason in its response. An attacker who controls a process can
therefore write only what is listed here. [Safety](../guide/safety.md#processes) describes what each process may read,
and why.

`[]` in a path stands for each item of a list, `*` at the end of a path for everything that begins with it.
"""
WRITES_SERVERS = """\
## Servers toward machines

These processes read packets from untrusted machines, so their writes are limited field by field: in the embedded API
by admission, on other API servers by the ValidatingAdmissionPolicy `ironbell-limit-servers`, which `ironbell install`
applies. None of them creates or deletes Hardware or Workflows, or reads Secrets. With `ironbell up`, the process
`boot` is `smee` and `tootles`, and `workflow` is `tink-server`, each with an account of its own; on a cluster `wire`
is one account of both processes, and may write what any of the three may.
"""
WRITES_CONTROLLERS = """\
## Controllers

Controllers read objects that people and other controllers wrote, never packets. They are limited by roles: by kind,
subresource and verb. With `ironbell up` every controller has an account of its own with only its own permissions;
with `ironbell run` and `ironbell install` a component has one account.
"""


def pages() -> dict[str, str]:
    """File name to content."""
    return {
        "cli.md": cli_page(),
        "inventory.md": inventory_page(),
        "kinds.md": kinds_page(),
        "metrics.md": metrics_page(),
        "writes.md": writes_page(),
    }


def stale(folder: Path = REFERENCE) -> list[str]:
    """Names of the files that are not what would be written now."""
    return [
        name for name, text in pages().items() if not (folder / name).is_file() or (folder / name).read_text() != text
    ]


def cli_page() -> str:
    """All commands with their help."""
    parts = [CLI_HEAD]
    root = _context(cli, "ironbell")
    for name in COMMANDS:
        parts += _command_sections(_child(root, name))
    return "\n".join(parts).rstrip("\n") + "\n"


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=HELP_WIDTH,
        max_content_width=HELP_WIDTH,
        **command.context_settings,
    )


def _child(context: click.Context, name: str) -> click.Context:
    """The context of a group's command.

    Raises:
        KeyError: the group lists a command that it has not.
    """
    command = context.command.get_command(context, name) if isinstance(context.command, click.Group) else None
    if command is None:
        raise KeyError(f"{context.command_path} {name}")
    return _context(command, name, context)


def _command_sections(context: click.Context) -> Iterator[str]:
    command = context.command
    level = "##" if context.parent is not None and context.parent.parent is None else "###"
    yield f"{level} {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _command_sections(_child(context, name))


def kinds_page() -> str:
    """All kinds with their fields."""
    parts = [KINDS_HEAD]
    for kind in KINDS:
        document = crd_document(kind)
        parts.append(_kind_section(document["spec"], has_status=kind.has_status))
    return "\n".join(parts).rstrip("\n") + "\n"


def _kind_section(spec: dict[str, Any], *, has_status: bool) -> str:
    names, version = spec["names"], next(version for version in spec["versions"] if version["storage"])
    schema = version["schema"]["openAPIV3Schema"]
    about = [f"`{spec['group']}/{version['name']}`, plural `{names['plural']}`"]
    about += [f"short name {', '.join(f'`{name}`' for name in names['shortNames'])}"] if "shortNames" in names else []
    about += [f"category {', '.join(f'`{name}`' for name in names['categories'])}"] if "categories" in names else []
    about += [spec["scope"].lower()]
    about += ["status subresource"] if has_status else []
    older = [f"`{entry['name']}`" for entry in spec["versions"] if not entry["storage"]]
    about += [f"also served as {', '.join(older)}"] if older else []
    lines = [f"## {names['kind']}", "", schema.get("description", ""), "", f"{', '.join(about)}.", ""]
    columns = version.get("additionalPrinterColumns", [])
    if columns:
        lines += ["| column | shows | |", "| --- | --- | --- |"]
        lines += [
            f"| {column['name']} | `{column['jsonPath']}` | {'with `-o wide`' if column.get('priority') else ''} |"
            for column in columns
        ]
        lines.append("")
    lines += ["| field | type | rules | meaning |", "| --- | --- | --- | --- |"]
    for part in ("spec", "status"):
        if part in schema["properties"]:
            lines += _rows(part, schema["properties"][part], required=part in schema.get("required", []))
    return "\n".join(lines) + "\n"


def _rows(path: str, schema: dict[str, Any], *, required: bool) -> Iterator[str]:
    rules = (["required"] if required else []) + _rules(schema)
    meaning = schema.get("description", "").replace("|", r"\|")
    yield f"| `{path}` | {_type(schema)} | {'; '.join(rules)} | {meaning} |"
    for name, child in schema.get("properties", {}).items():
        yield from _rows(f"{path}.{name}", child, required=name in schema.get("required", []))
    for keyword, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        child = schema.get(keyword)
        if isinstance(child, dict) and (child.get("properties") or _rules(child) or child.get("items")):
            yield from _rows(f"{path}{suffix}", child, required=False)


def _type(schema: dict[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _rules(schema: dict[str, Any]) -> list[str]:
    """Default and validation, in words."""
    rules = [f"default `{_json(schema['default'])}`"] if "default" in schema else []
    if "enum" in schema:
        rules.append("one of " + ", ".join(f"`{_json(value)}`" for value in schema["enum"]))
    if "pattern" in schema:
        pattern = schema["pattern"].replace("|", r"\|")
        rules.append(f"pattern `{pattern}`")
    words = {
        "minimum": "at least", "maximum": "at most", "minLength": "characters at least", "maxLength":
        "characters at most", "minItems": "items at least", "maxItems": "items at most",
        "minProperties": "entries at least", "maxProperties": "entries at most",
    }  # fmt: skip
    rules += [f"{text} {_json(schema[word])}" for word, text in words.items() if word in schema]
    rules += [str(rule.get("message") or f"`{rule['rule']}`") for rule in schema.get("x-kubernetes-validations", [])]
    rules += ["may be null"] if schema.get("nullable") else []
    return rules


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def inventory_page() -> str:
    """The labels of the inventory, and where each comes from."""
    rows = [f"| `{label.key}` | {label.meaning} | {_path(label.agent)} | {label.bmc or '-'} |" for label in LABELS]
    head = ["| label | meaning | agent's report | Redfish |", "| --- | --- | --- | --- |"]
    return "\n".join([INVENTORY_HEAD, *head, *rows]) + "\n"


def _path(text: str) -> str:
    return ", else ".join(f"`{part}`" for part in text.split(", else ")) if text else "-"


def metrics_page() -> str:
    """All metrics, by the package that defines them."""
    parts = [METRICS_HEAD]
    for title, where, packages in METRIC_SECTIONS:
        found = [metric for package in packages for metric in _metrics(package)]
        if found:
            parts.append(f"## {title}\n\nProcess: {where}.\n")
            parts += ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
            parts += [_metric_row(metric) for metric in sorted(found, key=_metric_name)]
            parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def _metrics(package: str) -> list[MetricWrapperBase]:
    """The metrics that a module or the modules of a package define, each once."""
    root = importlib.import_module(f"ironbell.{package}")
    names = [found.name for found in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{root.__name__}.")]
    chosen = [name for name in names if ".testing" not in name and not name.endswith("__main__")]
    modules = [root, *(importlib.import_module(name) for name in chosen)]
    values = [value for module in modules for value in vars(module).values()]
    found = {_metric_name(value): value for value in values if isinstance(value, MetricWrapperBase)}
    return list(found.values())


def _metric_name(metric: MetricWrapperBase) -> str:
    family = next(iter(metric.describe()))
    return f"{family.name}_total" if family.type == "counter" else family.name


def _metric_row(metric: MetricWrapperBase) -> str:
    family = next(iter(metric.describe()))
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)
    return f"| `{_metric_name(metric)}` | {family.type} | {labels} | {family.documentation} |"


def writes_page() -> str:
    """What each process may write, from the table that admission enforces and the rules that roles are made of."""
    parts = [WRITES_HEAD, WRITES_SERVERS]
    for process in COMPONENTS_OF:
        if COMPONENTS_OF[process] == (process,):
            parts.append(f"### {process}\n")
            parts += ["| resource | verb | fields | condition | what it is |", "| --- | --- | --- | --- | --- |"]
            parts += [_write_row(row) for row in writes_of(process)]
            parts.append("")
    parts.append(WRITES_CONTROLLERS)
    parts += ["| component | resources | verbs |", "| --- | --- | --- |"]
    for component in COMPONENTS:
        if component.role is Role.CONTROLLERS:
            parts += _rule_rows(component)
    return "\n".join(parts).rstrip("\n") + "\n"


def _write_row(row: Writes) -> str:
    fields = ", ".join(f"`{path_text(field)}`" for field in row.fields if field) or "all"
    return f"| `{row.resource}` | {row.verb} | {fields} | {row.limit.text if row.limit else ''} | {row.reason} |"


def _rule_rows(component: Component) -> Iterator[str]:
    verbs_of: dict[str, dict[str, None]] = {}
    for rule in component.rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, slash, subresource = resource.partition("/")
                where = f"{plural}.{group}" if group else plural
                found = verbs_of.setdefault(f"{where}{slash}{subresource}", {})
                found.update(dict.fromkeys(verb for verb in rule["verbs"] if verb not in _READING))
    by_verbs: dict[str, list[str]] = {}
    for resource, verbs in verbs_of.items():
        if verbs:
            by_verbs.setdefault(", ".join(verbs), []).append(f"`{resource}`")
    for verbs_text, resources in by_verbs.items():
        yield f"| {component.name} | {', '.join(resources)} | {verbs_text} |"


def main(arguments: list[str]) -> int:
    """Write the files, or check them."""
    if arguments == ["--check"]:
        names = stale()
        for name in names:
            sys.stderr.write(f"docs/reference/{name} is out of date; run tools/docs.py\n")
        return 1 if names else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
