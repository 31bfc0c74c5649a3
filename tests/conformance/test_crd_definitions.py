"""What a CustomResourceDefinition may be: each fault in upstream's words, and what is no fault."""

from __future__ import annotations

from support.api.kubeapi import KubeApi
from support.api.recorded import Case, ask, each


@each("definitions")
def test_definition(api: KubeApi, case: Case) -> None:
    ask(api, case, group="definitions.example.org")
