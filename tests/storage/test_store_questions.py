"""Questions and answers in the store: every state, and what never gets lost on the way."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from fakes.stored import CALL, TASK, Ticking, asked, move, sets, task, writes
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.errors import QuestionClosed, StorageError
from storage.records import (
    OPEN_STATES,
    NewTask,
    QuestionChange,
    QuestionRecord,
    QuestionState,
    Reply,
    TaskKey,
)
from storage.store import Store, StoreReader

ALL_STATES: tuple[QuestionState, ...] = get_args(QuestionState)
RESPONSE = '{"action": "accept", "content": {"replicas": 3, "ratio": 1.50}}'


def nobody_is_dead(owner: str) -> bool:
    return False


def reply(question: QuestionRecord, response: str = RESPONSE) -> Reply:
    return Reply(question.id, question.fingerprint, response)


@pytest.fixture
def question(store: Store, reader: StoreReader) -> QuestionRecord:
    """One open question of a task, with something typed."""
    store.add_task(task(), questions=[asked()])
    question = reader.questions(TASK)[0]
    store.save_draft(question.id, '{"replicas": "3"}')
    return reader.questions(TASK)[0]


def in_state(store: Store, question: QuestionRecord, state: QuestionState) -> QuestionRecord:
    """Bring an open question into *state* on the way a real one takes."""
    if state in ("queued", "sent", "acknowledged", "settled", "refused"):
        store.queue_answers(question.task, [reply(question)], by="me")
    if state in ("sent", "acknowledged", "settled", "refused"):
        assert store.claim([question.id], owner="me", dead=nobody_is_dead) == (question.id,)
    if state in ("acknowledged", "settled"):
        move(store, question, "acknowledged")
    if state in ("settled", "refused", "withdrawn"):
        move(store, question, state)
    reached = store.reader.question(question.id)
    assert reached is not None
    assert reached.state == state
    return reached


def test_an_answer_is_stored_byte_for_byte_with_who_gave_it(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    store.queue_answers(TASK, [reply(question)], by="ada")

    queued = reader.question(question.id)
    assert queued is not None
    assert (queued.state, queued.response_json, queued.answered_by) == ("queued", RESPONSE, "ada")
    assert queued.draft_json is None
    assert store.pending_answers() == [queued]
    event = reader.events(TASK)[-1]
    assert event.kind == "answer_queued"
    assert json.loads(event.data_json) == {
        "key": "approve",
        "question": question.id,
        "by": "ada",
        "fingerprint": "f1",
        "response": RESPONSE,
        "digest": f"sha256:{hashlib.sha256(RESPONSE.encode()).hexdigest()}",
        "request": json.loads(question.request_json),
    }
    assert question.request_json in event.data_json
    assert not queued.withheld
    assert reader.exact_response(question.id) == RESPONSE


def test_several_answers_are_saved_all_or_none(store: Store, reader: StoreReader) -> None:
    store.add_task(task(), questions=[asked("a"), asked("b"), asked("c")])
    first, second, third = reader.questions(TASK)
    move(store, third, "withdrawn")
    before = (reader.questions(TASK), reader.last_seq())

    with pytest.raises(QuestionClosed):
        store.queue_answers(TASK, [reply(first), reply(second), reply(third)], by="me")
    assert (reader.questions(TASK), reader.last_seq()) == before

    store.queue_answers(TASK, [reply(first), reply(second)], by="me")
    assert [one.state for one in reader.questions(TASK)] == ["queued", "queued", "withdrawn"]


@pytest.mark.parametrize("state", ALL_STATES)
def test_only_an_open_question_takes_an_answer(
    store: Store, reader: StoreReader, question: QuestionRecord, state: QuestionState
) -> None:
    there = in_state(store, question, state)
    if state in OPEN_STATES:
        store.queue_answers(TASK, [reply(there)], by="me")
        return
    with pytest.raises(QuestionClosed, match=state):
        store.queue_answers(TASK, [reply(there, '{"action": "decline"}')], by="you")
    assert reader.question(question.id) == there


def test_an_answer_to_another_content_is_refused(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    with pytest.raises(QuestionClosed, match="changed"):
        store.queue_answers(TASK, [Reply(question.id, "other", RESPONSE)], by="me")
    assert reader.question(question.id) == question


def test_the_same_question_is_not_answered_twice_in_one_go(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    with pytest.raises(QuestionClosed):
        store.queue_answers(TASK, [reply(question), reply(question)], by="me")
    assert reader.question(question.id) == question


def test_an_answer_to_another_tasks_question_is_refused(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    other = TaskKey("ci", "other")
    store.add_task(task(other))
    for wrong in (reply(question), Reply(12345, "f1", RESPONSE)):
        with pytest.raises(QuestionClosed):
            store.queue_answers(other, [wrong], by="me")
    assert reader.question(question.id) == question


@pytest.mark.parametrize("state", ALL_STATES)
def test_a_draft_is_kept_only_while_the_question_is_open(
    store: Store, reader: StoreReader, question: QuestionRecord, state: QuestionState
) -> None:
    there = in_state(store, question, state)
    seq = reader.last_seq()
    kept = store.save_draft(question.id, '{"replicas": "4"}')
    assert kept == (state in OPEN_STATES)
    after = reader.question(question.id)
    assert after is not None
    assert after.draft_json == ('{"replicas": "4"}' if kept else there.draft_json)
    assert reader.last_seq() == seq


def test_a_draft_can_be_cleared_and_an_unknown_question_keeps_none(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    assert store.save_draft(question.id, None)
    assert reader.questions(TASK)[0].draft_json is None
    assert not store.save_draft(999, "{}")


@pytest.mark.parametrize("state", ["open", "refused", "withdrawn"])
def test_what_was_typed_comes_back_when_an_answer_was_in_vain(
    store: Store, question: QuestionRecord, state: QuestionState
) -> None:
    sent = in_state(store, question, "sent")
    assert (sent.draft_json, sent.owner, sent.attempts) == (None, "me", 1)

    back = move(store, sent, state, refusal="too many")

    assert back.draft_json == question.draft_json
    assert back.response_json == RESPONSE
    assert (back.owner, back.refusal) == (None, "too many")
    assert (back.closed_at is not None) == (state == "withdrawn")


def test_a_question_that_vanishes_keeps_its_draft_and_has_it_when_it_returns(
    store: Store, question: QuestionRecord
) -> None:
    gone = move(store, question, "withdrawn")
    assert gone.draft_json == question.draft_json
    again = move(store, gone, "open")
    assert (again.draft_json, again.closed_at, again.asked_at) == (
        *(question.draft_json, None),
        question.asked_at,
    )


def test_a_new_answer_clears_the_old_refusal(store: Store, question: QuestionRecord) -> None:
    in_state(store, question, "sent")
    refused = move(store, question, "refused", refusal="no")
    assert refused.is_open
    again = in_state(store, refused, "sent")
    assert (again.refusal, again.attempts) == (None, 2)


def test_each_state_notes_its_time_and_the_owner_goes_with_the_claim(
    store: Store, question: QuestionRecord
) -> None:
    sent = in_state(store, question, "sent")
    acknowledged = move(store, sent, "acknowledged")
    settled = move(store, acknowledged, "settled")
    times = (settled.asked_at, settled.queued_at, settled.sent_at, settled.acknowledged_at, settled.closed_at)
    assert all(time is not None for time in times)
    assert list(times) == sorted(times, key=lambda time: time or 0)
    assert (sent.owner, acknowledged.owner, settled.owner) == ("me", None, None)
    back = move(store, settled, "acknowledged", fault="asked again")
    assert (back.closed_at, back.fault) == (None, "asked again")
    queued = move(store, back, "queued")
    assert (queued.acknowledged_at, queued.sent_at, queued.response_json) == (None, None, RESPONSE)
    assert store.claim([queued.id], owner="you", dead=nobody_is_dead) == (queued.id,)


def test_an_answer_is_sent_through_a_claim_alone(store: Store, question: QuestionRecord) -> None:
    queued = in_state(store, question, "queued")
    with pytest.raises(StorageError, match="claim"):
        move(store, queued, "sent")
    assert store.reader.question(question.id) == queued


@pytest.mark.parametrize("state", ["queued", "acknowledged", "settled"])
def test_what_was_never_answered_is_not_delivered(
    store: Store, question: QuestionRecord, state: QuestionState
) -> None:
    with pytest.raises(StorageError, match="no answer"):
        move(store, question, state)
    assert store.reader.question(question.id) == question


def test_marks_change_without_the_state_and_a_count_of_looks_is_no_fact(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    acknowledged = in_state(store, question, "acknowledged")
    seq, changed_at = reader.last_seq(), reader.rows([TASK])[TASK].changed_at

    counted = move(store, acknowledged, "acknowledged", still_asked=3)
    assert (counted.still_asked, counted.acknowledged_at) == (3, acknowledged.acknowledged_at)
    assert (reader.last_seq(), reader.rows([TASK])[TASK].changed_at) == (seq, changed_at)

    marked = move(store, counted, "acknowledged", fault="lost it")
    assert (marked.still_asked, marked.fault) == (3, "lost it")
    assert reader.last_seq() == seq + 1


def test_a_claim_takes_what_is_queued_and_what_a_dead_program_held(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    assert store.claim([question.id, 999], owner="a", dead=nobody_is_dead) == ()
    store.queue_answers(TASK, [reply(question)], by="me")
    assert store.claim([question.id, question.id], owner="a", dead=nobody_is_dead) == (question.id,)
    assert store.claim([question.id], owner="a", dead=lambda owner: True) == ()
    assert store.claim([question.id], owner="b", dead=nobody_is_dead) == ()
    assert store.claim([question.id], owner="b", dead=lambda owner: owner == "a") == (question.id,)
    held = reader.question(question.id)
    assert held is not None
    assert (held.owner, held.attempts) == ("b", 2)
    move(store, held, "acknowledged")
    assert store.claim([question.id], owner="c", dead=lambda owner: True) == ()


def test_only_the_holder_can_put_an_answer_back(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    sent = in_state(store, question, "sent")
    store.release([question.id], "you")
    assert reader.question(question.id) == sent
    store.release([question.id], "me")
    back = reader.question(question.id)
    assert back is not None
    assert (back.state, back.owner, back.sent_at) == ("queued", None, None)
    assert [event.kind for event in reader.events(TASK)][-3:] == [
        "answer_queued",
        "answer_sent",
        "answer_released",
    ]


def test_questions_stay_in_the_order_in_which_they_were_first_seen(store: Store, reader: StoreReader) -> None:
    store.add_task(task(), questions=[asked("b"), asked("a")])
    store.change_task(TASK, writes(new_questions=(asked("c"), asked("a", "f2", fault="used again"))))
    found = reader.questions(TASK)
    assert [(one.key, one.fingerprint, one.position) for one in found] == [
        ("b", "f1", 0),
        ("a", "f1", 1),
        ("c", "f1", 2),
        ("a", "f2", 3),
    ]
    assert found[3].fault == "used again"


def test_a_calls_questions_keep_their_round(store: Store, reader: StoreReader) -> None:
    store.add_task(NewTask(CALL, kind="call"), questions=[asked(round=1)])
    assert (reader.questions(CALL)[0].round, reader.keys("needs-you")) == (1, [CALL])


def test_answers_wait_in_the_order_in_which_they_were_given(store: Store, reader: StoreReader) -> None:
    store.add_task(task(), questions=[asked("a"), asked("b")])
    first, second = reader.questions(TASK)
    store.queue_answers(TASK, [reply(second)], by="me")
    store.queue_answers(TASK, [reply(first)], by="me")
    assert [one.key for one in store.pending_answers()] == ["b", "a"]


def test_the_list_of_active_tasks_has_archived_ones_but_no_calls(store: Store) -> None:
    keys = [TaskKey("ci", name) for name in ("a", "b", "c")]
    for key in keys:
        store.add_task(task(key))
    store.add_task(NewTask(CALL, kind="call"))
    store.archive(keys[0])
    store.change_task(keys[1], sets(tracking="ended"))
    assert [row.key for row in store.active_tasks()] == [keys[0], keys[2]]


@contextmanager
def opened() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "inbox.db", clock=Ticking())
        try:
            yield store
        finally:
            store.close()


class Life(RuleBasedStateMachine):
    """Any order of verbs: the counts stay true, an answer is never lost, and one program at most holds it."""

    @initialize()
    def begin(self) -> None:
        self._opened = opened()
        self.store = self._opened.__enter__()
        self.store.add_task(task())
        self.answers: dict[int, str] = {}
        self.exact: dict[int, str] = {}
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "_opened"):
            self._opened.__exit__(None, None, None)

    def pick(self, data: st.DataObject) -> QuestionRecord:
        return data.draw(st.sampled_from(self.store.reader.questions(TASK)))

    @rule(key=st.sampled_from("ab"), fingerprint=st.sampled_from("xy"))
    def ask(self, key: str, fingerprint: str) -> None:
        self.store.change_task(TASK, writes(new_questions=(asked(key, fingerprint),)))

    @precondition(lambda self: self.store.reader.questions(TASK))
    @rule(data=st.data(), stale=st.booleans(), secret=st.booleans())
    def answer(self, data: st.DataObject, stale: bool, secret: bool) -> None:
        question = self.pick(data)
        self.count += 1
        response = f'{{"n": {self.count}}}'
        fingerprint = "stale" if stale else question.fingerprint
        try:
            given = Reply(question.id, fingerprint, response, "kept" if secret else None)
            self.store.queue_answers(TASK, [given], by="me")
        except QuestionClosed:
            assert stale or not question.is_open
        else:
            assert not stale
            assert question.is_open
            self.answers[question.id] = "kept" if secret else response
            self.exact[question.id] = response

    @precondition(lambda self: self.store.reader.questions(TASK))
    @rule(data=st.data(), owner=st.sampled_from("pq"), dead=st.sampled_from(["", "p", "q"]))
    def claim(self, data: st.DataObject, owner: str, dead: str) -> None:
        question = self.pick(data)
        taken = self.store.claim([question.id], owner=owner, dead=lambda other: other == dead)
        free = question.state == "queued" or (
            question.state == "sent" and question.owner == dead and dead != owner
        )
        assert bool(taken) == free

    @precondition(lambda self: self.store.reader.questions(TASK))
    @rule(data=st.data(), owner=st.sampled_from("pq"))
    def release(self, data: st.DataObject, owner: str) -> None:
        self.store.release([self.pick(data).id], owner)

    @precondition(lambda self: self.store.reader.questions(TASK))
    @rule(data=st.data(), state=st.sampled_from(ALL_STATES))
    def move(self, data: st.DataObject, state: QuestionState) -> None:
        question = self.pick(data)
        change: Any = writes(question_changes=(QuestionChange(question.id, state),))
        unanswered = state in ("queued", "acknowledged", "settled") and question.id not in self.answers
        gone = state == "queued" and question.withheld and question.state not in ("queued", "sent")
        if state != question.state and (state == "sent" or unanswered or gone):
            with pytest.raises(StorageError):
                self.store.change_task(TASK, change)
        else:
            self.store.change_task(TASK, change)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "store"):
            return
        questions = self.store.reader.questions(TASK)
        row = self.store.reader.rows([TASK])[TASK]
        assert row.open_questions == sum(one.is_open for one in questions)
        assert row.section == ("needs-you" if row.open_questions else "running")
        assert self.store.reader.counts()[row.section] == 1
        for one in questions:
            assert one.response_json == self.answers.get(one.id)
            held = not one.withheld or one.state in ("queued", "sent")
            assert self.store.reader.exact_response(one.id) == (self.exact.get(one.id) if held else None)
            assert (one.owner is not None) == (one.state == "sent")
            assert (one.closed_at is not None) == (one.state in ("settled", "withdrawn"))
        apart = {one.id for one in questions if one.withheld and one.state in ("queued", "sent")}
        stored = self.store._connection.all("SELECT question FROM secrets")
        assert {question for (question,) in stored} == apart
        pending = {one.id for one in questions if one.state in ("queued", "sent")}
        assert {one.id for one in self.store.pending_answers()} == pending


Life.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLife = Life.TestCase
