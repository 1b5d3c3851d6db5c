"""The only place where mcp_client meets storage. No Textual here."""
