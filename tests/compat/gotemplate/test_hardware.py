"""`.hardware` and `.Hardware` give what they give in Go, over random specs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from ironbell.codec.gotemplate import TemplateError, render
from ironbell.codec.gotemplate.values import encode
from ironbell.contract.servers.template_data import template_data
from ironbell.contract.servers.types import TYPES

_TEMPLATES = """
{{ toJson .hardware }}
{{ toYaml .hardware.spec }}
{{ .hardware.spec }}
{{ toJson .Hardware }}
{{ toYaml .Hardware.Metadata }}
{{ .Hardware.Disks }}|{{ .Hardware.UserData }}|{{ .Hardware.VendorData }}|{{ .Hardware.Metadata.State }}
{{ range .Hardware.Interfaces }}{{ with .DHCP }}{{ . }}{{ .LeaseTime | add 1 }}{{ .NameServers }}{{ end }}{{ end }}
{{ range .Hardware.Interfaces }}{{ with .Netboot }}{{ .AllowPXE }}{{ .OSIE }}{{ end }}{{ .Isoboot }}{{ end }}
{{ with .Hardware.Metadata.Instance }}{{ .Tags }}{{ .Ips | len }}{{ toPrettyJson .Storage }}{{ end }}
{{ (index .Hardware.Interfaces 0).DHCP.IP.Address }}
{{ .Hardware.Metadata.Instance.Storage.Disks | toJson }}
{{ .Hardware.Metadata.Custom.PrivateSubnets | join `,` }}
{{ range .hardware.spec.interfaces }}{{ dig `dhcp` `ip` `address` `none` . }}{{ end }}
{{ kindOf .Hardware.Metadata.Facility }}{{ if .Hardware.Metadata.Facility }}y{{ end }}{{ default 1 .Hardware.Disks }}
{{ deepEqual .Hardware.Metadata .Hardware.Metadata }}{{ eq .Hardware.UserData `u` }}{{ empty .Hardware.Metadata }}
""".strip().splitlines()


def _value(source: random.Random, kind: str, depth: int = 0) -> Any:
    """A random JSON value of a type in the table's notation; absent fields stay absent."""
    if kind.startswith("[]"):
        return [_value(source, kind[2:], depth) for _ in range(source.randint(0, 2))]
    if kind.startswith("*"):
        return _value(source, kind[1:], depth)
    if kind.startswith("map:"):
        return {source.choice("ab"): _value(source, kind[4:], depth)}
    if kind in TYPES:
        fields = [field for field in TYPES[kind].fields if source.random() < 0.6]
        return {field.json: _value(source, field.type, depth + 1) for field in fields}
    choices: dict[str, list[Any]] = {"string": ["", "u", "52:54:00:aa:bb:cc", "1", "a b"], "bool": [True, False]}
    return source.choice(choices.get(kind, [0, 1, 86400, 1000000, 1 << 40]))


def test_hardware_is_shown_as_in_go(oracle: Callable[..., list[Any]]) -> None:
    source = random.Random(5)
    cases = []
    for _ in range(150):
        spec = _value(source, "HardwareSpec")
        legacy = {
            "Disks": [disk.get("device", "") for disk in spec.get("disks", [])] or None,
            "Interfaces": spec.get("interfaces") or None,
            "UserData": spec.get("userData", ""),
            "Metadata": spec.get("metadata", {}),
            "VendorData": spec.get("vendorData", ""),
        }
        cases += [{"mode": "render", "text": text, "hardware": legacy, "spec": spec} for text in _TEMPLATES]
    for case, answer in zip(cases, oracle(cases), strict=True):
        data = template_data({"spec": case["spec"]})
        data["hardware"] = {"spec": data["hardware"]["spec"]}
        try:
            got: bytes | None = encode(render(case["text"], data))
        except TemplateError:
            got = None
        if got is not None:
            got = re.sub(rb"0x[0-9a-f]{6,}", b"ADDRESS", got)
        assert got == answer.comparable, f"{case['text']}\n{case['spec']}\nGo says: {answer.error}"
