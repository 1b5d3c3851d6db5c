"""The servers file: ``mcp.json``, in the ``mcpServers`` form that other hosts use.

```json
{"mcpServers": {
  "ci": {"url": "https://ci.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  "files": {"command": "npx", "args": ["-y", "some-server"], "env": {"API_KEY": "${API_KEY}"}}
}}
```

Reading names needs the standard library alone, so that listing the inbox stays quick; `connection` validates
an entry in full, and expands ``${VAR}`` and ``${VAR:-default}``, when a program is about to connect. What
this program does not know is kept when it rewrites the file.
"""

from app.config.abilities import NONE, Abilities, folder, present
from app.config.entries import (
    NAME_LIMIT,
    Connection,
    HttpConnection,
    ServerEntry,
    StdioConnection,
    check_name,
    check_url,
)
from app.config.errors import ConfigError, UnknownServer
from app.config.file import (
    ServersFile,
    add_command,
    add_server,
    connection,
    remove_server,
    servers,
    set_abilities,
)

__all__ = [
    "NAME_LIMIT",
    "NONE",
    "Abilities",
    "ConfigError",
    "Connection",
    "HttpConnection",
    "ServerEntry",
    "ServersFile",
    "StdioConnection",
    "UnknownServer",
    "add_command",
    "add_server",
    "check_name",
    "check_url",
    "connection",
    "folder",
    "present",
    "remove_server",
    "servers",
    "set_abilities",
]
