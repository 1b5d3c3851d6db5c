"""Whose a task is, and that nobody else learns of it (the Tasks page, "Security Considerations")."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fakes.demo_wire import accept

from app.demo_server.errors import INVALID_PARAMS, RpcError, ServeError
from app.demo_server.owners import LOCAL, Caller, Owners, exposure, load
from app.demo_server.request_state import Seal
from app.demo_server.service import Client, Service
from app.demo_server.store import Store
from app.demo_server.tools import tools_named
from app.demo_server.worker import Worker

ADA = Caller("acme", "ada")
AGENT = Caller("acme", "agent")
EVE = Caller("evil", "eve")
TOKENS = {"token-of-ada-0001": ADA, "token-of-agent-01": AGENT, "token-of-eve-0001": EVE}


def written(path: Path, entries: Any) -> Path:
    path.write_text(entries if isinstance(entries, str) else json.dumps(entries))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(("token", "caller"), TOKENS.items())
def test_a_token_stands_for_a_principal_of_a_tenant(tmp_path, token, caller):
    entries = {t: {"tenant": c.tenant, "principal": c.principal} for t, c in TOKENS.items()}
    owners = load(written(tmp_path / "tokens.json", entries))
    for header in (f"Bearer {token}", f"bearer   {token}", f" BEARER {token} "):
        assert owners.caller_of(header) == caller


@pytest.mark.rule("authorization.tokens-validated", "auth-security.privileges")
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "token-of-ada-0001",
        "Basic token-of-ada-0001",
        "Bearer token-of-ada-0002",
        "Bearer token-of-ada-000",
        "Bearer token-of-ada-00011",
        "Bearer Token-of-ada-0001",
        "Bearer token-of-ada-0001, Bearer token-of-eve-0001",
        "Bearer token-of-ada-0001 token-of-ada-0001",
        "Bearer ünïcode-token-000",
        "Bearer token-of-ada-0001\x00",
    ],
)
def test_whoever_shows_no_known_token_is_nobody(header):
    assert Owners(TOKENS).caller_of(header) is None


@pytest.mark.parametrize("header", [None, "Bearer token-of-ada-0001", "nonsense"])
def test_without_tokens_everybody_is_the_local_tenant(header):
    assert Owners().caller_of(header) == LOCAL


WHO = {"tenant": "acme", "principal": "ada"}
SECRET = "a-secret-of-the-file"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("", "isn't JSON"),
        ("{", "isn't JSON"),
        ("[" * 100_000, "isn't JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "isn't JSON"),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}', "twice"),
        ([], "must be an object"),
        ({}, "must be an object"),
        ("x" * (1024 * 1024 + 1), "larger"),
        ({"a-token-that-is-fine": WHO, "too-short-secret"[:15]: WHO}, "entry 2 .* at least 16"),
        ({"a secret with spaces": WHO}, "entry 1"),
        ({"a-secret=with=equals": WHO}, "entry 1"),
        ({SECRET: "acme"}, "a tenant and a principal"),
        ({SECRET: {"tenant": "acme"}}, "a tenant and a principal"),
        ({SECRET: WHO | {"role": "admin"}}, "nothing else"),
        ({SECRET: WHO | {"tenant": ""}}, "tenant must be a name"),
        ({SECRET: WHO | {"principal": "a\nb"}}, "principal must be a name"),
        ({SECRET: WHO | {"principal": "a" * 201}}, "principal must be a name"),
        ({SECRET: WHO | {"tenant": None}}, "tenant must be a name"),
    ],
)
def test_a_file_of_tokens_that_is_not_in_order_is_refused_without_telling_a_token(tmp_path, entries, words):
    path = written(tmp_path / "tokens.json", entries)
    with pytest.raises(ServeError, match=words) as refused:
        load(path)
    assert str(path) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_file_of_tokens_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ServeError, match=r"none\.json can't be read: No such file"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_file_of_tokens_that_others_can_read_is_told_of(tmp_path, mode, told):
    path = written(tmp_path / "tokens.json", {SECRET: WHO})
    path.chmod(mode)
    warning = exposure(path)
    assert (warning is not None and "chmod 600" in warning) is told
    assert exposure(tmp_path / "none.json") is None


class House:
    """A service with its worker, called by several tenants."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000_000
        self.path = folder / "tasks.db"
        self.store = Store.open(self.path)
        tools, names = tools_named("demo"), iter(range(10_000))

        def token() -> str:
            return f"{next(names):032x}"

        self.worker = Worker(self.store, tools, step_ms=0, now_ms=lambda: self.now, token=token)
        self.service = Service(
            self.store,
            tools,
            Seal(b"k" * 32),
            poll_ms=10,
            now_ms=lambda: self.now,
            token=token,
            wake=lambda: None,
        )

    def ask(self, caller: Caller, method: str, **params: Any) -> dict[str, Any]:
        client = Client(tasks=True, modes=frozenset({"form", "url"}), caller=caller)
        result = self.service.verbs[method](params, client)
        assert isinstance(result, dict)
        return result

    def refusal(self, caller: Caller, method: str, **params: Any) -> tuple[Any, ...]:
        with pytest.raises(RpcError) as failure:
            self.ask(caller, method, **params)
        return failure.value.code, failure.value.message, failure.value.data, failure.value.http_status

    async def settle(self) -> None:
        while await self.worker.step() is not None:
            pass


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.rule("tasks.each-request-authorised")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_another_tenants_task_answers_like_one_that_never_was_and_is_left_alone(house, method):
    task_id = house.ask(ADA, "tools/call", name="two_questions")["taskId"]
    await house.settle()
    before = house.ask(ADA, "tasks/get", taskId=task_id)
    answer = {"inputResponses": {"colour": accept(colour="red")}}
    never_was = house.refusal(EVE, method, taskId="tsk_never_was", **answer)
    assert house.refusal(EVE, method, taskId=task_id, **answer) == never_was
    assert never_was == (INVALID_PARAMS, "task not found", None, 200)
    await house.settle()
    assert house.ask(ADA, "tasks/get", taskId=task_id) == before


async def test_a_task_of_another_tenant_is_looked_for_by_the_same_statements_as_one_that_never_was(house):
    task_id = house.ask(ADA, "tools/call", name="flaky_job")["taskId"]
    statements: list[str] = []
    house.store._db.set_trace_callback(statements.append)
    paths = []
    for wanted in (task_id, "x" * len(task_id)):
        house.refusal(EVE, "tasks/get", taskId=wanted)
        paths.append([statement.replace(wanted, "?") for statement in statements])
        statements.clear()
    assert paths[0] == paths[1]
    assert len(paths[0]) == 4  # a transaction around the lookup, and one look at what has expired
    assert all("'evil'" in statement for statement in paths[0] if "WHERE" in statement)


@pytest.mark.rule("elicitation.identity-verified")
async def test_whoever_belongs_to_the_tenant_may_answer_and_it_is_recorded_who_did(house):
    task_id = house.ask(AGENT, "tools/call", name="generate_report", arguments={"size": "small"})["taskId"]
    await house.settle()
    house.ask(ADA, "tasks/update", taskId=task_id, inputResponses={"approve_outline": accept(approved=True)})
    await house.settle()
    assert house.ask(AGENT, "tasks/get", taskId=task_id)["status"] == "completed"
    with sqlite3.connect(house.path) as db:
        assert db.execute("SELECT owner, caller FROM task").fetchall() == [("acme", "agent")]
        assert db.execute("SELECT answered_by FROM question").fetchall() == [("ada",)]


@pytest.mark.rule("mrtr.state-bound", "elicitation.bound-to-user")
@pytest.mark.parametrize("other", [EVE, AGENT])
def test_what_was_asked_before_a_task_is_answered_by_the_very_caller_alone(house, other):
    state = house.ask(ADA, "tools/call", name="ask_first")["requestState"]
    answered = {"name": "ask_first", "requestState": state, "inputResponses": {"who": accept(name="Ada")}}
    refused = house.refusal(other, "tools/call", **answered)
    assert refused[:2] == (INVALID_PARAMS, "requestState belongs to another call")
    assert house.ask(ADA, "tools/call", **answered)["resultType"] == "task"


def test_changes_are_told_to_their_owner_alone(house):
    mine = house.ask(ADA, "tools/call", name="flaky_job")["taskId"]
    theirs = house.ask(EVE, "tools/call", name="flaky_job")["taskId"]
    ids = [mine, theirs, "tsk_never_was"]
    assert [task.id for task in house.store.changed_since("acme", 0, ids)] == [mine]
    assert [task.id for task in house.store.changed_since("evil", 0, ids)] == [theirs]
    assert house.store.changed_since("local", 0, ids) == []
