"""The workflow document: what a Template renders to. Read, checked, and turned into the tasks of a Workflow. Pure.

Places are typed as in upstream's Go structs: a text takes any scalar as it was written (`010` stays `010`), a number
takes integral numbers that are not quoted; unknown keys are ignored, duplicate keys are not. All findings come at
once, each with its line; none quotes a value that may be secret.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/{types,template_validator,convert}.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ironbell.api.tinkerbell.workflow import Namespaces, WorkflowAction, WorkflowTask
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.actionimage import BUILTIN_ACTIONS, image_name
from ironbell.codec.goyaml import Mapping, Node, Scalar, Sequence, YamlError, load_source_scalars
from ironbell.contract.servers.image_reference import image_problem
from ironbell.contract.servers.ineffective import Ineffective, action_handler, action_volumes

MAX_NAME = 200
_INT64 = 1 << 63


class DocumentError(IronbellError):
    """A text is not a workflow document; `problems` has all of them."""

    reason = "InvalidWorkflowDocument"
    retry = Retry.NEVER

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class WorkflowDocument:
    """A document that may be carried out. Tasks and actions have neither ids nor states yet."""

    name: str
    tasks: tuple[WorkflowTask, ...]
    global_timeout_s: int = 0
    ineffective: tuple[Ineffective, ...] = ()
    """Fields that are accepted and have no effect."""


def parse_document(text: str) -> WorkflowDocument:
    """Read and check a rendered text.

    Raises:
        DocumentError: it is no YAML, or no valid document; with all findings.
    """
    try:
        root = load_source_scalars(text)
    except YamlError as error:
        raise DocumentError([f"parsing yaml data: {error}"]) from error
    reader = _Reader()
    document = reader.document(root)
    problems = reader.problems or list(_faults(document))
    if problems:
        raise DocumentError(problems)
    return document


def _faults(document: WorkflowDocument) -> Iterator[str]:
    """Problems that upstream's validator reports, in its words, with the place in front."""
    if not _is_name(document.name):
        yield f"name cannot be empty or have more than {MAX_NAME} characters: {_short(document.name)}"
    if not document.tasks:
        yield "template must have at least one task defined"
    seen: set[str] = set()
    for number, task in enumerate(document.tasks):
        where = f"tasks[{number}]"
        if not _is_name(task.name):
            yield f"{where}: name cannot be empty or have more than {MAX_NAME} characters: {_short(task.name)}"
        if task.name in seen:
            yield f"{where}: two tasks in a template cannot have same name ({_short(task.name)})"
        seen.add(task.name)
        if not task.agent_id:
            yield f"{where}.worker: is empty after rendering; name the agent's id or MAC address"
        yield from _action_faults(task, where)


def _action_faults(task: WorkflowTask, where: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, action in enumerate(task.actions):
        place = f"{where}.actions[{number}]"
        if not _is_name(action.name):
            yield f"{place}: name cannot be empty or have more than {MAX_NAME} characters: {_short(action.name)}"
        if action.name in seen:
            yield f"{place}: two actions in a task cannot have same name: {_short(action.name)}"
        seen.add(action.name)
        if problem := image_problem(action.image):
            yield f"{place}.image: invalid action image ({_short(action.image)}): {problem}"


def _is_name(text: str) -> bool:
    return 0 < len(text.encode()) < MAX_NAME


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass
class _Reader:
    """Converts by the type of the place and notes what does not fit."""

    problems: list[str] = field(default_factory=list)
    ineffective: list[Ineffective] = field(default_factory=list)

    def document(self, root: Node | None) -> WorkflowDocument:
        entries = self._mapping(root, "the document")
        # Known but without effect: upstream rejects them all the same when they have another type.
        for name in ("version", "id"):
            self._text(entries.get(name), name)
        tasks = [
            self._task(task, f"tasks[{number}]")
            for number, task in enumerate(self._list(entries.get("tasks"), "tasks"))
        ]
        return WorkflowDocument(
            name=self._text(entries.get("name"), "name"),
            tasks=tuple(tasks),
            global_timeout_s=self._number(entries.get("global_timeout"), "global_timeout"),
            ineffective=tuple(self.ineffective),
        )

    def _task(self, node: Node, where: str) -> WorkflowTask:
        entries = self._mapping(node, where)
        actions = self._list(entries.get("actions"), f"{where}.actions")
        return WorkflowTask(
            id="",
            name=self._text(entries.get("name"), f"{where}.name"),
            agent_id=self._text(entries.get("worker"), f"{where}.worker"),
            volumes=self._texts(entries.get("volumes"), f"{where}.volumes"),
            environment=self._text_map(entries.get("environment"), f"{where}.environment"),
            actions=[self._action(action, f"{where}.actions[{number}]") for number, action in enumerate(actions)],
        )

    def _action(self, node: Node, where: str) -> WorkflowAction:
        entries = self._mapping(node, where)
        for name in ("on-timeout", "on-failure"):
            if self._texts(entries.get(name), f"{where}.{name}"):
                self.ineffective.append(action_handler(f"{where}.{name}"))
        shared = self._mapping(entries.get("namespaces"), f"{where}.namespaces")
        namespaces = Namespaces(
            network=self._text(shared.get("network"), f"{where}.namespaces.network"),
            pid=self._text(shared.get("pid"), f"{where}.namespaces.pid"),
        )
        image = self._text(entries.get("image"), f"{where}.image")
        volumes = self._texts(entries.get("volumes"), f"{where}.volumes")
        if image_name(image) in BUILTIN_ACTIONS:
            self.ineffective += action_volumes(f"{where}.volumes", image_name(image), volumes)
        return WorkflowAction(
            id="",
            name=self._text(entries.get("name"), f"{where}.name"),
            image=image,
            timeout=self._number(entries.get("timeout"), f"{where}.timeout"),
            command=self._texts(entries.get("command"), f"{where}.command"),
            volumes=volumes,
            pid=self._text(entries.get("pid"), f"{where}.pid"),
            namespaces=namespaces if shared else None,
            environment=self._text_map(entries.get("environment"), f"{where}.environment"),
        )

    def _mapping(self, node: Node | None, where: str) -> dict[str, Node]:
        if isinstance(node, Mapping):
            return node.entries
        if not _is_null(node):
            self._wrong(node, where, "a mapping")
        return {}

    def _list(self, node: Node | None, where: str) -> tuple[Node, ...]:
        """Return the items; null items are skipped, as in yaml.v3."""
        if isinstance(node, Sequence):
            return tuple(item for item in node.items if not _is_null(item))
        if not _is_null(node):
            self._wrong(node, where, "a list")
        return ()

    def _texts(self, node: Node | None, where: str) -> list[str]:
        return [self._text(item, f"{where}[{number}]") for number, item in enumerate(self._list(node, where))]

    def _text_map(self, node: Node | None, where: str) -> dict[str, str]:
        return {key: self._text(value, f"{where}.{key}") for key, value in self._mapping(node, where).items()}

    def _text(self, node: Node | None, where: str) -> str:
        if _is_null(node):
            return ""
        if isinstance(node, Scalar):
            return node.text
        self._wrong(node, where, "a text")
        return ""

    def _number(self, node: Node | None, where: str) -> int:
        if _is_null(node):
            return 0
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64:
            return value
        self._wrong(node, where, "a whole number without quotes")
        return 0

    def _wrong(self, node: Node | None, where: str, expected: str) -> None:
        line = f"line {node.line}: " if node is not None else ""
        self.problems.append(f"{line}{where} must be {expected}")


def _is_null(node: Node | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.value is None)
