"""A server that poisons every string the protocol lets a server choose, in a thread of its own.

Each place that a string can stand in has its own marker, `mark(place)`; the string there is that marker and
then everything a terminal, a markup language or a layout might act on, each place beginning with another
poison, since what is drawn may be cut short. So a test can say which strings it has really seen.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, Self

from fakes.mcp_server import Exchange, Reply, error, message, notification, response, result, stream
from fakes.task_script import TaskScript, handle, task

Json = dict[str, Any]

CONTROLS: Final = (
    "\x1b[31;7777m",  # colours, with a number that no program of ours writes
    "\x1b[2J\x1b[7777;7777H",  # erase, move the cursor
    "\x1b]52;c;aG9zdGlsZQ==\x07",  # write the clipboard
    "\x1b]8;;http://hostile.example/\x1b\\link\x1b]8;;\x1b\\",  # a link
    "\x1b]0;hostile title\x07",  # the window's title
    "\x1bP7777q#0\x1b\\",  # a device control string
    "\x1bc\x1b(0\x1b#8",  # reset, another character set, alignment test
    "\x9b7777m\x9d52;c;aG9zdGlsZQ==\x9c\x90q\x9c",  # the same in 8 bits
    "\x85\x84\x8d\x99",
    "\x07\x08\x0b\x0c\x0e\x0f\x05\x1a",
    "\r\roverwritten\r\n",
    "\x00\x7f",
    "\u202ecod.exe\u202c\u2066\u2067\u2068\u2069\u200e\u200f\u061c",  # bidirectional controls
    "\U000e0001\U000e0068\U000e0069\U000e007f",  # tag characters
    "\u2028\u2029\ufeff\ufff9\ufffa\ufffb",
)
MARKUP: Final = (
    "[/foo] x",
    "[@click=app.quit]x[/]",
    "[@click='app.quit']y[/]",
    "[bold]",
    "[/]",
    "[link=http://hostile.example]l[/link]",
    "[red on $error 5%]",
    "\\[b]",
    ":skull: {0} %s $text-error ![x](http://hostile.example) `rm`",
)
LAYOUT: Final = (
    "\u200b" * 40,
    "e" + "\u0301" * 40,
    "漢字" * 8,
    "👩‍👩‍👧‍👦🏴‍☠️🇨🇭👍🏽",
    "\u200d" * 10,
    "\u00ad\u2060\u180e",
    "\t\t",
)
POISONS: Final = (*CONTROLS, *MARKUP, *LAYOUT)
CLIPBOARD: Final = "aG9zdGlsZQ=="
"""What the clipboard writes carry."""

_MARKS: Final[dict[str, str]] = {}


def mark(place: str) -> str:
    """Return the marker of a place."""
    return _MARKS.setdefault(place, f"z{len(_MARKS):03d}q")


def place_of(marker: str) -> str:
    """Return the place of a marker."""
    return next(place for place, known in _MARKS.items() if known == marker)


def bad(place: str, *, length: int = 0) -> str:
    """Return the poisoned string of a place; with *length*, one unbroken word of so many characters behind
    it.
    """
    marker = mark(place)
    turn = int(marker[1:4]) * 5 % len(POISONS)  # 5 and the number of poisons have no common divisor
    text = marker + "x".join((*POISONS[turn:], *POISONS[:turn]))
    return text + "w" * length


def short(place: str) -> str:
    """Return a poisoned string with but three of the poisons: a form of these has room on a screen."""
    marker = mark(place)
    turn = int(marker[1:4]) * 3 % len(POISONS)
    return marker + "x".join((POISONS + POISONS)[turn : turn + 3])


def schema(place: str) -> Json:
    """Return a form's schema in which everything is poisoned."""

    def at(name: str) -> str:
        return short(f"{place}.{name}")

    plain: Json = {"type": "string", "title": at("title"), "description": at("description")}
    properties: Json = {
        "ok": {"type": "boolean", "title": at("boolean"), "description": bad(f"{place}.boolean description")},
        at("name"): {**plain, "default": at("default")},
        "pattern": {"type": "string", "pattern": at("pattern"), "title": at("pattern title")},
        "format": {"type": "string", "format": at("format"), "title": at("format title")},
        "few": {"type": "string", "enum": ["", "a\x1b[7777mb"], "title": at("few title")},
        "enum": {"type": "string", "enum": [at("enum"), at("enum 2"), "c", "d", "e"], "default": at("enum")},
        "names": {"type": "string", "enum": ["1", "2"], "enumNames": [at("enum name"), "[/foo]"]},
        "oneOf": {
            "type": "string",
            "oneOf": [{"const": at("const"), "title": at("const title")}, {"const": "", "title": ""}],
        },
        "several": {
            "type": "array",
            "title": at("several"),
            "items": {"anyOf": [{"const": at("item"), "title": at("item title")}, {"const": "[/x]"}]},
        },
        "list": {
            "type": "array",
            "items": {"type": "string"},
            "default": [at("list default"), "\x1b]0;x\x07"],
        },
        "number": {"type": "integer", "title": at("number"), "default": at("number default")},
        "constant": {"const": at("constant"), "title": at("constant title")},
        "deep": {
            "type": "object",
            "properties": {at("deep"): {"type": "string", "default": at("deep default")}},
        },
        "ref": {"$ref": at("ref"), "title": at("ref title")},
        "": {"type": "string", "title": "", "description": "", "default": ""},
    }
    return {
        "type": "object",
        "title": at("form title"),
        "description": at("form description"),
        "properties": properties,
        "required": ["ok", at("name"), at("missing")],
    }


def form(place: str, requested: Json | None = None, **params: Any) -> Json:
    """Return an elicitation in form mode."""
    asked = schema(place) if requested is None else requested
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": bad(f"{place}.message"), "requestedSchema": asked, **params},
    }


def url(place: str, address: str) -> Json:
    """Return an elicitation in URL mode."""
    return {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": bad(f"{place}.message"), "url": address, "elicitationId": "1"},
    }


YES: Final[Json] = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}


def answerable(place: str) -> Json:
    """Return a question that can be answered, with poison around its one field."""
    return form(place, {**YES, "title": bad(f"{place}.title")})


SAMPLING: Final[Json] = {
    "method": "sampling/createMessage",
    "params": {
        "systemPrompt": bad("sampling.prompt"),
        "messages": [
            {"role": "user", "content": {"type": "text", "text": bad("sampling.text")}},
            {"role": bad("sampling.role"), "content": {"type": "image", "data": "", "mimeType": "x"}},
            {"role": "user", "content": {"type": "image", "data": "", "mimeType": bad("sampling.mime")}},
        ],
        "maxTokens": 100,
        "modelPreferences": {"hints": [{"name": bad("sampling.hint")}]},
        "stopSequences": [bad("sampling.stop")],
    },
}
RESULT: Final[Json] = {
    "content": [
        {"type": "text", "text": bad("result.text")},
        {"type": "text", "text": ""},
        {
            "type": "resource_link",
            "uri": bad("result.uri"),
            "name": bad("result.link name"),
            "title": bad("result.link title"),
            "description": bad("result.link description"),
            "mimeType": bad("result.link mime"),
        },
        {
            "type": "resource",
            "resource": {
                "uri": "file:///" + bad("result.blob uri"),
                "mimeType": bad("result.blob mime"),
                "blob": "AAEC",
            },
        },
        {"type": "image", "mimeType": bad("result.image mime"), "data": bad("result.image data")},
        {"type": bad("result.kind"), bad("result.kind key"): bad("result.kind value")},
        bad("result.no block"),
    ],
    "structuredContent": {bad("structured.key"): [bad("structured.value"), {"": ""}]},
    bad("result.extra key"): bad("result.extra"),
}

TASKS: Final[dict[str, Json]] = {
    "form": {"inputRequests": {bad("form.key"): form("form")}},
    "url": {
        "inputRequests": {
            "a": url("url.fair", "https://login.example/"),
            "b": url("url.poisoned", "https://" + bad("url.address")),
            "c": url("url.scheme", "javascript:alert([/foo])" + bad("url.script")),
        }
    },
    "other": {
        "inputRequests": {
            bad("sampling.key"): SAMPLING,
            "roots": {"method": "roots/list", "params": {bad("roots.key"): bad("roots.value")}},
            "none": {"method": bad("unknown.method"), "params": {"message": bad("unknown.message")}},
        }
    },
    "odd": {
        "inputRequests": {
            "": form("odd.dialect", {"$schema": bad("odd.dialect name"), "type": "object"}),
            "\x1b[7777m": form("odd.type", {"type": bad("odd.type name"), "properties": {}}),
            "\u202e": form("odd.mode", YES, mode=bad("odd.mode name")),
        }
    },
    "answer": {"inputRequests": {bad("answer.key"): answerable("answer")}},
    "refuse": {"inputRequests": {bad("refuse.key"): answerable("refuse")}},
    "work": {"statusMessage": bad("work.message")},
    "word": {"statusMessage": bad("word.message", length=10_000)},
    "large": {"statusMessage": bad("large.message", length=100_000)},
    "times": {
        "createdAt": bad("times.created"),
        "lastUpdatedAt": bad("times.updated"),
        "ttlMs": bad("times.ttl"),
    },
    "status": {"status": bad("status.status")},
    "type": {"resultType": bad("type.type")},
    "done": {"status": "completed", "statusMessage": bad("done.message"), "result": RESULT},
    "error": {
        "status": "completed",
        "result": {"isError": True, "content": [{"type": "text", "text": bad("error.text", length=100_000)}]},
    },
    "failed": {
        "status": "failed",
        "statusMessage": bad("failed.message"),
        "error": {
            "code": -32000,
            "message": bad("failed.error"),
            "data": {bad("failed.key"): bad("failed.data")},
        },
    },
    "cancelled": {"status": "cancelled", "statusMessage": bad("cancelled.message")},
}
"""By the name of a task (its id begins with ``t-NAME``), what is odd about it."""

BROKEN: Final = ("lost", "rpc", "http", "half", "stop")
"""Tasks whose tasks/get is answered with something that is no task."""


def task_id(name: str) -> str:
    """Return a task's id, which begins with ``t-NAME``."""
    return f"t-{name}-{bad(f'{name}.id')}"


def tools() -> list[Json]:
    """Return the tools: each is named for what a call of it comes to, plus poison."""
    plain = {"type": "object", "properties": {}}
    found = [
        {
            "name": f"{kind}-{bad(f'tool.{kind}.name')}",
            "title": bad(f"tool.{kind}.title"),
            "description": bad(f"tool.{kind}.description"),
            "inputSchema": {**plain, "description": bad(f"tool.{kind}.schema")},
            "annotations": {"destructiveHint": True, "title": bad(f"tool.{kind}.annotation")},
        }
        for kind in ("complete", "task", "ask", "refuse", "vanish")
    ]
    found.append({"name": "form", "title": "", "description": "", "inputSchema": schema("arguments")})
    found.append({"name": bad("tool.no schema"), "inputSchema": bad("tool.schema text")})
    header = {"type": "string", "x-mcp-header": bad("tool.header")}
    found.append(
        {"name": bad("tool.bad header"), "inputSchema": {"type": "object", "properties": {"h": header}}}
    )
    found.append({"name": "", "inputSchema": plain})
    return found


class HostileServer(TaskScript):
    """Says all of it. Use it as a context manager; it runs in a thread, so that a test may block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.turned = False
        """Until then tasks are what the protocol asks for, so that they can be tracked."""
        self.on("server/discover", result(_discovery()))
        self.on("tools/list", result({"tools": tools()}))
        self.on("tools/call", self.call)
        self.on("tasks/update", self.update)
        self.on("tasks/cancel", self.cancel)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def task_of(self, name: str) -> Json:
        """Return a task as tasks/get shows it."""
        odd = TASKS.get(name, {})
        status = "input_required" if "inputRequests" in odd else "working"
        return {**task(task_id(name), status, pollIntervalMs=4_000), **odd}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tasks."""
        return (*TASKS, *BROKEN)

    async def get(self, exchange: Exchange) -> None:
        """Answer tasks/get."""
        wanted = exchange.request.params["taskId"]
        if wanted in self.tasks:
            await result(self.tasks[wanted])(exchange)
            return
        name = wanted.split("-")[1]
        broken = name in BROKEN or name in ("status", "type")
        if broken and not self.turned:
            await result(task(wanted, pollIntervalMs=4_000))(exchange)
        elif name in BROKEN:
            await _broken(name)(exchange)
        else:
            await result(self.task_of(name))(exchange)

    async def call(self, exchange: Exchange) -> None:
        """Answer tools/call with what the tool's name says, after some progress."""
        kind = exchange.request.params["name"].partition("-")[0]
        token = exchange.request.params.get("_meta", {}).get("progressToken")
        told = {"progressToken": token, "progress": 1, "message": bad("progress.message")}
        progress = notification("notifications/progress", told)
        if kind in ("complete", "form"):
            await stream(progress, response(RESULT))(exchange)
        elif kind == "task":
            await result(handle(task_id("made"), statusMessage=bad("made.message")))(exchange)
        elif kind == "ask" and "inputResponses" not in exchange.request.params:
            asked = {"resultType": "input_required", "requestState": bad("ask.state")}
            await result({**asked, "inputRequests": {bad("ask.key"): answerable("ask")}})(exchange)
        elif kind == "vanish":
            exchange.abort()
        else:
            text, data = bad("call.error"), {bad("call.error key"): bad("call.error data")}
            await error(-32000, text, data)(exchange)

    async def update(self, exchange: Exchange) -> None:
        """Take an answer, or refuse it."""
        wanted = exchange.request.params["taskId"]
        if wanted == task_id("refuse"):
            await error(-32602, bad("refuse.error"), bad("refuse.data"))(exchange)
            return
        self.tasks[wanted] = task(wanted, "working", statusMessage=bad("answered.message"))
        await result({"resultType": "complete", bad("update.key"): bad("update.value")})(exchange)

    async def cancel(self, exchange: Exchange) -> None:
        """Refuse to cancel."""
        await error(-32603, bad("cancel.error"))(exchange)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run *work* on the server's own loop, and wait for it."""
        done: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(30)

    def sent(self, method: str) -> list[Json]:
        """Return the parameters of every request of *method* so far."""
        return [request.params for request in self.of(method)]


def _discovery() -> Json:
    return {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28", bad("discover.version")],
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        "instructions": bad("discover.instructions", length=10_000),
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {
                "name": bad("discover.name"),
                "title": bad("discover.title"),
                "version": bad("discover.info version"),
            }
        },
    }


def _broken(name: str) -> Reply:
    if name == "lost":
        return error(-32602, bad("lost.error"), {bad("lost.key"): bad("lost.data")})
    if name == "rpc":
        return error(-31999, bad("rpc.error"), bad("rpc.data"), status=200)
    if name == "stop":
        return error(-32601, bad("stop.error"), status=404)
    if name == "half":
        return _surrogate
    return raw_http(
        "HTTP/1.1 500 " + bad("http.reason"),
        f"Content-Type: text/{bad('http.type')}",
        f"X-Hostile: {bad('http.header')}",
        body=bad("http.body"),
    )


async def _surrogate(exchange: Exchange) -> None:
    found = task(exchange.request.params["taskId"], statusMessage=f"{mark('half.message')}@@")
    body = message(exchange.request, result=found).replace(b"@@", b"\\ud800\\u001b[7777m")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    await exchange.send(head.encode() + body)


def raw_http(*lines: str, body: str = "") -> Reply:
    """A reply whose status line and headers are what they are, but for line ends and NUL."""

    def one_line(text: str) -> bytes:
        return "".join(c for c in text if c not in "\r\n\x00").encode("utf-8")

    async def send(exchange: Exchange) -> None:
        data = body.encode()
        head = [*map(one_line, lines), b"Content-Length: %d" % len(data)]
        await exchange.send(b"\r\n".join(head) + b"\r\n\r\n" + data)

    return send


def slow_json(make: Callable[[], Any]) -> Reply:
    """A result made anew in a thread, since making it takes long."""

    async def send(exchange: Exchange) -> None:
        made = await asyncio.to_thread(lambda: json.dumps({"jsonrpc": "2.0", "id": 0, "result": make()}))
        number = json.dumps(exchange.request.json["id"])
        body = made.replace('"id": 0', f'"id": {number}', 1).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        await exchange.send(head.encode())
        await exchange.send(body)

    return send
