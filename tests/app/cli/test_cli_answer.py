"""``answer``: what is typed becomes exactly what is asked for, or nothing is sent."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from fakes.cli_engine import Installation, change, form_question

from app.engine.commands import CallOutcome, Delivery, EngineError
from storage.records import NewQuestion, QuestionChange, Reply, TaskKey

SCHEMA = """{"type": "object", "required": ["approved", "replicas"], "properties": {
    "approved": {"type": "boolean"},
    "replicas": {"type": "integer", "minimum": 1, "maximum": 10},
    "note": {"type": ["string", "null"]},
    "ratio": {"type": "number"},
    "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
    "a=b": {"type": "string"},
    "stage": {"type": "string", "default": "test"}}}"""
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "forms.json"


def elicitation(params: str) -> str:
    return f'{{"method": "elicitation/create", "params": {params}}}'


def url_question(key: str, url: str) -> NewQuestion:
    params = json.dumps({"mode": "url", "message": "Please", "url": url})
    return NewQuestion(
        key, key, "elicitation/create", f'{{"method": "elicitation/create", "params": {params}}}'
    )


def sent(home: Installation) -> list[object]:
    return [what for what in home.engine.asked if what[0] == "answer"]


def test_fields_become_what_the_schema_asks_and_untouched_ones_their_default(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", form_question("deploy", SCHEMA))
    fields = ("approved=true", "replicas=3", "ratio=1.10", "tags=a", "tags=c", "a=b=x=y")
    options = [word for text in fields for word in ("--field", text)]
    assert home.run("answer", "tsk_1", "deploy", *options, "--null", "note", "--dry-run") == 0
    printed = capsys.readouterr().out
    content = json.loads(printed, parse_float=Decimal)["content"]
    assert content == {
        "approved": True,
        "replicas": 3,
        "note": None,
        "ratio": Decimal("1.1"),
        "tags": ["a", "c"],
        "a=b": "x=y",
        "stage": "test",
    }
    assert not home.engine.asked
    assert home.run("answer", "tsk_1", "deploy", *options, "--null", "note") == 0
    ((_, task, response),) = sent(home)
    assert task == key
    assert json.loads(response) == json.loads(printed)


@pytest.mark.rule("elicitation.responses-validated")
def test_an_invalid_answer_is_a_line_per_field_and_nothing_is_sent(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    assert home.run("answer", "tsk_1", "--field", "approved=yes", "--field", "replicas=11") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(":")[0] for line in captured.err.splitlines()] == ["approved", "replicas"]
    assert not home.engine.asked


def test_a_warning_is_said_and_does_not_stop_the_answer(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = '{"type": "object", "properties": {"password": {"type": "string"}}}'
    home.task("tsk_1", form_question("k", schema))
    assert home.run("answer", "tsk_1", "--field", "password=x", "--dry-run") == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: password: ")
    assert json.loads(captured.out) == {"action": "accept", "content": {"password": "x"}}


@pytest.mark.parametrize("options", [["--field", "nope=1"], ["--null", "nope"], ["--field", "noequals"]])
def test_a_field_that_is_not_there_is_named(
    home: Installation, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    assert home.run("answer", "tsk_1", *options) == 2
    assert options[1].split("=")[0] in capsys.readouterr().err


@pytest.mark.rule("elicitation.decline-and-cancel")
@pytest.mark.parametrize(
    ("option", "response"), [("--decline", {"action": "decline"}), ("--dismiss", {"action": "cancel"})]
)
def test_decline_and_dismiss_are_two_answers_without_content(
    home: Installation, capsys: pytest.CaptureFixture[str], option: str, response: dict[str, str]
) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    assert home.run("answer", "tsk_1", option, "--dry-run") == 0
    assert json.loads(capsys.readouterr().out) == response
    assert home.run("answer", "tsk_1", option) == 0
    assert [json.loads(str(what[2])) for what in sent(home)] == [response]  # type: ignore[index]


def test_accept_takes_the_content_as_json_and_checks_it_against_the_schema(
    home: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    file = tmp_path / "content.json"
    file.write_text('{"approved": false, "replicas": 2}')
    assert home.run("answer", "tsk_1", "--accept", f"@{file}", "--dry-run") == 0
    content = {"approved": False, "replicas": 2}
    assert json.loads(capsys.readouterr().out) == {"action": "accept", "content": content}
    for wrong in (
        '{"approved": 1, "replicas": 2}',
        "[]",
        "{",
        '{"approved": NaN}',
        '{"a": 1, "a": 2}',
        "@/none",
    ):
        assert home.run("answer", "tsk_1", "--accept", wrong) == 2, wrong
        assert capsys.readouterr().err.strip()
    assert not home.engine.asked


def test_two_answers_at_once_are_refused(home: Installation) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    assert home.run("answer", "tsk_1", "--decline", "--dismiss") == 2
    assert home.run("answer", "tsk_1", "--accept", "{}", "--field", "approved=true") == 2
    assert not home.engine.asked


@pytest.mark.rule("elicitation.reviewed-before-sent")
def test_saying_nothing_previews_but_never_accepts(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("sure", '{"type": "object", "properties": {}}'))
    assert home.run("answer", "tsk_1", "--dry-run") == 0
    assert json.loads(capsys.readouterr().out) == {"action": "accept", "content": {}}
    assert home.run("answer", "tsk_1") == 2
    assert not home.engine.asked
    assert home.run("answer", "tsk_1", "--defaults") == 0
    assert len(sent(home)) == 1


def test_the_key_may_be_left_out_when_exactly_one_question_is_open(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("one", form_question("a", "{}"))
    home.task("two", form_question("a", "{}"), form_question("b", "{}"))
    assert home.run("answer", "one", "--decline") == 0
    assert home.run("answer", "two", "--decline") == 2
    error = capsys.readouterr().err
    assert "  a\n  b" in error
    assert home.run("answer", "two", "b", "--decline") == 0


def test_an_unknown_key_ends_with_3_and_names_the_open_ones(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("a", "{}"))
    assert home.run("answer", "tsk_1", "zzz", "--decline") == 3
    assert "open: a" in capsys.readouterr().err


def test_an_answered_question_ends_with_3_and_what_became_of_it(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("a", "{}"))
    assert home.run("answer", "tsk_1", "--decline") == 0
    capsys.readouterr()
    assert home.run("answer", "tsk_1", "a", "--decline") == 3
    error = capsys.readouterr().err
    assert '{"action": "decline"}' in error
    assert "not sent yet" in error
    assert len(sent(home)) == 1


def comes_with_the_look(home: Installation) -> None:
    """Let a question be asked that the store hears of when its server is looked at."""
    key = home.task("tsk_1")

    def asked_meanwhile(store: object) -> None:
        home.store.forget(key)
        home.task("tsk_1", form_question("late", "{}", "Delete all of it?"))

    home.engine.on_refresh = asked_meanwhile


@pytest.mark.parametrize(
    "options",
    [["late", "--decline"], ["--decline"], ["--accept", "{}"], ["--defaults"], ["--dismiss"], []],
)
def test_a_question_that_nobody_can_have_read_is_shown_and_not_answered(
    home: Installation, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    comes_with_the_look(home)
    assert home.run("answer", "tsk_1", *options) == 6
    error = capsys.readouterr().err
    assert "  | Delete all of it?" in error
    assert "nothing was sent" in error
    assert [what[0] for what in home.engine.asked] == ["refresh"]
    assert home.run("answer", "tsk_1", *(options or ["--decline"])) == 0, "it has been read now"
    assert [what[0] for what in home.engine.asked] == ["refresh", "answer"]


def test_a_question_that_was_read_elsewhere_is_named_by_its_fingerprint(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    comes_with_the_look(home)
    assert home.run("answer", "tsk_1", "late", "--decline", "--fingerprint", "print-la") == 0
    assert [what[0] for what in home.engine.asked] == ["refresh", "answer"]


@pytest.mark.parametrize("options", [["--decline"], ["--defaults"], ["--decline", "--dry-run"]])
def test_an_answer_goes_to_no_other_question_than_the_one_that_was_read(
    home: Installation, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    home.task("tsk_1", form_question("k", "{}"))
    assert home.run("answer", "tsk_1", *options, "--fingerprint", "print-of-another") == 3
    error = capsys.readouterr().err
    assert "not what you read" in error
    assert "print-k" not in error.split("fingerprint is")[0]
    assert not home.engine.asked


def test_a_fingerprint_is_given_with_an_answer_and_long_enough(home: Installation) -> None:
    home.task("tsk_1", form_question("k", "{}"))
    assert home.run("answer", "tsk_1", "--decline", "--fingerprint", "print-") == 2
    assert home.run("answer", "tsk_1", "--decline", "--fingerprint", "") == 2
    assert home.run("answer", "tsk_1", "--again", "--fingerprint", "print-k-long") == 2
    assert home.run("answer", "tsk_1", "--ask-on", "--fingerprint", "print-k-long") == 2
    assert not home.engine.asked


def test_the_fingerprint_is_in_what_show_prints_as_json(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("the-key", "{}"))
    assert home.run("show", "tsk_1", "--json") == 0
    (question,) = json.loads(capsys.readouterr().out)["questions"]
    assert question["fingerprint"] == "print-the-key"
    assert home.run("answer", "tsk_1", "--decline", "--fingerprint", question["fingerprint"]) == 0


@pytest.mark.rule("elicitation.url-valid")
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://",
        "https://a.example\\@b.example/",
        "https://[bad",
        "data:text/html,x",
        "https://exa%6dple.com/",
    ],
)
def test_no_consent_is_given_to_an_address_that_is_not_opened(
    home: Installation, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    home.task("tsk_1", url_question("k", url))
    assert home.run("answer", "tsk_1", "--accept", "{}") == 2
    assert "--decline" in capsys.readouterr().err
    assert not home.engine.asked
    assert home.run("show", "tsk_1") == 0
    shown = capsys.readouterr().out
    assert "--accept" not in shown
    assert "--decline" in shown
    assert home.run("answer", "tsk_1", "--decline") == 0


def test_what_is_odd_about_an_address_is_said_before_anybody_agrees(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", url_question("k", "http://user@xn--80ak6aa92e.com:81/pay"))
    assert home.run("show", "tsk_1") == 0
    shown = capsys.readouterr().out
    assert home.run("answer", "tsk_1", "--accept", "{}") == 0
    for text in (shown, capsys.readouterr().err):
        assert "host: xn--80ak6aa92e.com:81" in text
        assert text.count("    ! ") >= 4, text


def test_a_task_without_open_questions_ends_with_3(home: Installation) -> None:
    home.task("tsk_1", status="completed", tracking="ended")
    assert home.run("answer", "tsk_1", "--decline") == 3
    assert not home.engine.asked


@pytest.mark.rule("elicitation.url-not-opened-without-consent")
def test_url_mode_shows_the_page_and_its_host_and_sends_no_content(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", url_question("visit", "https://pay.example.com/x?id=1"))
    assert home.run("answer", "tsk_1", "--accept", "{}", "--dry-run") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"action": "accept"}
    assert "https://pay.example.com/x?id=1" in captured.err
    assert "host: pay.example.com" in captured.err
    assert home.run("answer", "tsk_1", "--accept", '{"x": 1}') == 2
    assert home.run("answer", "tsk_1", "--field", "x=1") == 2
    assert home.run("answer", "tsk_1", "--accept", "{}") == 0
    assert [what[2] for what in sent(home)] == ['{"action": "accept"}']  # type: ignore[index]


@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "who/knows"])
def test_other_kinds_of_question_are_not_answered(
    home: Installation, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    home.task("tsk_1", NewQuestion("k", "k", method, f'{{"method": "{method}"}}'))
    for option in ("--decline", "--defaults"):
        assert home.run("answer", "tsk_1", option) == 2
        error = capsys.readouterr().err
        assert f"does not answer {method}" in error
        assert "taskinbox cancel" in error
    assert not home.engine.asked


def test_a_schema_that_makes_no_form_is_answered_as_json_and_never_declined(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("k", '{"type": "array"}'))
    assert home.run("answer", "tsk_1", "--field", "a=1") == 2
    assert "--accept" in capsys.readouterr().err
    assert home.run("answer", "tsk_1", "--accept", '{"a": 1.10}', "--dry-run") == 0
    assert "1.10" in capsys.readouterr().out


@pytest.mark.parametrize(
    "request_json",
    [
        "[" * 100_000,
        '"text"',
        '{"method": "elicitation/create"}',
        elicitation("[]"),
        elicitation('{"mode": 7}'),
        elicitation('{"mode": "url"}'),
        elicitation('{"mode": "url", "url": "http://["}'),
        elicitation('{"requestedSchema": 7}'),
        elicitation('{"requestedSchema": {"properties": {"a": {"maximum": 1e999}}}}'),
        elicitation(f'{{"requestedSchema": {{"properties": {{"a": {{"default": {"9" * 5000}}}}}}}}}'),
        elicitation('{"requestedSchema": ' + '{"allOf": [' * 500 + "]}" * 500 + "}"),
    ],
    ids=range(11),
)
@pytest.mark.parametrize("said", [["--field", "a=1"], ["--accept", "{}"], ["--decline"], []])
def test_no_question_however_malformed_ends_in_a_traceback(
    home: Installation, capsys: pytest.CaptureFixture[str], request_json: str, said: list[str]
) -> None:
    home.task("tsk_1", NewQuestion("k", "k", "elicitation/create", request_json))
    code = home.run("answer", "tsk_1", *said, "--dry-run")
    captured = capsys.readouterr()
    assert code in (0, 2)
    assert captured.out if code == 0 else captured.err
    for command in (["show", "tsk_1"], ["show", "tsk_1", "--json"], ["list"]):
        assert home.run(*command) == 0


@pytest.mark.parametrize(
    ("state", "code"),
    [("acknowledged", 0), ("waiting", 0), ("saved", 4), ("refused", 1), ("withdrawn", 3), ("unknown", 1)],
)
def test_each_way_a_delivery_can_end_has_its_exit_code(
    home: Installation, capsys: pytest.CaptureFixture[str], state: str, code: int
) -> None:
    home.task("tsk_1", form_question("a", "{}"))
    home.engine.delivery = Delivery(state, "because \x1b[1m")  # type: ignore[arg-type]
    assert home.run("answer", "tsk_1", "--decline", "--json") == code
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert shown["state"] == state
    assert shown["response"] == {"action": "decline"}
    assert shown["failure"] is None
    if state != "acknowledged":
        assert captured.err.endswith("because ␛[1m\n")
        assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("failure", "code"),
    [("unreachable", 4), ("sign-in", 5), ("refused", 1), ("faulty", 1), ("invalid", 2)],
)
def test_an_answer_that_is_only_saved_ends_as_its_failure_does_and_says_so_once(
    home: Installation, capsys: pytest.CaptureFixture[str], failure: str, code: int
) -> None:
    home.task("tsk_1", form_question("a", "{}"))
    home.engine.delivery = Delivery("saved", "Saved. It is so.", failure=failure)  # type: ignore[arg-type]
    assert home.run("answer", "tsk_1", "--decline", "--json") == code
    captured = capsys.readouterr()
    assert captured.err == "Saved. It is so.\n"
    assert json.loads(captured.out)["failure"] == failure


def test_content_given_as_json_is_refused_with_a_line_for_each_name(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("deploy", SCHEMA))
    assert home.run("answer", "tsk_1", "--accept", '{"ratio": "x", "stage": 1}') == 2
    named = [line.split(": ")[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(named) == ["approved", "ratio", "replicas", "stage"]


@pytest.mark.parametrize("key", ["alpha", "one-end", "alpha-one-end", "alpha…end"])
def test_a_key_may_be_named_by_a_beginning_or_an_ending_that_fits_it_alone(
    home: Installation, key: str
) -> None:
    home.task("tsk_1", form_question("alpha-one-end", "{}"), form_question("beta-two-end", "{}"))
    assert home.run("answer", "tsk_1", key, "--decline") == 0
    states = {q.key: q.state for q in home.questions(TaskKey("lab", "tsk_1"))}
    assert states == {"alpha-one-end": "queued", "beta-two-end": "open"}


def test_a_beginning_that_fits_several_keys_lists_them_and_an_exact_key_wins(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("a", "{}"), form_question("ab", "{}"), form_question("ac", "{}"))
    assert home.run("answer", "tsk_1", "a", "--decline") == 0
    home.task("tsk_2", form_question("ab", "{}"), form_question("ac", "{}"), form_question("x", "{}"))
    capsys.readouterr()
    assert home.run("answer", "tsk_2", "a", "--decline") == 2
    assert "  ab\n  ac\n" in capsys.readouterr().err


def test_an_acknowledged_answer_that_is_still_asked_for_can_be_sent_again(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", form_question("a", "{}"))
    (question,) = home.questions(key)
    assert home.run("answer", "tsk_1", "--again") == 3
    home.store.queue_answers(key, [Reply(question.id, question.fingerprint, '{"action": "decline"}')], by="x")
    home.store.claim([question.id], owner="o", dead=lambda owner: False)
    change(home.store, key, questions=[QuestionChange(question.id, "acknowledged", still_asked=4)])
    capsys.readouterr()
    assert home.run("show", "tsk_1") == 0
    assert "`taskinbox answer --again tsk_1`" in capsys.readouterr().out
    assert home.run("answer", "tsk_1", "--again", "--decline") == 2
    assert home.run("answer", "tsk_1", "--again", "--dry-run") == 0
    assert json.loads(capsys.readouterr().out) == {"action": "decline"}
    assert not home.engine.asked
    assert home.run("answer", "--again", "tsk_1") == 0
    assert home.engine.asked == [("send_again", question.id)]


def test_an_answered_call_says_what_it_became(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    home.task("call-1", form_question("a", "{}"))
    task = home.task("tsk_9")
    home.engine.delivery = Delivery("acknowledged", outcome=CallOutcome("task", task))
    assert home.run("answer", "call-1", "--decline", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outcome"]["taskId"] == "tsk_9"


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("unreachable", 4),
        ("sign-in", 5),
        ("refused", 1),
        ("faulty", 1),
        ("unknown-server", 3),
        ("unknown-task", 3),
        ("invalid", 2),
        ("closed", 3),
    ],
)
def test_each_failure_is_one_line_and_its_exit_code(
    home: Installation, capsys: pytest.CaptureFixture[str], failure: str, code: int
) -> None:
    home.task("tsk_1", form_question("a", "{}"))
    home.engine.failure = EngineError(failure, "it is so \x1b]0;x\x07")  # type: ignore[arg-type]
    assert home.run("answer", "tsk_1", "--decline") == code
    assert capsys.readouterr().err == "Error: it is so ␛]0;x␇\n"
    assert home.engine.is_closed


def test_a_refused_answer_can_be_given_again(home: Installation) -> None:
    key = home.task("tsk_1", form_question("a", "{}"))
    (question,) = home.questions(key)
    home.store.queue_answers(key, [Reply(question.id, question.fingerprint, '{"action": "accept"}')], by="x")
    home.store.claim([question.id], owner="o", dead=lambda owner: False)
    change(home.store, key, questions=[QuestionChange(question.id, "refused", refusal="too short")])
    assert home.run("answer", "tsk_1", "a", "--decline") == 0


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not beside this repository")
def test_every_shared_case_comes_out_of_the_command_line(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = json.loads(CASES.read_text(), parse_float=Decimal, parse_int=lambda text: Decimal(text))
    raw = json.loads(CASES.read_text())
    assert len(cases) >= 30
    for number, (case, schema) in enumerate(zip(cases, raw, strict=True)):
        home.task(f"case-{number:03}", form_question("k", json.dumps(schema["requestedSchema"])))
        options = []
        for name, typed in case["typed"].items():
            for text in typed if isinstance(typed, list) else [typed]:
                options += ["--null", name] if text is None else ["--field", f"{name}={text}"]
        code = home.run("answer", f"case-{number:03}", "k", *options, "--dry-run")
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        expect = case["expect"]
        if "errors" in expect:
            assert code == 2, case["name"]
            named = {line.split(": ")[0] for line in lines if not line.startswith("warning: ")}
            assert named == set(expect["errors"]), case["name"]
        else:
            assert code == 0, (case["name"], captured.err)
            content = json.loads(captured.out, parse_float=Decimal, parse_int=lambda text: Decimal(text))[
                "content"
            ]
            assert content == expect["content"], case["name"]
        for name in expect.get("warns", ()):
            assert any(line.startswith(f"warning: {name}: ") for line in lines), case["name"]


def test_a_server_that_was_stopped_is_let_ask_on(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", problem="The server asks more than 500 questions. Let it ask on, or cancel it.")
    assert home.run("show", "tsk_1") == 0
    assert "taskinbox answer --ask-on tsk_1" in capsys.readouterr().out
    assert home.run("answer", "tsk_1", "--ask-on", "--json") == 0
    assert home.engine.asked == [("let_ask", key)]
    assert json.loads(capsys.readouterr().out)["taskId"] == "tsk_1"
    for more in (["approve"], ["--decline"], ["--again"], ["--dry-run"]):
        assert home.run("answer", "tsk_1", *more, "--ask-on") == 2


def test_a_secret_is_not_in_what_is_told_of_an_answer(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    text = {"type": "string"}
    schema = json.dumps({"properties": {"user": text, "password": text}})
    home.task("tsk_1", form_question("login", schema))
    given = ["--field", "user=ada", "--field", "password=hush-4711"]
    assert home.run("answer", "tsk_1", *given, "--json") == 0
    told = capsys.readouterr()
    assert "hush-4711" in str(home.engine.asked)
    assert "hush-4711" not in told.out + told.err
    assert json.loads(told.out)["response"]["content"]["password"] == "sent, not kept"


def test_an_answer_whose_secrets_are_gone_has_no_response_to_print(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", form_question("login", "{}"))
    (question,) = home.questions(key)
    home.store.queue_answers(key, [Reply(question.id, question.fingerprint, '"exact"', '"kept"')], by="ada")
    home.store.claim([question.id], owner="me", dead=lambda _: False)
    change(home.store, key, questions=[QuestionChange(question.id, "acknowledged", still_asked=3)])
    assert home.run("answer", "tsk_1", "--again", "--dry-run") == 2
    assert "held secrets" in capsys.readouterr().err
