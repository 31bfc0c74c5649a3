"""Reports of an installed system's cloud-init, which end a boot.

cloud-init's webhook reporter posts one JSON document for the start and the finish of each stage. The finish of
`modules-final` means that the installed system is up. If the last stage fails, or a module that carries out bootstrap
data, the bootstrap has failed; a failure of another module (a small image has no `locale-gen`) is only an Event.
cloud-init does not send the output of modules; a template may add it in the field `output`, as ours does. Bodies come
from the network: other documents are counted and rejected, and recorded texts are bounded, printable and without
secrets.

Source: cloud-init: reporting/events.py (document), reporting/handlers.py (`webhook`).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.printable import plain
from ironbell.contract.redaction import last_lines, without_secrets

FINAL_STAGE = "modules-final"
CARRIES_OUT = frozenset(
    {
        "bootcmd", "disk-setup", "mounts", "runcmd", "scripts-per-boot", "scripts-per-instance", "scripts-per-once",
        "scripts-user", "scripts-vendor", "users-groups", "write-files", "write-files-deferred",
    }
)  # fmt: skip
"""Modules without which bootstrap data is not carried out, as cloud-init's documentation spells them."""
MAX_BODY_BYTES = 64 * 1024
MESSAGE_READ = 4096
OUTPUT_LINES = 20
OUTPUT_WIDTH = 300


class ReportError(IronbellError):
    """A body is not a valid cloud-init report."""

    reason = "InvalidReport"
    retry = Retry.NEVER


class _Document(msgspec.Struct, frozen=True):
    name: str
    event_type: str
    description: str = ""
    result: str | None = None
    duration: float | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class StageReport:
    """The start or the end of a stage. `ok` is None for a start."""

    stage: str
    ok: bool | None
    message: str
    output: tuple[str, ...] = ()
    """The last lines of output of a stage that failed."""

    @property
    def is_final(self) -> bool:
        """Return whether the installed system is up, with or without errors."""
        return self.stage == FINAL_STAGE and self.ok is not None

    @property
    def fails_bootstrap(self) -> bool:
        """Return whether the bootstrap cannot have succeeded. The failure of a stage other than the last one only
        repeats that of one of its modules."""
        stage, _, step = self.stage.partition("/")
        if self.ok is not False or not step:
            return self.ok is False and stage == FINAL_STAGE
        if step.startswith("search-"):
            # A data source cannot be read; the next one may have the data.
            return False
        module = step.removeprefix("config-")
        return module == step or module.replace("_", "-") in CARRIES_OUT


_decoder = msgspec.json.Decoder(_Document)


def parse_report(body: bytes) -> StageReport:
    """Read one report.

    Raises:
        ReportError: the body is not a valid report.
    """
    try:
        document = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ReportError(f"not a cloud-init report: {error}") from error
    if document.event_type not in {"start", "finish"}:
        raise ReportError(f"event_type must be start or finish, not {document.event_type[:40]!r}")
    # cloud-init also warns about harmless things; only FAIL is a failure.
    ok = None if document.event_type == "start" else document.result != "FAIL"
    text = " ".join(without_secrets(plain(document.description[:MESSAGE_READ])).split())[:300]
    stage = " ".join(plain(document.name[:100]).split())
    output = last_lines(document.output, lines=OUTPUT_LINES, width=OUTPUT_WIDTH) if ok is False else ()
    return StageReport(stage, ok, text, output)
