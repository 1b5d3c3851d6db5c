"""A client that nobody here wrote, unchanged, against the service."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def fastmcp() -> Any:
    """The library, loaded only when these tests run: it takes seconds."""
    pytest.importorskip("fastmcp_tasks")  # importing it is what teaches the client tasks
    return pytest.importorskip("fastmcp")


class Person:
    """Answers forms with the same content each time, and remembers what was asked."""

    def __init__(self, **content: Any) -> None:
        self.content = content
        self.asked: list[str] = []

    async def __call__(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        """Answer one question."""
        self.asked.append(message)
        return self.content


@pytest.mark.parametrize("approved", [True, False])
async def test_it_drives_a_report_to_its_end_and_answers_its_question(fastmcp, demo, approved):
    person = Person(approved=approved)
    async with fastmcp.Client(demo.url, elicitation_handler=person) as client:
        result = await client.call_tool("generate_report", {"size": "small"})
    assert result.structured_content == {"size": "small", "approved": approved}
    assert len(person.asked) == 1
    # It was a task, and not an immediate result: the library polled it and answered it.
    with sqlite3.connect(demo.data / "tasks.db") as db:
        assert db.execute("SELECT tool, status FROM task").fetchall() == [("generate_report", "completed")]
        ((request,),) = db.execute("SELECT request FROM question").fetchall()
    assert json.loads(request)["params"]["message"] == person.asked[0]


async def test_it_answers_what_is_asked_before_a_task_and_then_follows_the_task(fastmcp, demo):
    person = Person(name="Ada")
    async with fastmcp.Client(demo.url, elicitation_handler=person) as client:
        result = await client.call_tool("ask_first", {})
    assert result.structured_content == {"name": "Ada"}
    assert len(person.asked) == 1


async def test_it_tells_failures_from_error_results(fastmcp, demo):
    async with fastmcp.Client(demo.url) as client:
        with pytest.raises(fastmcp.exceptions.ToolError, match="rate limited"):
            await client.call_tool("flaky_job", {})
        result = await client.call_tool("broken_tool", {}, raise_on_error=False)
        assert result.is_error
        assert "disk" in result.content[0].text
        assert (await client.call_tool("echo", {"text": "hello"})).structured_content == {"text": "hello"}
