"""What becomes of a question: every change of its state, inside a transaction of the store.

```text
open ─→ queued ⇄ sent ─→ acknowledged ─→ settled      refused, withdrawn: open again, or gone
```
An answer is ``sent`` through a claim alone, so that one program sends it; what was given and what was typed
are never deleted by a change of state. The secrets in an answer are: they stand apart from it, and are erased
with the first change after which nobody has to send it any more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Final

from storage import rows
from storage.connection import Connection
from storage.errors import QuestionClosed, StorageError
from storage.records import NewEvent, QuestionChange, QuestionRecord, QuestionState, Reply

_IN_THE_OUTBOX: Final = ("queued", "sent")
_NEED_AN_ANSWER: Final = ("queued", "acknowledged", "settled")

_REOPENED: Final = {"closed_at": None, "acknowledged_at": None, "still_asked": 0}


def queue(connection: Connection, number: int, reply: Reply, by: str, now: int) -> NewEvent:
    """Save an answer to an open question of the task *number*; returns the fact. Raises `QuestionClosed`."""
    row = connection.one(
        f"{rows.SELECT_QUESTIONS} WHERE questions.id = ? AND questions.task = ?", (reply.question_id, number)
    )
    question = None if row is None else rows.question_record(row)
    if question is None or not question.is_open:
        became = "is gone" if question is None else f"is {question.state} already"
        raise QuestionClosed(f"the question {became}; nothing was saved")
    if question.fingerprint != reply.fingerprint:
        raise QuestionClosed(f"the question {question.key!r} changed since it was shown; nothing was saved")
    is_withheld = reply.kept_json is not None
    kept = reply.response_json if reply.kept_json is None else reply.kept_json
    digest = _digest(connection, reply)
    connection.run(
        "UPDATE questions SET state = 'queued', response_json = ?, digest = ?, withheld = ?, "
        "answered_by = ?, queued_at = ?, typed_json = draft_json, draft_json = NULL, refusal = NULL, "
        "sent_at = NULL, acknowledged_at = NULL, closed_at = NULL, owner = NULL, still_asked = 0 "
        "WHERE id = ?",
        (kept, digest, is_withheld, by, now, question.id),
    )
    _erase(connection, "question = ?", question.id)
    if is_withheld:
        connection.run("INSERT INTO secrets VALUES (?, ?)", (question.id, reply.response_json))
    # A response is logged as text, which it stays to the letter wherever the log is copied to. The request is
    # JSON already, and stays as it is: reading and writing it again could change a number.
    told = {"key": question.key, "question": question.id, "by": by, "fingerprint": question.fingerprint}
    told |= {"response": kept, "digest": digest} | ({"withheld": True} if is_withheld else {})
    return NewEvent("answer_queued", f'{json.dumps(told)[:-1]}, "request": {question.request_json}}}')


def fact(kind: str, question: QuestionRecord, **more: object) -> NewEvent:
    """Return a fact about the answer to *question*; the digest says which answer that was."""
    told = {"key": question.key, "question": question.id, "digest": question.digest, **more}
    return NewEvent(kind, json.dumps({name: value for name, value in told.items() if value is not None}))


def _digest(connection: Connection, reply: Reply) -> str:
    """Return what an answer can be known by later, and not be guessed from where it holds secrets."""
    text = reply.response_json.encode("utf-8", "surrogatepass")
    if reply.kept_json is None:
        return f"sha256:{hashlib.sha256(text).hexdigest()}"
    key = connection.value("SELECT key FROM digest_key")
    return f"hmac-sha256:{hmac.new(key, text, hashlib.sha256).hexdigest()}"


def _erase(connection: Connection, where: str, value: int) -> None:
    """Erase the secrets of answers, so that the file does not hold their bytes any more."""
    if connection.one(f"SELECT 1 FROM secrets WHERE {where}", (value,)) is not None:
        with connection.erasing():
            connection.run(f"DELETE FROM secrets WHERE {where}", (value,))


def erase_all(connection: Connection, number: int) -> None:
    """Erase the secrets in the answers to a task's questions, and to those of the call it came from."""
    _erase(
        connection,
        "question IN (SELECT questions.id FROM questions JOIN tasks ON tasks.number = questions.task "
        "WHERE ? IN (tasks.number, tasks.became))",
        number,
    )


def is_free(question: QuestionRecord, owner: str, dead: Callable[[str], bool]) -> bool:
    """Say whether *owner* may take the answer: nobody has it, or another program that is dead."""
    if question.state == "queued":
        return True
    if question.state != "sent" or question.owner == owner:
        return False
    return question.owner is None or dead(question.owner)


def send(connection: Connection, question: QuestionRecord, owner: str, now: int) -> NewEvent:
    """Mark an answer as being sent by *owner*; returns the fact."""
    connection.run(
        "UPDATE questions SET state = 'sent', owner = ?, sent_at = ?, attempts = attempts + 1 WHERE id = ?",
        (owner, now, question.id),
    )
    return fact("answer_sent", question, attempt=question.attempts + 1)


def take_back(connection: Connection, question: QuestionRecord) -> NewEvent:
    """Mark a sent answer as not sent after all; returns the fact."""
    connection.run(
        "UPDATE questions SET state = 'queued', owner = NULL, sent_at = NULL WHERE id = ?", (question.id,)
    )
    return fact("answer_released", question)


def change(connection: Connection, stored: QuestionRecord, wanted: QuestionChange, now: int) -> bool:
    """Change a question's state or marks; returns whether more than a poll's count changed.

    Raises `StorageError` for a change that no state machine of ours makes: sending without a claim, or
    delivering where no answer was given.
    """
    values: dict[str, object] = {
        name: value
        for name in ("fault", "refusal", "still_asked")
        if (value := getattr(wanted, name)) is not None and value != getattr(stored, name)
    }
    is_new = bool(values.keys() - {"still_asked"})
    if wanted.state != stored.state:
        values = {**_moved(stored, wanted.state, now), **values}
        is_new = True
    if values:
        connection.run(
            f"UPDATE questions SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?",
            (*values.values(), stored.id),
        )
        if wanted.state in ("open", "refused", "withdrawn") and stored.state != wanted.state:
            # What was typed comes back with the question, unless something newer was typed since.
            connection.run(
                "UPDATE questions SET draft_json = coalesce(draft_json, typed_json) WHERE id = ?",
                (stored.id,),
            )
        if wanted.state not in _IN_THE_OUTBOX:
            _erase(connection, "question = ?", stored.id)
    return is_new


def _moved(stored: QuestionRecord, state: QuestionState, now: int) -> dict[str, object]:
    if state == "sent":
        raise StorageError(f"the answer to {stored.key!r} can be sent through a claim alone")
    if state in _NEED_AN_ANSWER and stored.response_json is None:
        raise StorageError(f"the question {stored.key!r} has no answer, so it can't be {state}")
    if state == "queued" and stored.withheld and stored.state != "sent":
        raise StorageError(f"the answer to {stored.key!r} held secrets, which are gone, so it can't be sent")
    values: dict[str, object] = {"state": state, "owner": None}
    match state:
        case "open" | "refused":
            values |= _REOPENED
        case "queued":
            values |= _REOPENED | {"queued_at": now, "sent_at": None}
        case "acknowledged":
            values |= {"acknowledged_at": now, "closed_at": None}
        case "settled" | "withdrawn":
            values |= {"closed_at": now}
    return values


def close_all(connection: Connection, number: int, now: int) -> None:
    """Close the questions of a call that became a task: nobody can ask them now."""
    connection.run(
        "UPDATE questions SET closed_at = ?, owner = NULL, state = "
        "CASE WHEN state IN ('sent', 'acknowledged') THEN 'settled' ELSE 'withdrawn' END "
        "WHERE task = ? AND state NOT IN ('settled', 'withdrawn')",
        (now, number),
    )
    erase_all(connection, number)
