"""Templates: a text through the engine with a machine's data and limits, the document that it renders to, and YAML."""

from __future__ import annotations

from typing import Any

from ironbell.codec import gotemplate, goyaml
from ironbell.contract.servers.template_data import customboot_data, template_data
from ironbell.contract.servers.workflow_document import DocumentError, parse_document

INSTRUMENTED = ("ironbell.codec.gotemplate", "ironbell.codec.goyaml", "ironbell.contract.servers.workflow_document")
LONGEST = 2048
WORDS = (
    b"{{", b"}}", b"{{-", b"-}}", b"{{if ", b"{{else}}", b"{{end}}", b"{{range $i, $x := ", b"{{with ", b"{{define \"t\"}}",
    b"{{template \"t\" .}}", b"{{block \"t\" .}}", b"{{break}}", b"{{continue}}", b"{{/* */}}", b".hardware.spec", b".Hardware",
    b".device_1", b" | ", b"$x := ", b"printf \"%v\" ", b"index ", b"until 9 ", b"repeat 99 ", b"toJson", b"fromYaml ",
    b"fromJson ", b"regexReplaceAll ", b"splitList ", b"dict ", b"list ", b"default ", b"quote", b"nindent 4", b"b64enc",
    b"sha256sum", b"formatPartition ", b"contains ", b"htpasswd ", b"genPrivateKey ", b"dateModify ", b"semver ", b"include ",
    b"version: \"0.1\"\n", b"name: a\n", b"global_timeout: 60\n", b"tasks:\n", b"  - name: t\n", b"    worker: \"{{.device_1}}\"\n",
    b"    actions:\n", b"      - name: a\n", b"        image: quay.io/a/b:c\n", b"        timeout: 60\n",
    b"        environment:\n", b"          A: b\n", b"        volumes:\n", b"          - /dev:/dev\n", b"        pid: host\n",
    b"&a ", b"*a", b"<<: ", b"!!str ", b"!!binary ", b"0x1F", b".inf", b"|-\n", b">+\n", b"? ", b"---\n", b"...\n", b"\t",
)  # fmt: skip
_HARDWARE: dict[str, Any] = {
    "metadata": {"name": "node-1", "namespace": "lab", "labels": {"rack": "r1"}},
    "spec": {
        "disks": [{"device": "/dev/nvme0n1"}],
        "interfaces": [
            {
                "dhcp": {
                    "mac": "02:00:00:00:00:01",
                    "hostname": "node-1",
                    "ip": {"address": "192.0.2.50", "netmask": "255.255.255.0", "gateway": "192.0.2.1"},
                    "name_servers": ["192.0.2.53"],
                    "lease_time": 86400,
                },
                "netboot": {"allowPXE": True, "allowWorkflow": True},
            }
        ],
        "metadata": {"instance": {"id": "i", "hostname": "h", "tags": ["a", "b"]}, "facility": {"plan_slug": "p"}},
        "userData": "#cloud-config\n",
    },
}
_DATA = template_data(_HARDWARE, hardware_map={"device_1": "02:00:00:00:00:01", "x": "1"})
_CUSTOM = customboot_data(_HARDWARE["spec"])
_STEPS = 4_000
_SECONDS = 2.0
_OUTPUT = 65_536
_LIMITS = goyaml.Limits(size_bytes=1 << 16, depth=50, aliased_nodes=1_000)
_MESSAGE = 2_000


def one(data: bytes) -> None:
    """The first byte chooses: a template for a document, one for an address, a document, or any YAML."""
    if not data:
        return
    kind, text = data[0] & 3, data[1:].decode("utf-8", "surrogateescape")
    if kind == 0:
        rendered = _render(text, _DATA)
        if rendered is not None:
            _document(rendered)
    elif kind == 1:
        _render(text, _CUSTOM)
    elif kind == 2:
        _document(text)
    else:
        _yaml(text)


def _render(text: str, data: dict[str, Any]) -> str | None:
    problem = _problem_of_parsing(text)
    try:
        rendered = gotemplate.render(text, data, steps=_STEPS, seconds=_SECONDS, output_cap=_OUTPUT)
    except gotemplate.TemplateError as error:
        _check_error(error, text)
        return None
    assert problem is None, f"a text that does not parse was rendered: {problem}"
    assert len(rendered.encode("utf-8", "surrogateescape")) <= _OUTPUT, "more was rendered than is allowed"
    return rendered


def _problem_of_parsing(text: str) -> str | None:
    try:
        gotemplate.check(text, steps=_STEPS, seconds=_SECONDS)
    except gotemplate.TemplateError as error:
        _check_error(error, text)
        return error.problem
    return None


def _check_error(error: gotemplate.TemplateError, text: str) -> None:
    assert 1 <= error.line <= text.count("\n") + 1, f"the error names line {error.line}"
    assert len(error.message) <= _MESSAGE + len(text), "the error is far longer than the template"
    assert len(error.excerpt) <= 120


def _document(text: str) -> None:
    try:
        document = parse_document(text)
    except DocumentError as error:
        assert error.problems
        assert len(error.problems) <= 20 + 10 * len(text), "there are more findings than places"
        return
    assert document.tasks
    assert document.name
    assert all(task.agent_id for task in document.tasks)
    assert len({task.name for task in document.tasks}) == len(document.tasks)


def _yaml(text: str) -> None:
    try:
        values = goyaml.load_all(text, limits=_LIMITS)
        values = list(values)
    except goyaml.YamlError as error:
        assert len(str(error)) <= _MESSAGE + len(text)
        return
    for value in values:
        for go_exact in (False, True):
            try:
                written = goyaml.dump(value, go_exact=go_exact)
            except goyaml.YamlError:
                # An infinite number, or half a character, which JSON does not have.
                continue
            assert goyaml.load(written) == value, "a value that was written reads otherwise"


_WORKFLOW = b"""version: "0.1"
name: debian
global_timeout: 1800
tasks:
  - name: "os"
    worker: "{{.device_1}}"
    volumes: [/dev:/dev]
    actions:
      - name: "disk"
        image: quay.io/tinkerbell/actions/image2disk:latest
        timeout: 600
        environment:
          DEST_DISK: {{ index .Hardware.Disks 0 }}
          IMG_URL: "http://{{ (index .hardware.spec.interfaces 0).dhcp.ip.gateway }}/d.raw.gz"
"""
SEEDS = (
    b"\0" + _WORKFLOW, b"\x02" + _WORKFLOW.replace(b"{{.device_1}}", b"m").replace(b"{{ index .Hardware.Disks 0 }}", b"/dev/sda"),
    b"\0{{ range $i, $d := .Hardware.Disks }}{{ if eq $i 0 }}{{ $d | quote }}{{ else }}x{{ break }}{{ end }}{{ end }}",
    b"\0{{ with .hardware.spec.metadata }}{{ .instance.tags | join \",\" | upper }}{{ else }}none{{ end }}",
    b'\0{{ define "t" }}[{{ . }}]{{ end }}{{ template "t" .x }}{{ block "b" 3 }}{{ printf "%05d %q %v" . "a" . }}{{ end }}',
    b'\0{{ formatPartition "/dev/nvme0n1" 1 }} {{ contains "a" "b" }} {{ trimPrefix "a" "ab" }} {{ dict "a" 1 | toJson }}',
    b'\0{{ regexReplaceAll "a+" "baaa" "$0" }} {{ splitList "," "a,b" | first }} {{ until 5 }} {{ repeat 9 "ab" }}',
    b"\0{{ range until 100000 }}{{ range until 100000 }}a{{ end }}{{ end }}",
    b"\x01http://{{ (index .Hardware.Interfaces 0).DHCP.MAC }}/{{ .Hardware.Disks }}",
    b"\x03a: &x [1, 0x1F, 010, 1e3, .inf, ~, true, yes, 2001-01-01, '1', \"\\u263a\"]\nb: *x\n<<: {c: |-\n  d\n}\n",
    b"\x03- >+\n  a\n\n  b\n- ? k\n  : v\n- !!binary aGk=\n- !!str 1\n--- x\n...\n",
    b"\x03a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n",
)  # fmt: skip
