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
from ironbell.kube.decision import Decision, Fact, Key, Need, Query, patch
from ironbell.kube.draft import Draft, replace
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
        draft, parsed = Draft(TEMPLATE, observed.template, now), observed.parsed
        draft.need(Need(_query(draft.obj), FOREVER_S, timeout_s=PARSE_TIMEOUT_S))
        if parsed is None:
            draft.wait("Parsing", "Parsing the text.")
        else:
            problem = parsed.error.message if parsed.value is None and parsed.error is not None else parsed.value or ""
            _report(draft, shortened(problem, MESSAGE_LIMIT))
        return draft.decision()


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


def _report(draft: Draft[Template], problem: str) -> None:
    state = TemplateState.ERROR if problem else TemplateState.READY
    known = draft.metadata.annotations.get(ERROR, "")
    if problem and (draft.status.state, known) != (state, problem):
        draft.emit("TemplateInvalid", problem, warning=True)
    if known != problem:
        annotation = {"metadata": {"annotations": {ERROR: problem or None}}}
        draft.first.append(patch(TEMPLATE, draft.obj, annotation, locked=True))
    draft.status = replace(draft.status, state=state)
