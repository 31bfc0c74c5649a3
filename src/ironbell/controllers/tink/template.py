"""The controller of Templates: reports whether a text parses, before a Workflow uses it.

Parsing is a query to the template engine: a text is parsed once per process and namespace, and again when it changes.
Errors that depend on a server's data are found only when a Workflow is rendered.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/template.go (states that upstream never sets).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, TypeAlias

from ironbell.api.tinkerbell.template import TEMPLATE, Template, TemplateState
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.directory import ERROR
from ironbell.controllers.tink.status import shortened
from ironbell.kube.decision import Decision, Fact, Key, Need, Query, do, emit, patch, patch_status, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Resolver

PARSE_TIMEOUT_S: Final = 120.0
"""More than a parser needs for an outcome, including the time in which it waits for a turn."""
FOREVER_S: Final = 365 * 86400.0
MESSAGE_LIMIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Parsed(Query[str]):
    """The error in a text, with its line; empty if the text parses."""

    subject: ClassVar[str] = "the check of the Template"

    text: str
    namespace: str = ""
    """The namespace that takes a turn; see `controllers.tink.rendering.turns`."""


@dataclass(frozen=True, slots=True)
class TemplateObserved:
    """A Template and the result of parsing its text."""

    template: Template
    parsed: Fact[str] | None = None


class TemplateReconciler:
    """Sets `status.state` of Templates, and reports errors in an event and an annotation."""

    name = "tink-template"
    declaration = Declaration(TEMPLATE)

    def observe(self, cache: Cache, key: Key) -> TemplateObserved | None:
        template = cache.get(TEMPLATE, *key)
        if template is None or is_deleting(template):
            return None
        return TemplateObserved(template, cache.fact(_query(template), None))

    def decide(self, observed: TemplateObserved, now: datetime) -> Decision:
        template, parsed = observed.template, observed.parsed
        need = Need(_query(template), FOREVER_S, timeout_s=PARSE_TIMEOUT_S)
        if parsed is None:
            return wait("Parsing", "Parsing the text.", needs=[need])
        problem = parsed.error.message if parsed.value is None and parsed.error is not None else parsed.value or ""
        return _record(template, shortened(problem, MESSAGE_LIMIT), need)


Parse: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Parses the text of a Template in a namespace. Raises `IronbellError` that is `Retry.NEVER` for an error in the
text."""


def resolvers(parse: Parse) -> Mapping[type[Query[Any]], Resolver]:
    """The resolvers of the Template controller."""

    async def parse_error(query: Parsed) -> str:
        try:
            await parse(query.text, query.namespace)
        except IronbellError as error:
            if error.retry is not Retry.NEVER:
                raise
            return error.message
        return ""

    return {Parsed: parse_error}


def _query(template: Template) -> Parsed:
    return Parsed(template.spec.data, template.metadata.namespace)


def _record(template: Template, problem: str, need: Need[str]) -> Decision:
    state = TemplateState.ERROR if problem else TemplateState.READY
    known = template.metadata.annotations.get(ERROR, "")
    if (template.status.state, known) == (state, problem):
        return do(needs=[need])
    annotation = {"metadata": {"annotations": {ERROR: problem or None}}}
    return do(
        patch(TEMPLATE, template, annotation, locked=True) if known != problem else None,
        patch_status(TEMPLATE, template, {"state": state}) if template.status.state != state else None,
        emit(TEMPLATE, template, reason="TemplateInvalid", message=problem, warning=True) if problem else None,
        needs=[need],
    )
