"""JSON from bytes that nobody can trust, and JSON that goes out exactly as it was written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_client import Incoming, InvalidRequest, ProtocolError, RawJSON, ServerError
from mcp_client.jsonrpc import decode, encode, result_of


def read(text: str | bytes, depth: int = 64) -> Any:
    return decode(text.encode() if isinstance(text, str) else text, depth=depth)


def test_numbers_stay_exact() -> None:
    found = read('{"a": 0.10, "b": 12345678901234567890, "c": 1e2, "d": -0.0}')
    assert found == {
        "a": Decimal("0.10"),
        "b": 12345678901234567890,
        "c": Decimal("1E+2"),
        "d": Decimal("-0.0"),
    }
    assert encode(found) == b'{"a":0.10,"b":12345678901234567890,"c":1E+2,"d":-0.0}'


def test_raw_json_goes_out_byte_for_byte_wherever_it_stands() -> None:
    raw = '{ "ratio" : 1.500,\n"name":"caf\\u00e9" }'
    assert encode({"x": [RawJSON(raw)]}) == b'{"x":[' + raw.encode() + b"]}"


@pytest.mark.rule("mrtr.requests-unique-and-known", "wire.surrogates-refused")
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b'{"a": 1, "a": 2}', "repeats the key"),
        (b'{"x": {"a": 1, "\\u0061": 2}}', "repeats the key"),
        (b"[NaN]", "not valid JSON"),
        (b"[Infinity]", "not valid JSON"),
        (b"[-Infinity]", "not valid JSON"),
        (b'["\\ud800"]', "surrogate"),
        (b'["\\udc00\\ud800"]', "surrogate"),
        (b'{"\\ud800": 1}', "surrogate"),
        (b'"\\uD834"', "surrogate"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xff\xfe[\x00]\x00", "not UTF-8"),
        (b"[" * 100 + b"]" * 100, "nested deeper than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested deeper than 64"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "not valid JSON"),
        (b"[1e99999999999999999999]", "out of range"),
        (b"[1] [2]", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'"a\nb"', "not valid JSON"),
        (b"[01]", "not valid JSON"),
    ],
)
def test_what_no_store_or_reader_could_trust_is_refused(body: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        read(body)


def test_what_is_merely_unusual_is_read() -> None:
    assert read(b'\xef\xbb\xbf["\\ud834\\udd1e"]') == ["𝄞"]
    assert read(b"[" * 64 + b"]" * 64) is not None
    assert read(b"[" + b"[]," * 500 + b"[]]") == [[]] * 501


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, object(), "\ud800", {"k": {1, 2}}])
def test_what_json_cannot_say_is_refused_before_anything_is_sent(value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        encode(value)
    assert refused.value.may_have_reached is False


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidRequest):
        encode(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_anything_written_is_read_back_as_it_was(value: Any) -> None:
    try:
        body = encode(value)
    except InvalidRequest:
        return  # half of a surrogate pair
    assert decode(body, depth=1000) == value


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_protocol_error(body: bytes) -> None:
    try:
        decode(body, depth=10)
    except ProtocolError:
        pass


def respond(http_status: int | None = 200, **members: Any) -> Any:
    return result_of(Incoming({"jsonrpc": "2.0", **members}, http_status), "a-7")


def test_a_result_for_this_request_is_returned() -> None:
    assert respond(id="a-7", result={"a": 1}) == {"a": 1}


@pytest.mark.rule("index.result-id")
@pytest.mark.parametrize("wrong", ["a-8", 7, None, True, Decimal("7.0"), ["a-7"]])
def test_a_result_for_another_request_is_invalid(wrong: Any) -> None:
    with pytest.raises(ProtocolError) as invalid:
        respond(id=wrong, result={})
    assert invalid.value.field == "id"


@pytest.mark.rule("index.result-id")
def test_an_id_of_one_is_not_true() -> None:
    with pytest.raises(ProtocolError):
        result_of(Incoming({"jsonrpc": "2.0", "id": True, "result": {}}), 1)


@pytest.mark.rule("index.error-id", "index.error-data")
@pytest.mark.parametrize("given_id", ["a-7", None, "server-error"])
def test_an_error_may_have_lost_its_id(given_id: Any) -> None:
    with pytest.raises(ServerError) as refused:
        respond(id=given_id, error={"code": -32602, "message": "no", "data": ""})
    assert (refused.value.code, refused.value.message, refused.value.data) == (-32602, "no", "")
    with pytest.raises(ServerError):
        respond(error={"code": -32602, "message": "no"})


@pytest.mark.rule("index.error-id")
def test_an_error_for_another_request_counts_only_where_http_says_the_same() -> None:
    error = {"code": -1, "message": "no"}
    with pytest.raises(ProtocolError):
        respond(200, id=8, error=error)
    with pytest.raises(ServerError):
        respond(400, id=8, error=error)


@pytest.mark.rule("index.json-rpc", "index.result-member", "index.error-members", "index.error-code-integer")
@pytest.mark.parametrize(
    ("message", "field"),
    [
        ([], None),
        ("text", None),
        ({"id": "a-7", "result": {}}, "jsonrpc"),
        ({"jsonrpc": "1.0", "id": "a-7", "result": {}}, "jsonrpc"),
        ({"jsonrpc": "2.0", "id": "a-7"}, "result"),
        ({"jsonrpc": "2.0", "id": "a-7", "result": []}, "result"),
        ({"jsonrpc": "2.0", "id": "a-7", "result": {}, "error": {"code": 1, "message": ""}}, "error"),
        ({"jsonrpc": "2.0", "id": "a-7", "error": "text"}, "error"),
        ({"jsonrpc": "2.0", "id": "a-7", "error": {"code": "x", "message": ""}}, "error.code"),
        ({"jsonrpc": "2.0", "id": "a-7", "error": {"code": True, "message": ""}}, "error.code"),
    ],
)
def test_a_broken_envelope_names_its_field(message: Any, field: str | None) -> None:
    with pytest.raises(ProtocolError) as invalid:
        result_of(Incoming(message), "a-7")
    assert invalid.value.field == field


@pytest.mark.rule("index.error-members")
def test_an_error_without_words_still_has_a_message() -> None:
    with pytest.raises(ServerError, match="no reason"):
        respond(id="a-7", error={"code": -1})


@pytest.mark.rule(
    "http.method-unknown",
    "index.reserved-codes",
    "index.undeclared-capability-refused",
    "tasks.missing-capability",
    "tasks.verbs-undeclared",
    "wire.method-not-found-is-modern",
)
def test_known_errors_say_what_they_carry() -> None:
    required = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    missing = ServerError(-32021, "m", {"requiredCapabilities": required})
    assert missing.required_capabilities == required
    assert missing.supported is None
    assert ServerError(-32021, "m", "").required_capabilities == {}
    old = ServerError(-32022, "m", {"supported": ["2025-11-25", 5]})
    assert old.supported == ("2025-11-25",)
    assert ServerError(-32022, "m").supported == ()
    assert ServerError(-32601, "m").is_method_not_found
    assert ServerError(-32602, "m").is_invalid_params
    assert ServerError(-32020, "m").is_header_mismatch
    assert ServerError(-32600, "Server not initialized", None, 400).is_legacy
    assert not ServerError(-32022, "m", None, 400).is_legacy
    assert not ServerError(-32601, "m", None, 404).is_legacy
    assert ServerError(-32000, "Bad Request: Server not initialized", None, 400).is_legacy


@pytest.mark.parametrize("code", [-32601, -32602, -32603])
def test_a_refusal_with_http_400_is_no_sign_of_an_older_revision(code: int) -> None:
    assert not ServerError(code, "m", None, 400).is_legacy


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 250_000 + b"1]",
        b"[" + b'{"a":1},' * 125_001 + b"1]",
        b"{" + b",".join(b'"k%d":1' % number for number in range(250_001)) + b"}",
        b"[" + b'"",' * 250_001 + b'""]',
        b'["' + b'"' * 1_000_001 + b"," * 250_001,
    ],
)
def test_more_values_than_could_be_read_in_useful_time_are_refused_unread(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="more than 250,000 values"):
        decode(body, depth=64)


@pytest.mark.parametrize(
    "text", [b"a," * 400_000, b'[{\\",\\"' * 200_000, b"\\\\," * 300_000, b"[{," * 90_000]
)
def test_a_long_text_is_one_value_whatever_is_in_it(text: bytes) -> None:
    assert list(decode(b'{"x":"' + text + b'"}', depth=64)) == ["x"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"result": {"a": NaN}}', "NaN and Infinity are no numbers there (character 17)"),
        ('{"ü": [-Infinity]}'.encode(), "NaN and Infinity are no numbers there"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "a number has too many digits"),
        (b'{"a": nope}', "Expecting value"),
    ],
)
def test_what_is_no_json_is_said_in_words_for_a_person(body: bytes, said: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode(body, depth=64)
    assert said in refused.value.message
