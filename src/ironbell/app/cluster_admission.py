"""Admission of Cluster API's kinds in the embedded API: what webhooks do on a cluster, in the server's own process.

Rules are written for the stored version; a write in an older version is brought there and back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from ironbell.apiserver import status
from ironbell.apiserver.admission import Admission as Plugins
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.fielderrors import FieldError
from ironbell.apiserver.resources import Convert, ResourceInfo
from ironbell.contract.admission import Admission

Object = dict[str, Any]
_SUBRESOURCES = ("", "scale")


@cache
def admissions() -> Mapping[str, Admission]:
    """The rules, by the name of the kind's definition."""
    from ironbell.controllers.capi.admission import kinds as capi
    from ironbell.controllers.kubeadm.admission import kinds as kubeadm

    every = (*capi.ADMISSIONS, *kubeadm.ADMISSIONS)
    return {f"{one.kind.plural}.{one.kind.group}": one for one in every}


class ClusterAdmission:
    """Plugins for the server's admission."""

    def __init__(self, convert: Convert, names: Collection[str]) -> None:
        """`convert` brings objects from one version to another; `names` are those of the definitions whose objects
        are checked."""
        self._convert = convert
        self._names = names

    def register(self, plugins: Plugins) -> None:
        """Have every write of these kinds completed and checked."""
        plugins.mutating(self._concerns, self.mutate)
        plugins.validating(self._concerns, self.review)

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """The object with what is filled in; None if that is nothing."""
        rules = await self._rules(request)
        if rules is None or request.new is None:
            return None
        new = self._stored(request.new, rules)
        filled = rules.default(new, self._stored_or_none(request.old, rules))
        if filled == new:
            return None
        return self._convert(filled, request.info.api_version)

    async def review(self, request: AdmissionRequest) -> None:
        """Refuse a write that breaks the rules.

        Raises:
            Invalid: with all that is wrong.
        """
        rules = await self._rules(request)
        if rules is None:
            return
        old = self._stored_or_none(request.old, rules)
        if request.operation is Operation.DELETE:
            problems = rules.validate_delete(old) if rules.validate_delete is not None and old is not None else []
        else:
            problems = rules.validate(self._stored(request.new or {}, rules), old)
        if problems:
            errors = [FieldError(problem.kind, problem.path, problem.message) for problem in problems]
            raise status.invalid(request.info, request.name, errors=errors)

    async def _rules(self, request: AdmissionRequest) -> Admission | None:
        """The kind's rules, if this write is subject to them."""
        if request.subresource not in _SUBRESOURCES:
            return None
        found = await asyncio.to_thread(admissions) if not admissions.cache_info().currsize else admissions()
        written = request.new or request.old or {}
        return found.get(_name(request.info)) if written.get("kind") == request.info.kind else None

    def _concerns(self, info: ResourceInfo) -> bool:
        return _name(info) in self._names

    def _stored(self, value: Object, rules: Admission) -> Object:
        return self._convert(value, rules.kind.api_version)

    def _stored_or_none(self, value: Object | None, rules: Admission) -> Object | None:
        return None if value is None else self._stored(value, rules)


def _name(info: ResourceInfo) -> str:
    return f"{info.plural}.{info.group}"
