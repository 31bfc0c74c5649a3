"""Admission of Cluster API's kinds in the embedded API: what webhooks do on a cluster, in the server's own process.

Rules are written for the stored version; a write in an older version is brought there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ironbell.apiserver import status
from ironbell.apiserver.admission import Admission as Plugins
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.fielderrors import FieldError
from ironbell.apiserver.resources import Convert, ResourceInfo
from ironbell.apiserver.warnings import warn
from ironbell.app.admission.lookups import Lookups
from ironbell.app.systems import SYSTEMS
from ironbell.base.threads import load
from ironbell.contract.admission import Admission
from ironbell.contract.admission_lookups import AdmissionResponse, InformedAdmission
from ironbell.contract.system import System

Object = dict[str, Any]
_SUBRESOURCES = ("", "scale")


@dataclass(frozen=True, slots=True)
class Rules:
    """The admission of one kind: rules about the object itself, and rules that need other objects."""

    alone: Admission
    informed: InformedAdmission | None = None

    @property
    def deletions(self) -> bool:
        """Return whether deletions are reviewed."""
        return self.alone.validate_delete is not None or (self.informed is not None and self.informed.deletions)

    async def completed(self, new: Object, old: Object | None, lookups: Lookups) -> Object:
        """The object with its defaults.

        Raises:
            ApiError: another object cannot be looked up.
        """
        filled = self.alone.default(new, old)
        if self.informed is None or not (lookups_ := self.informed.lookups_for_default(filled, old)):
            return filled
        return self.informed.default(filled, old, await lookups.find(lookups_))

    async def reviewed(self, new: Object | None, old: Object | None, lookups: Lookups) -> AdmissionResponse:
        """Review a write; `new` is None for a deletion.

        Raises:
            ApiError: another object cannot be looked up.
        """
        problems = []
        if new is not None:
            problems += self.alone.validate(new, old)
        elif old is not None and self.alone.validate_delete is not None:
            problems += self.alone.validate_delete(old)
        if self.informed is None or (new is None and not self.informed.deletions):
            return AdmissionResponse(problems)
        results = await lookups.find(self.informed.lookups_for_review(new, old))
        verdict = self.informed.review(new, old, results)
        return AdmissionResponse([*problems, *verdict.problems], verdict.warnings, verdict.forbidden)


@cache
def rules_of(system: System) -> Mapping[str, Rules]:
    """Import the rules of a system's kinds, by the names of their definitions."""
    if system.admission is None:
        return {}
    admission = system.admission.load()
    informed = {entry.kind: entry for entry in admission.informed}
    return {
        f"{entry.kind.plural}.{entry.kind.group}": Rules(entry, informed.get(entry.kind)) for entry in admission.alone
    }


@cache
def admissions() -> Mapping[str, Rules]:
    """Import the rules of all systems, by the names of the kinds' definitions."""
    return {name: rules for system in SYSTEMS for name, rules in rules_of(system).items()}


class ClusterAdmission:
    """Plugins for the server's admission."""

    def __init__(self, convert: Convert, names: Collection[str], lookups: Callable[[], Lookups]) -> None:
        """`convert` brings objects from one version to another; `names` are those of the definitions whose objects
        are checked; `lookups` gives what reads other objects."""
        self._convert = convert
        self._names = names
        self._lookups = lookups

    def register(self, plugins: Plugins) -> None:
        """Complete and check every write of these kinds."""
        plugins.mutating(self._concerns, self.mutate)
        plugins.validating(self._concerns, self.review)

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """Return the object with its defaults; None if that changes nothing."""
        rules = await self._rules(request)
        if rules is None or request.new is None:
            return None
        new = self._stored(request.new, rules)
        filled = await rules.completed(new, self._stored_or_none(request.old, rules), self._lookups())
        if filled == new:
            return None
        return self._convert(filled, request.info.api_version)

    async def review(self, request: AdmissionRequest) -> None:
        """Reject a write that breaks the rules.

        Raises:
            Invalid: fields are invalid; the error has all of them.
            Forbidden: the write is forbidden, whatever its fields are.
        """
        rules = await self._rules(request)
        if rules is None:
            return
        is_deletion = request.operation is Operation.DELETE
        old = self._stored_or_none(request.old, rules)
        verdict = await rules.reviewed(
            None if is_deletion else self._stored(request.new or {}, rules), old, self._lookups()
        )
        for text in verdict.warnings:
            warn(text)
        if verdict.problems:
            errors = [FieldError(problem.kind, problem.path, problem.message) for problem in verdict.problems]
            raise status.invalid(request.info, request.name, errors=errors)
        if verdict.forbidden:
            raise status.forbidden(request.info, request.name, detail=verdict.forbidden)

    async def _rules(self, request: AdmissionRequest) -> Rules | None:
        """The kind's rules, if this write is subject to them."""
        if request.subresource not in _SUBRESOURCES:
            return None
        rules_by_name = await load(admissions) if not admissions.cache_info().currsize else admissions()
        written = request.new or request.old or {}
        return rules_by_name.get(_name(request.info)) if written.get("kind") == request.info.kind else None

    def _concerns(self, info: ResourceInfo) -> bool:
        return _name(info) in self._names

    def _stored(self, value: Object, rules: Rules) -> Object:
        return self._convert(value, rules.alone.kind.api_version)

    def _stored_or_none(self, value: Object | None, rules: Rules) -> Object | None:
        return None if value is None else self._stored(value, rules)


def _name(info: ResourceInfo) -> str:
    return f"{info.plural}.{info.group}"
