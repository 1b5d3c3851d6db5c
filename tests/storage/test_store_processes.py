"""Several real programs on one database: an answer goes to one of them, and SIGKILL loses nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from fakes.stored import TASK, Ticking, asked, task

from storage.presence import Presence
from storage.records import Reply, TaskKey
from storage.store import Store, StoreReader

ROUNDS = 200

CLAIM = """
import sys, pathlib
from storage.store import Store
store = Store.open(pathlib.Path(sys.argv[1]), clock=lambda: 1)
owner, ids = sys.argv[2], [int(one) for one in sys.argv[3].split(",")]
print("ready", flush=True)
sys.stdin.readline()
for one in ids:
    if store.claim([one], owner=owner, dead=lambda other: False):
        print(one, flush=True)
"""

WRITE = """
import sys, pathlib
from storage.store import Store
from storage.records import NewTask, NewQuestion, Reply, TaskKey, TaskState, TaskWrites
store = Store.open(pathlib.Path(sys.argv[1]), clock=lambda: 1)
for n in range(1_000_000):
    key = TaskKey("ci", f"t{n}")
    store.add_task(NewTask(key), questions=[NewQuestion(name, "f", "m", "{}") for name in "ab"])
    print("added", n, flush=True)
    ids = [question.id for question in store.reader.questions(key)]
    store.queue_answers(key, [Reply(one, "f", str(n)) for one in ids], by="me")
    print("queued", n, flush=True)
    store.change_task(key, lambda stored, questions: TaskWrites(state=TaskState(status=f"s{n}")))
    print("changed", n, flush=True)
    store.claim(ids, owner="me", dead=lambda other: False)
    print("claimed", n, flush=True)
"""

HOLD = """
import sys, pathlib, time
from storage.presence import Presence
from storage.store import Store
presence = Presence.enter(pathlib.Path(sys.argv[2]))
store = Store.open(pathlib.Path(sys.argv[1]), clock=lambda: 1)
taken = store.claim([int(sys.argv[3])], owner=presence.owner, dead=presence.is_dead)
print(presence.owner, len(taken), flush=True)
sys.stdin.readline()
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_programs_never_both_get_an_answer(store: Store, reader: StoreReader, path: Path) -> None:
    store.add_task(task(), questions=[asked(f"q{n}") for n in range(ROUNDS)])
    questions = reader.questions(TASK)
    store.queue_answers(TASK, [Reply(one.id, one.fingerprint, "{}") for one in questions], by="me")
    ids = ",".join(str(one.id) for one in questions)
    programs = {owner: start(CLAIM, str(path), owner, ids) for owner in ("first", "second")}
    for program in programs.values():
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs.values():
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    taken = {owner: program.communicate(timeout=60)[0].split() for owner, program in programs.items()}

    assert sorted(int(one) for won in taken.values() for one in won) == [one.id for one in questions]
    assert all(program.returncode == 0 for program in programs.values())
    for one in reader.questions(TASK):
        assert (one.state, one.attempts) == ("sent", 1)
        assert str(one.id) in taken[one.owner or ""]


def test_killing_a_writer_loses_nothing_that_had_returned_and_leaves_no_half(
    path: Path, store: Store, reader: StoreReader
) -> None:
    for kill_after in (1, 6, 23, 40):
        writer = start(WRITE, str(path))
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(kill_after)]
        writer.send_signal(signal.SIGKILL)
        said += writer.communicate(timeout=30)[0].splitlines(keepends=True)
        done = [line.split() for line in said if line.endswith("\n")]
        for verb, number in done:
            key = TaskKey("ci", f"t{number}")
            record, questions = reader.task(key), reader.questions(key)
            assert record is not None
            states = {question.state for question in questions}
            assert (len(questions), len(states)) == (2, 1), "both questions moved, or neither"
            if verb != "added":
                assert {question.response_json for question in questions} == {number}
            if verb == "changed":
                assert record.state.status == f"s{number}"
            if verb == "claimed":
                assert states == {"sent"}
        for row in reader.list_rows():
            assert len(reader.questions(row.key)) == 2
        assert store._connection.value("PRAGMA integrity_check") == "ok"
        for row in reader.list_rows():
            store.forget(row.key)


def test_an_answer_held_by_a_killed_program_can_be_taken_at_once(
    path: Path, store: Store, reader: StoreReader, tmp_path: Path
) -> None:
    store.add_task(task(), questions=[asked()])
    question = reader.questions(TASK)[0]
    store.queue_answers(TASK, [Reply(question.id, "f1", '{"n": 1.0}')], by="me")
    folder = tmp_path / "programs"
    holder = start(HOLD, str(path), str(folder), str(question.id))
    assert holder.stdout is not None
    owner, taken = holder.stdout.readline().split()
    assert taken == "1"
    with Presence.enter(folder) as presence:
        assert store.claim([question.id], owner=presence.owner, dead=presence.is_dead) == ()
        holder.kill()
        holder.communicate(timeout=30)
        assert store.claim([question.id], owner=presence.owner, dead=presence.is_dead) == (question.id,)
        held = reader.question(question.id)
        assert held is not None
        assert (held.owner, held.attempts, held.response_json) == (presence.owner, 2, '{"n": 1.0}')
        assert owner != presence.owner


def test_two_programs_can_make_the_database_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "new" / "inbox.db"
    script = """
import sys, pathlib, json
from storage.store import Store
sys.stdin.readline()
store = Store.open(pathlib.Path(sys.argv[1]), clock=lambda: 1)
print(json.dumps(store._connection.all("SELECT number FROM migrations")))
"""
    programs = [start(script, str(path)) for _ in range(4)]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    said = [json.loads(program.communicate(timeout=60)[0]) for program in programs]
    store = Store.open(path, clock=Ticking())
    expected = [list(row) for row in store._connection.all("SELECT number FROM migrations")]
    store.close()
    assert said == [expected] * 4
