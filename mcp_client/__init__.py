"""A client for the Model Context Protocol, revision 2026-07-28, with the Tasks extension.

```python
async with McpClient.http("http://127.0.0.1:8000/mcp") as client:
    outcome = await client.call_tool("deploy", {"build": 4711})
    if isinstance(outcome, CreateTaskResult):
        task = await client.get_task(outcome.task_id)
```

It knows the protocol and nothing else: no user interface, no storage, no policy about when to ask again.
"""

from mcp_client.client import McpClient
from mcp_client.errors import (
    AuthRequired,
    InvalidRequest,
    LegacyServer,
    McpError,
    ProtocolError,
    ServerError,
    TransportError,
)
from mcp_client.http import HttpTransport
from mcp_client.jsonrpc import PROTOCOL_VERSION, Incoming, JSONObject, JSONValue, Outgoing, RawJSON
from mcp_client.limits import Limits
from mcp_client.reading import parse_time, read_handle, read_input_required, read_task, read_tool_result
from mcp_client.stdio import StdioTransport
from mcp_client.subscription import (
    Ending,
    Missed,
    Subscription,
    SubscriptionEvent,
    TaskNotification,
    ToolsChanged,
)
from mcp_client.tool_headers import MirroredParameter
from mcp_client.transport import Transport
from mcp_client.types import (
    INPUT_METHODS,
    TASK_METHODS,
    TASKS_EXTENSION,
    CallOutcome,
    CallToolResult,
    CancelledTask,
    ClientCapabilities,
    CompletedTask,
    CompleteResult,
    CreateTaskResult,
    DetailedTask,
    DiscoverResult,
    FailedTask,
    Implementation,
    InputRequest,
    InputRequiredResult,
    InputRequiredTask,
    Progress,
    Tool,
    ToolList,
    WorkingTask,
)

__all__ = [
    "INPUT_METHODS",
    "PROTOCOL_VERSION",
    "TASKS_EXTENSION",
    "TASK_METHODS",
    "AuthRequired",
    "CallOutcome",
    "CallToolResult",
    "CancelledTask",
    "ClientCapabilities",
    "CompleteResult",
    "CompletedTask",
    "CreateTaskResult",
    "DetailedTask",
    "DiscoverResult",
    "Ending",
    "FailedTask",
    "HttpTransport",
    "Implementation",
    "Incoming",
    "InputRequest",
    "InputRequiredResult",
    "InputRequiredTask",
    "InvalidRequest",
    "JSONObject",
    "JSONValue",
    "LegacyServer",
    "Limits",
    "McpClient",
    "McpError",
    "MirroredParameter",
    "Missed",
    "Outgoing",
    "Progress",
    "ProtocolError",
    "RawJSON",
    "ServerError",
    "StdioTransport",
    "Subscription",
    "SubscriptionEvent",
    "TaskNotification",
    "Tool",
    "ToolList",
    "ToolsChanged",
    "Transport",
    "TransportError",
    "WorkingTask",
    "parse_time",
    "read_handle",
    "read_input_required",
    "read_task",
    "read_tool_result",
]
