"""The embedded task service: a small, durable server of the Tasks extension.

Read it in this order: `tools` (what the jobs are), `store` (what survives a crash), `worker` (what moves a
job), `service` (the verbs), `wire` (HTTP and JSON-RPC), `server` (the process). It shares nothing with the
client: a client and a server that share code agree on their mistakes.
"""
