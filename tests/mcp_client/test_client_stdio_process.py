"""The life of a server's process: start, exit, restart, shutdown. Page: basic/transports/stdio."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes.stdio_server import SCRIPTED, Watched

from mcp_client import InvalidRequest, Limits, StdioTransport, TransportError
from mcp_client.process import default_environment

ECHO = "for r in requests(): reply(r, pid=os.getpid())"
SHORT = Limits(exit_seconds=0.3)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def runs(pid: int) -> bool:
    """Say whether *pid* still runs in five seconds; returns as soon as it does not."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([process], [], [], 5)[0]
    finally:
        os.close(process)


async def test_nothing_is_started_before_connect() -> None:
    transport = StdioTransport("surely-no-such-command")
    with pytest.raises(TransportError, match="has not been started") as caught:
        await transport.send(Watched(ECHO).request(), timeout=1)
    assert not caught.value.may_have_reached
    assert transport.stderr_tail() == ""
    await transport.aclose()


@pytest.mark.rule("index.stdio-process-outlives-tasks")
async def test_connect_starts_one_process_and_says_its_number() -> None:
    async with Watched(ECHO) as server:
        assert await server.transport.connect() == 1
        first = await server.ask()
        assert await asyncio.gather(*(server.transport.connect() for _ in range(5))) == [1] * 5
        assert first["result"]["pid"] == (await server.ask())["result"]["pid"]


async def test_a_connect_that_is_cancelled_leaves_one_process_for_the_next() -> None:
    server = Watched(ECHO)
    connecting = asyncio.create_task(server.transport.connect())
    await asyncio.sleep(0)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert await server.transport.connect() == 1
    pid = (await server.ask())["result"]["pid"]
    await server.transport.aclose()
    assert not runs(pid)


async def test_closing_while_the_process_starts_leaves_none() -> None:
    server = Watched("tell(str(os.getpid())); read()")
    connecting = asyncio.create_task(server.transport.connect())
    await asyncio.sleep(0)
    await server.transport.aclose()
    await connecting
    assert not server.stderr or not runs(int(server.stderr))


async def test_a_start_that_fails_when_nobody_waits_any_more_is_not_reported(tmp_path: Path) -> None:
    transport = StdioTransport("surely-no-such-command")
    connecting = asyncio.create_task(transport.connect())
    await asyncio.sleep(0)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await transport.aclose()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("surely-no-such-command", "no such command. Install it, or give its full path."),
        ("{folder}/plain", "it is not an executable file, or you may not run it."),
        ("{folder}/no-program", "it is not a program of this system"),
        ("{folder}", "it is not an executable file"),
        ("a\0b", "embedded null byte"),
        ("{folder}/plain/below", "Not a directory"),
    ],
)
async def test_a_command_that_cannot_be_started_says_what_to_do(
    tmp_path: Path, command: str, said: str
) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "no-program").write_bytes(b"\x00\x01\x02")
    (tmp_path / "no-program").chmod(0o755)
    transport = StdioTransport(command.format(folder=tmp_path))
    with pytest.raises(TransportError, match="can't be started: ") as caught:
        await transport.connect()
    assert said in caught.value.message
    assert not caught.value.may_have_reached
    await transport.aclose()


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    transport = StdioTransport(sys.executable, cwd=tmp_path / "gone")
    with pytest.raises(TransportError, match=r"there is no folder .*gone\. Correct the server's cwd"):
        await transport.connect()


async def test_a_command_that_was_missing_is_started_once_it_is_there(tmp_path: Path) -> None:
    program = tmp_path / "server"
    transport = StdioTransport(str(program))
    with pytest.raises(TransportError):
        await transport.connect()
    program.write_text("#!/bin/sh\ncat >/dev/null\n")
    program.chmod(0o755)
    assert await transport.connect() == 1
    await transport.aclose()


@pytest.mark.rule("authorization.stdio", "index.auth-stdio")
async def test_the_process_gets_a_small_environment_its_own_variables_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s")
    script = "for r in requests(): reply(r, env=dict(os.environ), cwd=os.getcwd())"
    async with Watched(script, env={"TOKEN": "t", "LANG": "C.UTF-8"}, cwd=tmp_path) as server:
        found = (await server.ask())["result"]
    assert found["cwd"] == str(tmp_path)
    assert found["env"]["TOKEN"] == "t"
    assert found["env"]["LANG"] == "C.UTF-8"
    assert found["env"]["PATH"] == os.environ["PATH"]
    assert "MY_SECRET" not in found["env"]


def test_exported_shell_functions_are_not_passed_on() -> None:
    assert default_environment({"PATH": "/bin", "TERM": "() { :; }", "X": "y"}) == {"PATH": "/bin"}


@pytest.mark.rule("stdio.server-may-log", "stdio.stderr-kept", "stdio.stderr-is-no-error")
async def test_stderr_is_kept_to_its_last_64_kib_and_is_no_error() -> None:
    script = """
        sys.stderr.write("x" * 300_000 + "\\nERROR: not really\\n")
        sys.stderr.flush()
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        await server.ask()
        await server.told("not really")
        assert server.transport.stderr_tail().endswith("x\nERROR: not really\n")
        assert len(server.transport.stderr_tail()) == 64 * 1024
        assert len(server.stderr) > 300_000
    assert server.faults == []


@pytest.mark.rule("stdio.server-may-log")
async def test_a_server_may_close_its_stderr() -> None:
    async with Watched("os.close(2)\nfor r in requests(): reply(r)") as server:
        await server.ask()
        await server.ask()


async def test_requests_in_flight_fail_when_the_process_exits_and_say_how() -> None:
    script = "read(); read(); tell('Traceback'); tell('ValueError: no such file'); tell(''); os._exit(7)"
    async with Watched(script) as server:
        found = await asyncio.gather(server.ask(), server.ask(), return_exceptions=True)
    for error in found:
        assert isinstance(error, TransportError)
        assert error.may_have_reached
        assert error.message == (
            "The server's process (python) ended with exit code 7. It last said: “ValueError: no such file”."
        ).replace("(python)", f"({Path(sys.executable).name})")


@pytest.mark.parametrize(("number", "said"), [(9, "SIGKILL"), (15, "SIGTERM"), (35, "signal 35")])
async def test_a_process_that_was_killed_says_by_what(number: int, said: str) -> None:
    async with Watched(f"read(); os.kill(os.getpid(), {number}); read()") as server:
        with pytest.raises(TransportError, match=f"was ended by {said}"):
            await server.ask()


async def test_the_last_words_of_a_process_are_read_before_its_end_is_told() -> None:
    """The response is in the pipe when the exit is known."""
    async with Watched("r = read(); reply(r, text='x' * 1_000_000); os._exit(1)") as server:
        assert len((await server.ask())["result"]["text"]) == 1_000_000


async def test_a_line_without_its_newline_is_no_message() -> None:
    script = "r = read(); sys.stdout.write(json.dumps({'jsonrpc': '2.0', 'id': r['id'], 'result': {}}))"
    async with Watched(script) as server:
        with pytest.raises(TransportError, match="ended with exit code 0"):
            await server.ask()
    assert server.faults == [
        'Its output ended in the middle of a line: “{"jsonrpc": "2.0", "id": "r-1", "result": {}}”.'
    ]


@pytest.mark.rule("stdio.restarted")
async def test_a_new_process_is_started_after_an_exit_and_has_a_new_number() -> None:
    clock = Clock()
    async with Watched("r = read(); reply(r, pid=os.getpid()); read(); os._exit(1)", clock=clock) as server:
        first = (await server.ask())["result"]["pid"]
        clock.now += 3600
        with pytest.raises(TransportError):
            await server.ask()
        with pytest.raises(TransportError, match="ended with exit code 1") as caught:
            await server.ask()
        assert not caught.value.may_have_reached
        assert await server.transport.connect() == 2
        assert (await server.ask())["result"]["pid"] != first


async def test_the_pause_after_quick_exits_grows_to_a_minute_and_is_forgotten_after_a_long_life() -> None:
    clock = Clock()
    server = Watched("read(); os._exit(1)", clock=clock)
    number = 0
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        number += 1
        assert await server.transport.connect() == number
        clock.now += 9.9
        with pytest.raises(TransportError):
            await server.ask()
        with pytest.raises(TransportError, match=f"started again in {pause} s at the earliest") as caught:
            await server.transport.connect()
        assert not caught.value.may_have_reached
        clock.now += pause - 0.01
        with pytest.raises(TransportError, match="started again in 1 s"):
            await server.transport.connect()
        clock.now += 0.02
    assert await server.transport.connect() == number + 1
    clock.now += 10.1
    with pytest.raises(TransportError):
        await server.ask()
    assert await server.transport.connect() == number + 2
    with pytest.raises(TransportError):
        await server.ask()
    with pytest.raises(TransportError, match="started again in 1 s"):
        await server.transport.connect()
    await server.transport.aclose()


async def test_a_process_that_exits_at_once_is_no_surprise() -> None:
    server = Watched("os._exit(4)")
    with contextlib.suppress(TransportError):
        await server.transport.connect()
        await server.ask()
    with pytest.raises(TransportError, match="exit code 4"):
        await server.transport.connect()
    await server.transport.aclose()


@pytest.mark.rule("stdio.server-may-exit")
async def test_a_process_that_closes_its_output_is_given_a_moment_and_then_replaced() -> None:
    clock = Clock()
    script = "r = read(); tell(str(os.getpid())); os.close(1); import time; time.sleep(60)"
    async with Watched(script, SHORT, clock) as server:
        with pytest.raises(TransportError, match="stopped talking: it closed its standard input or output"):
            await server.ask()
        clock.now += 60
        assert await server.transport.connect() == 2
        assert not runs(int(server.stderr.split()[0]))


async def test_requests_open_when_the_server_closes_its_input_may_still_be_answered() -> None:
    script = "r = read(); os.close(0); tell('closed'); reply(r); import time; time.sleep(60)"
    clock = Clock()
    async with Watched(script, SHORT, clock) as server:
        assert "result" in await server.ask()
        await server.told("closed")
        clock.now += 60
        with pytest.raises(TransportError):
            await server.ask()
        assert await server.transport.connect() == 2


async def test_a_server_that_reads_nothing_holds_up_nobody() -> None:
    """The bytes beyond what the pipe takes wait; each request waits no longer than its own time."""
    script = """
        import time
        tell("here")
        time.sleep(600)
    """
    async with Watched(script, SHORT) as server:
        big = "x" * 500_000
        with pytest.raises(TransportError, match=r"did not answer within 0\.2 s") as caught:
            await server.ask(timeout=0.2, big=big)
        assert caught.value.may_have_reached
        for _ in range(3):
            with pytest.raises(TransportError, match="has not read what was sent before") as caught:
                await server.ask(timeout=0.1, big=big)
            assert not caught.value.may_have_reached


@pytest.mark.rule("stdio.stdin-messages-only")
async def test_a_server_that_reads_late_gets_whole_messages_only() -> None:
    """Requests given up while they waited to be written are none that the server sees in part."""
    script = """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        tell(str(os.getpid()))
        signal.sigwait({signal.SIGUSR1})
        for m in messages():
            tell(f"{m['method']} {m.get('id') or m['params']['requestId']}")
            "id" in m and reply(m)
    """
    async with Watched(script) as server:
        pid = int(await server.told(""))
        for name in ("written", "never", "neither"):
            with pytest.raises(TransportError):
                await server.ask(request_id=name, timeout=0.1, big="x" * 300_000)
        waiting = asyncio.create_task(server.ask(request_id="waits"))
        os.kill(pid, signal.SIGUSR1)
        assert "result" in await waiting
    assert server.stderr.decode().split("\n")[1:-1] == [
        "tools/list written",
        "notifications/cancelled written",
        "tools/list waits",
    ]


@pytest.mark.rule("stdio.shutdown")
async def test_closing_ends_a_server_by_closing_its_input() -> None:
    async with Watched("for r in messages(): reply(r, pid=os.getpid())\ntell('bye')") as server:
        pid = (await server.ask())["result"]["pid"]
    assert server.stderr == b"bye\n"
    assert not runs(pid)


@pytest.mark.rule("stdio.shutdown")
async def test_a_server_that_stays_is_asked_to_terminate() -> None:
    script = """
        import signal, time
        def bye(*_): tell("terminated"); os._exit(0)
        signal.signal(signal.SIGTERM, bye)
        for r in messages(): reply(r)
        tell("input closed")
        while True: time.sleep(60)
    """
    async with Watched(script, SHORT) as server:
        await server.ask()
    assert server.stderr == b"input closed\nterminated\n"


@pytest.mark.rule("stdio.shutdown")
async def test_a_server_that_ignores_even_that_is_killed() -> None:
    script = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for r in messages(): reply(r, pid=os.getpid())
        while True: time.sleep(60)
    """
    async with Watched(script, SHORT) as server:
        pid = (await server.ask())["result"]["pid"]
    assert not runs(pid)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("stays", [False, True])
async def test_what_a_server_has_started_ends_with_it(ignores: bool, stays: bool) -> None:
    child = "import signal, time; " + "signal.signal(signal.SIGTERM, signal.SIG_IGN); " * ignores
    child += "print('up', flush=True); time.sleep(600)"
    script = f"""
        import subprocess, time
        child = subprocess.Popen([sys.executable, "-c", {child!r}], stdin=0, stdout=subprocess.PIPE)
        child.stdout.readline()
        for r in messages(): reply(r, pid=child.pid)
        if {stays}: time.sleep(600)
    """
    async with Watched(script, SHORT) as server:
        pid = (await server.ask())["result"]["pid"]
    assert not runs(pid)


async def test_a_child_that_holds_the_output_open_does_not_hold_up_the_end() -> None:
    script = """
        import subprocess
        read()
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        tell(str(child.pid))
        os._exit(5)
    """
    async with Watched(script, SHORT) as server:
        with pytest.raises(TransportError, match="ended with exit code 5"):
            await server.ask()
    assert not runs(int(server.stderr.split()[0]))


async def test_closing_fails_requests_under_way_and_closing_twice_does_nothing() -> None:
    script = "r = read(); tell('got it'); read()"
    server = Watched(script)
    await server.transport.connect()
    asking = asyncio.create_task(server.ask())
    await server.told("got it")
    await asyncio.gather(server.transport.aclose(), server.transport.aclose())
    await server.transport.aclose()
    with pytest.raises(TransportError, match="has been closed") as caught:
        await asking
    assert caught.value.may_have_reached
    with pytest.raises(InvalidRequest, match="has been closed"):
        await server.transport.connect()
    with pytest.raises(InvalidRequest, match="has been closed"):
        await server.ask()


async def test_closing_without_a_process_does_nothing() -> None:
    transport = StdioTransport("surely-no-such-command")
    await transport.aclose()
    await transport.aclose()


async def test_closing_goes_on_when_it_is_cancelled() -> None:
    script = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for r in messages(): reply(r, pid=os.getpid())
        while True: time.sleep(60)
    """
    server = Watched(script, SHORT)
    await server.transport.connect()
    pid = (await server.ask())["result"]["pid"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await server.transport.aclose()
    await server.transport.aclose()
    assert not runs(pid)


async def test_closing_a_process_that_has_not_read_its_input_does_not_wait_for_it() -> None:
    async with Watched("import time; tell('here'); time.sleep(600)", SHORT) as server:
        await server.told("here")
        with pytest.raises(TransportError):
            await server.ask(timeout=0.1, big="x" * 500_000)


@pytest.mark.parametrize("way", ["aclose", "cancelled", "timeout"])
def test_a_program_that_ends_prints_nothing_and_leaves_nothing(way: str) -> None:
    """With every warning on, however the loop ends."""
    command, *args = SCRIPTED
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
    stubborn += "r = read(); reply(r, pid=os.getpid()); time.sleep(600)"
    program = textwrap.dedent(f"""
        import asyncio, json, sys
        from mcp_client import Limits, Outgoing, StdioTransport
        async def main():
            limits = Limits(exit_seconds=0.3)
            transport = StdioTransport({command!r}, [*{args!r}, "{stubborn}"], limits=limits)
            await transport.connect()
            request = Outgoing("a", "ping", None, b'{{"jsonrpc":"2.0","id":"a","method":"ping"}}')
            found = await transport.send(request, timeout=20)
            print(found.message["result"]["pid"])
            if {way!r} == "aclose":
                await transport.aclose()
            elif {way!r} == "timeout":
                async with asyncio.timeout(0.05):
                    await transport.aclose()
            else:
                closing = asyncio.create_task(transport.aclose())
                await asyncio.sleep(0.05)
        try:
            asyncio.run(main())
        except TimeoutError:
            pass
    """)
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not runs(int(ran.stdout))


async def test_a_server_killed_from_outside_is_noticed_by_the_next_connect() -> None:
    clock = Clock()
    async with Watched(ECHO, clock=clock) as server:
        pid = (await server.ask())["result"]["pid"]
        clock.now += 60
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(TransportError):
            await server.ask()
        assert await server.transport.connect() == 2
        assert (await server.ask())["result"]["pid"] != pid


async def test_input_that_somebody_else_holds_open_does_not_hold_up_the_end() -> None:
    """A child in a session of its own outlives the server, and is none of ours."""
    script = """
        import subprocess, time
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        tell(str(subprocess.Popen(sleep, start_new_session=True).pid))
        time.sleep(600)
    """
    async with Watched(script, SHORT) as server:
        pid = int(await server.told(""))
        with pytest.raises(TransportError):
            await server.ask(timeout=0.1, big="x" * 500_000)
    os.kill(pid, signal.SIGKILL)
    assert not runs(pid)
