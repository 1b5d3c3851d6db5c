"""Which question an answer on the command line is for: one that somebody can have read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.cli.exits import CommandError, Exit, usage
from app.cli.output import clock_words, readable_json, words
from app.cli.parts import Parts, load, run_async
from app.cli.showing import question_lines
from app.engine.commands import is_refused_here
from app.text import inert_line
from storage.records import QuestionRecord, Reader, TaskKey

_SHORTEST: Final = 8
"""Characters of a fingerprint that name it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The question that is meant."""

    question: QuestionRecord
    is_news: bool = False
    """Whether this very command has brought it: nobody can have read it before."""


def question_meant(
    parts: Parts, reader: Reader, task: TaskKey, key: str | None, fingerprint: str | None, *, may_look: bool
) -> QuestionRecord:
    """Return the question of *task* that is to be answered.

    *fingerprint* is that of the question that was read, or a beginning of it. *may_look*: the server may be
    asked, once, where we know of none. Raises `CommandError`: as `find_question` does; input required, after
    showing the question, where nobody can have read it yet or its key has stood for another one, too.
    """
    if fingerprint is not None and len(fingerprint) < _SHORTEST:
        raise usage(f"--fingerprint: give at least {_SHORTEST} characters of it.")
    found = find_question(parts, reader, task, key, fingerprint, may_look=may_look)
    question, name = found.question, inert_line(str(task))
    if fingerprint is not None:
        return question
    stored = reader.questions(task)
    if any(q.key == question.key and q.fingerprint != question.fingerprint for q in stored):
        why = (
            f"{name} has asked something else under the key {inert_line(question.key)}, so nothing was sent. "
            f"Read this one; with --fingerprint {_short(question, stored)} it is the one that is answered."
        )
    elif found.is_news:
        why = f"{name} has only now been found to ask this, so nothing was sent. Read it, and answer again."
    else:
        return question
    words("\n".join(question_lines(question, parts.asker(task.server))))
    raise CommandError(Exit.INPUT_REQUIRED, why)


def find_question(
    parts: Parts,
    reader: Reader,
    task: TaskKey,
    key: str | None,
    fingerprint: str | None = None,
    *,
    may_look: bool,
) -> Found:
    """Return the open question that is meant; the server is asked once when we know of none. One that was
    refused here is meant where its key or *fingerprint* (or a beginning of that) says so.

    Raises `CommandError`: unknown when there is no such open question, usage when several are open.
    """
    questions = reader.questions(task)
    before = {q.id for q in questions}
    record = load(reader, task)
    known = named_by(questions, key)
    unseen = not any(q.is_open for q in known) and (key is None or not known)
    if may_look and unseen and record.kind == "task" and record.state.tracking == "active":
        run_async(_look(parts, task))
        questions = reader.questions(task)
        known = named_by(questions, key)
    name = inert_line(str(task))
    if fingerprint is not None:
        known = _read_before(known, fingerprint.lower(), name)
    open_ones = [q for q in known if q.is_open]
    if len({q.key for q in open_ones}) == 1:
        return Found(open_ones[-1], is_news=open_ones[-1].id not in before)
    refused = [q for q in known if is_refused_here(q)]
    if (key, fingerprint) != (None, None) and not open_ones and len(refused) == 1:
        return Found(refused[0])
    if open_ones:
        keys = "\n".join(f"  {inert_line(q.key)}" for q in open_ones)
        named = "" if key is None else f" that {inert_line(key)!r} fits"
        raise usage(f"{name} has {len(open_ones)} open questions{named}; say which:\n{keys}")
    if key is not None and not known:
        listed = ", ".join(inert_line(q.key) for q in questions if q.is_open) or "none"
        raise CommandError(Exit.UNKNOWN, f"{name} has no question {inert_line(key)!r}; open: {listed}.")
    if not known:
        raise CommandError(Exit.UNKNOWN, f"{name} has no open question.")
    raise CommandError(Exit.UNKNOWN, "\n".join(f"{name}: {_became(q)}" for q in known))


def _read_before(known: list[QuestionRecord], fingerprint: str, name: str) -> list[QuestionRecord]:
    """Return those of the *known* questions that were read, by the (beginning of a) *fingerprint*.

    Raises `CommandError`: usage where it fits different questions; unknown where only others can be answered.
    """
    fitting = [q for q in known if q.fingerprint.startswith(fingerprint)]
    if len({q.fingerprint for q in fitting}) > 1:
        raise usage(f"--fingerprint: it fits several questions of {name}; give more characters of it.")
    open_ones = [q for q in known if q.is_open]
    if open_ones and not any(q.is_open or is_refused_here(q) for q in fitting):
        listed = ", ".join(f"{inert_line(q.fingerprint)} for {inert_line(q.key)}" for q in open_ones)
        raise CommandError(
            Exit.UNKNOWN,
            f"{name}: what is asked now is not what you read; nothing was sent. Its fingerprint is {listed}.",
        )
    return fitting or known


def _short(question: QuestionRecord, stored: Sequence[QuestionRecord]) -> str:
    """Return as much of a question's fingerprint as tells it from those of all *stored* ones."""
    whole = question.fingerprint
    others = {q.fingerprint for q in stored} - {whole}
    lengths = range(_SHORTEST, len(whole))
    fits = (n for n in lengths if not any(other.startswith(whole[:n]) for other in others))
    return inert_line(whole[: next(fits, len(whole))])


def print_instead(parts: Parts, reader: Reader, meant: QuestionRecord) -> None:
    """Print what is asked now in the place of *meant*, which can't be answered any more; nothing where
    nothing is.

    Whoever repeats their command then has been shown what it is for.
    """
    task = meant.task
    others = [q for q in reader.questions(task) if q.is_open and q.id != meant.id]
    if not others:
        return
    asker = parts.asker(task.server)
    words(
        f"{inert_line(str(task))} asks something else now; nothing was sent to it. Read it before you answer:"
    )
    for question in others:
        words("\n".join(question_lines(question, asker)))


def named_by(questions: Sequence[QuestionRecord], key: str | None) -> list[QuestionRecord]:
    """Return the questions that *key* names: exactly, else by a beginning or an ending; ``None``: all.

    A key that was shown abbreviated (``begin…end``) is understood, too.
    """
    if not key:
        return [q for q in questions if key is None or q.key == key]
    if exact := [q for q in questions if q.key == key]:
        return exact
    head, cut, tail = key.partition("…")
    found = [
        q
        for q in questions
        if q.key.startswith(key)
        or q.key.endswith(key)
        or (cut and head and tail and q.key.startswith(head) and q.key.endswith(tail))
    ]
    return [q for q in found if q.is_open] or found


async def _look(parts: Parts, task: TaskKey) -> None:
    async with parts.engine() as engine:
        await engine.refresh(task)


def _became(question: QuestionRecord) -> str:
    """Say what became of a question that is not open any more."""
    key = inert_line(question.key)
    if question.state == "withdrawn":
        return f"{key} is not asked any more (withdrawn {clock_words(question.closed_at)})."
    state = {
        "queued": "saved, and not sent yet",
        "sent": "sent, and not acknowledged yet",
        "acknowledged": f"acknowledged {clock_words(question.acknowledged_at)}",
        "settled": f"settled {clock_words(question.closed_at)}",
    }.get(question.state, question.state)
    given = readable_json(question.response_json or "null")
    shown = given if len(given) <= 200 else f"{given[:200]}…"
    by = f" by {inert_line(question.answered_by)}" if question.answered_by else ""
    return f"{key} was answered{by} already: {shown} ({state})."
