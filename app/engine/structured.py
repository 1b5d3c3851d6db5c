"""A structured result against the output schema of its tool (server/tools, "Output Schema").

Both come from a server: the schema is made safe as a form's is, and the work is bounded.
"""

from __future__ import annotations

import asyncio
from typing import Any

from app.forms import SchemaRefused
from app.forms.jsonvalues import measure, normal
from app.forms.judge import Judge
from app.forms.schemas import read_schema


async def check_output(schema: Any, value: Any) -> tuple[str, ...]:
    """Say in what way *value* breaks *schema*; bounded in time, and off the event loop's thread."""
    return await asyncio.to_thread(_judge, schema, value)


def _judge(schema: Any, value: Any) -> tuple[str, ...]:
    try:
        readable = read_schema(schema)
    except SchemaRefused as error:
        return (f"The structured result was not checked; of the tool's output schema: {error}.",)
    too_large = measure(value)
    if too_large is not None:
        return (f"The structured result was not checked: {too_large}.",)
    broken = Judge(readable).problem(normal(value), readable.root)
    if broken is not None:
        return (f"The structured result breaks the tool's output schema: {broken}.",)
    # A schema of which something was left out, such as a reference to the network, proves nothing.
    left_out = readable.complaints(readable.root)
    if left_out:
        return (f"The structured result was checked in part; of the tool's output schema: {left_out[0]}.",)
    return ()
