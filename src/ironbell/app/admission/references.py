"""References into other namespaces in the embedded API: their writers must hold the rights that these references
use."""

from __future__ import annotations

from ironbell.apiserver import status
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Authorizer
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.warnings import warn
from ironbell.app.admission.reference_rules import Holds, Write, concerns, reviewed
from ironbell.contract.crossing import Access


def check_references(admission: Admission, authorizer: Authorizer) -> None:
    """Check every write of an object that may refer to other namespaces."""

    async def review(request: AdmissionRequest) -> None:
        if request.subresource or request.new is None or request.operation is Operation.DELETE:
            return
        info, identity = request.info, request.identity
        write = Write(info.group, info.plural, request.namespace, identity.user, request.new, request.old)
        verdict = await reviewed(write, _holds(authorizer, identity))
        for text in verdict.warnings:
            warn(text)
        if verdict.forbidden:
            raise status.forbidden(info, request.name, detail=verdict.forbidden)

    admission.validating(_concerns, review)


def _holds(authorizer: Authorizer, identity: Identity) -> Holds:
    async def holds(right: Access) -> bool:
        attributes = Attributes(right.verb, right.group, right.resource, right.namespace, right.name)
        return authorizer.decide(identity, attributes).allowed

    return holds


def _concerns(info: ResourceInfo) -> bool:
    return concerns(info.group, info.plural)
