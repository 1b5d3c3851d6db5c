"""Whatever is sent, the answer is a well-formed refusal or a result, and the service goes on."""

from __future__ import annotations

import json

from fakes.demo_wire import EVERYTHING, META, VERSION, headers_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

METHODS = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "subscriptions/listen",
    "initialize",
    "tasks/list",
)
CODES = {-32700, -32600, -32601, -32602, -32020, -32021, -32022}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
tools = st.sampled_from(["echo", "generate_report", "deploy_service", "ask_first", "two_questions"])
params = st.fixed_dictionaries(
    {},
    optional={
        "name": tools | values,
        "arguments": values
        | st.fixed_dictionaries({"text": values})
        | st.fixed_dictionaries({"size": values}),
        "taskId": values,
        "inputResponses": values,
        "requestState": values,
        "cursor": values,
        "notifications": values | st.fixed_dictionaries({"taskIds": values}),
    },
)
metas = st.just(
    {f"{META}protocolVersion": VERSION, f"{META}clientCapabilities": EVERYTHING}
) | st.fixed_dictionaries(
    {f"{META}protocolVersion": st.just(VERSION) | values, f"{META}clientCapabilities": values}
)


# One running service for all examples: that it survives them is the point.
at_ease = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(
    method=st.sampled_from(METHODS) | st.text(),
    params=params,
    meta=metas,
    request_id=st.integers() | st.text(),
)
@at_ease
async def test_any_request_is_answered_in_order(service, method, params, meta, request_id):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}
    given_headers = {**headers_for(message), "Mcp-Method": method if plain(method) else "tools/call"}
    if isinstance(params.get("notifications"), dict) and method == "subscriptions/listen":
        async with service.wire.stream(message, given_headers) as stream:
            if stream.response.headers["content-type"].startswith("text/event-stream"):
                assert (await stream.next())["params"]["_meta"][f"{META}subscriptionId"] == request_id
                return
    response = await service.wire.send(message, given_headers)
    reply = response.json()
    assert reply["jsonrpc"] == "2.0"
    assert reply["id"] == request_id
    if "error" in reply:
        assert reply["error"]["code"] in CODES
        assert response.status_code in (200, 400, 404)
    else:
        assert response.status_code == 200
        assert reply["result"]["resultType"] in ("complete", "task", "input_required")


@given(body=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
@at_ease
async def test_any_body_is_refused_or_accepted(service, body):
    response = await service.wire.send(body)
    assert response.status_code in (202, 400)
    if response.status_code == 400:
        assert response.json()["error"]["code"] in CODES


def plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()
