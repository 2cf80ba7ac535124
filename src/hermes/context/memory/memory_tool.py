"""The memory tool's own work: from the model's arguments to what it reads, and what a person is told."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from hermes.context.injection_scan import scan
from hermes.context.memory.entries import ACTIONS, TARGETS, EntryChange, EntryRefusal, Operation, Target, usage
from hermes.context.memory.memory_files import MemoryFiles, Written
from hermes.context.memory.memory_history import MemoryWriter
from hermes.context.memory.proposals import Proposal, Proposals
from hermes.context.memory.session_words import SessionText
from hermes.context.origin import Origin, OutsideWords
from hermes.errors import UserError
from hermes.redact import Redactor

MAX_OPERATIONS = 50  # of one call
MAX_FAILURES = 3  # of one turn; after these the model is told to stop
WAITS = "needs the user's yes"
_MESSAGES = {"add": "Entry added.", "replace": "Entry replaced.", "remove": "Entry removed."}


class MemoryAnswer(Struct, frozen=True, kw_only=True):
    """What came of a call: for the model, for the person, and for a provider."""

    body: dict[str, Any]
    told: tuple[str, ...] = ()
    changes: tuple[EntryChange, ...] = ()
    target: Target = "memory"


class MemoryDesk:
    """Takes calls of the memory tool for one agent."""

    def __init__(
        self, files: MemoryFiles, targets: Sequence[Target], redactor: Redactor, *, asks_always: bool = False
    ) -> None:
        self.files = files
        self.proposals = Proposals(files)
        self._targets = tuple(targets)
        self._redactor = redactor
        self._asks_always = asks_always
        self._words = OutsideWords()
        self._failures = 0

    def new_turn(self) -> None:
        self._failures = 0

    def call(self, args: Mapping[str, Any], writer: MemoryWriter, heard: SessionText) -> MemoryAnswer:
        """Do what the model asks. Blocking; whatever is refused is an answer, and told to the person as well."""
        target: Target = "memory"
        try:
            target = _target(args, self._targets)
            operations = _operations(args)
            self._refuse_flood(target, operations)
            for operation in operations:
                self._refuse_content(operation)
            origin = self._origin(operations, heard)
            if origin is not None:
                return self._proposed(target, operations, writer, origin)
            written = self.files.write(target, operations, writer)
        except EntryRefusal as refused:
            return self._refused(target, refused)
        except (OSError, UserError) as error:
            return self._refused(target, EntryRefusal(f"the memory could not be written: {error}"))
        return _written(target, operations, written)

    def _refuse_flood(self, target: Target, operations: Sequence[Operation]) -> None:
        """What can never fit is not worth a comparison with all that a session has heard."""
        limit = self.files.limits[target]
        longest = max(len(operation.content.strip()) for operation in operations)
        if longest <= limit and len(operations) <= MAX_OPERATIONS:
            return
        entries = self.files.entries(target)
        why = f"an entry of {longest:,} characters" if longest > limit else f"{len(operations)} operations"
        most = f"the limit of the whole file is {limit:,}" if longest > limit else f"{MAX_OPERATIONS} are the most"
        told = usage(entries, limit, percent=False)
        raise EntryRefusal(f"{why} cannot be kept: {most}", current_entries=entries, usage=told)

    def _refuse_content(self, operation: Operation) -> None:
        text = operation.content
        if operation.action == "remove" or not text:
            return
        finding = scan(text, "memory")
        if finding is not None:
            raise EntryRefusal(f"this is not kept, because it reads like an attempt to take control ({finding})")
        if "⟦secret#" in text or self._redactor.redact(text) != text:
            raise EntryRefusal("this is not kept, because it holds a secret; keep where it is stored, not its value")

    def _origin(self, operations: Sequence[Operation], heard: SessionText) -> Origin | None:
        new = [operation.content for operation in operations if operation.action != "remove" and operation.content]
        if not new:
            return None
        if self._asks_always:
            return Origin("memory.write_approval is on", "")
        own = [*heard.own, *self.files.entries("memory"), *self.files.entries("user")]
        for text in new:
            origin = self._words.origin(text, heard.outside, own)
            if origin is not None:
                return origin
        return None

    def _proposed(
        self, target: Target, operations: Sequence[Operation], writer: MemoryWriter, origin: Origin
    ) -> MemoryAnswer:
        """Nothing of a call is written when some of it has to wait."""
        told: list[str] = []
        for operation in operations:
            made = self.proposals.add(
                Proposal(
                    number=0,
                    at=writer.at,
                    target=target,
                    operation=operation,
                    source=origin.source,
                    session_id=writer.session_id,
                    by=writer.by,
                )
            )
            told.append(f"memory {WAITS}: {made.line}")
        text = (
            f"not written yet: these words come from {origin.source} and not from the user, so it {WAITS}. It waits as "
            "a proposal that the user sees; go on without it, and do not try again in other words"
        )
        body = {"success": False, "target": target, "pending": True, "error": text}
        return MemoryAnswer(body=body, told=tuple(told), target=target)

    def _refused(self, target: Target, refused: EntryRefusal) -> MemoryAnswer:
        self._failures += 1
        body: dict[str, Any] = {"success": False, "target": target, "error": refused.text, **refused.facts}
        if self._failures > MAX_FAILURES:
            body["done"] = True
            body["error"] += ". Stop trying to write memory in this turn, and tell the user what could not be kept"
        return MemoryAnswer(body=body, told=(f"memory was not written: {refused.text}",), target=target)


def _written(target: Target, operations: Sequence[Operation], written: Written) -> MemoryAnswer:
    if len(operations) > 1:
        message = f"Applied {len(operations)} operation(s)."
    elif not written.changes:
        message = "Entry already exists (no duplicate added)."
    else:
        message = _MESSAGES[operations[0].action]
    body = {
        "success": True,
        "target": target,
        "usage": written.usage,
        "entry_count": len(written.entries),
        "message": message,
        "done": True,
    }
    return MemoryAnswer(body=body, changes=tuple(written.changes), target=target)


def take(desk_files: MemoryFiles, proposals: Proposals, number: int, at: float) -> Proposal:
    """Write a proposal that a person said yes to; it waits on where that is refused."""
    found = next((one for one in proposals.waiting() if one.number == number), None)
    if found is None:
        return proposals.take_out(number)  # which says that there is none
    writer = MemoryWriter(by=found.by, at=at, session_id=found.session_id, note=f"from {found.source}, allowed by you")
    try:
        desk_files.write(found.target, [found.operation], writer)
    except EntryRefusal as refused:
        raise UserError(f"proposal {number} cannot be taken: {refused.text}") from refused
    return proposals.take_out(number)


def _target(args: Mapping[str, Any], targets: Sequence[Target]) -> Target:
    given = args.get("target") or "memory"
    found = next((target for target in TARGETS if target == given), None)
    if found is None:
        raise EntryRefusal(f"there is no target {given!r}; it is memory or user")
    if found not in targets:
        key = "memory.memory_enabled" if found == "memory" else "memory.user_profile_enabled"
        raise EntryRefusal(f"the target {given!r} is switched off ({key})")
    return found


def _operations(args: Mapping[str, Any]) -> list[Operation]:
    given = args.get("operations")
    if given is None:
        given = [{name: args.get(name) for name in ("action", "content", "old_text")}]
    if not isinstance(given, list) or not given:
        raise EntryRefusal("`operations` is a list of at least one operation")
    return [_operation(one) for one in given]


def _operation(one: Any) -> Operation:
    if not isinstance(one, Mapping):
        raise EntryRefusal(f"an operation is an object with action, content and old_text, not {one!r}")
    action = one.get("action")
    if action not in ACTIONS:
        raise EntryRefusal(f"there is no action {action!r}; it is add, replace or remove")
    texts = {name: one.get(name) or "" for name in ("content", "old_text")}
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise EntryRefusal(f"`{wrong[0]}` is a text")
    return Operation(action=action, content=texts["content"], old_text=texts["old_text"])
