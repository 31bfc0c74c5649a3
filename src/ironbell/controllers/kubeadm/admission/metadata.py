"""Labels and annotations in templates, which must be fit for the objects that are made from them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/common_types.go (ObjectMeta.Validate); kubernetes/apimachinery:
pkg/util/validation/validation.go, pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ironbell.contract.admission import FieldProblem, invalid
from ironbell.contract.fields import map_at

_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(rf"(?:(?=.{{1,253}}/){_DNS}/)?{_WORD}")
_VALUE: Final = re.compile(rf"(?:{_WORD})?")
_KEY_RULE: Final = "must be [PREFIX/]NAME: a DNS name, and up to 63 letters, digits, '-', '_' and '.'"
_VALUE_RULE: Final = "must be up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
_ANNOTATIONS_BYTES: Final = 256 * 1024


def metadata_problems(metadata: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a template's labels and annotations."""
    for key, value in sorted(map_at(metadata, "labels").items()):
        if not _KEY.fullmatch(key):
            yield invalid(f"{path}.labels", key, _KEY_RULE)
        if not _VALUE.fullmatch(str(value)):
            yield invalid(f"{path}.labels", value, _VALUE_RULE)
    annotations = map_at(metadata, "annotations")
    for key in sorted(annotations):
        if not _KEY.fullmatch(key.lower()):
            yield invalid(f"{path}.annotations", key, _KEY_RULE)
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS_BYTES:
        yield invalid(f"{path}.annotations", "", f"must have at most {_ANNOTATIONS_BYTES} bytes")
