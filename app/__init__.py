"""taskinbox: the inbox for questions that long-running MCP tasks are waiting on."""

__version__ = "0.1.0"
