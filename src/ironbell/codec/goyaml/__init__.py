"""YAML as Kubernetes reads and writes it.

The scanner is libyaml's (through PyYAML); which plain word means what is decided here, because go-yaml v2, which
sigs.k8s.io/yaml and so every Kubernetes tool uses, follows neither YAML 1.1 nor 1.2. Nothing else imports `yaml`.

`load`, `load_all` and `load_with_duplicates` give plain JSON values (dict, list, str, int, float, bool, None).
`load_source_scalars` keeps what was written, for documents whose reader decides by the type of the place (yaml.v3's
rule). `dump` writes text that both Go and PyYAML read back as the same values. Everything raises `YamlError` and
nothing else.

Source: yaml/go-yaml (branch v2): resolve.go, decode.go, encode.go; kubernetes-sigs/yaml: yaml.go.
"""

from ironbell.codec.goyaml.errors import DEFAULT_LIMITS, Limits, YamlError
from ironbell.codec.goyaml.read import load, load_all, load_with_duplicates
from ironbell.codec.goyaml.source import Mapping, Node, Scalar, Sequence, load_source_scalars
from ironbell.codec.goyaml.write import dump

__all__ = [
    "DEFAULT_LIMITS",
    "Limits",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "YamlError",
    "dump",
    "load",
    "load_all",
    "load_source_scalars",
    "load_with_duplicates",
]
