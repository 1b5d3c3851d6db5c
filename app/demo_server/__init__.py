"""The embedded task service: a small, durable server of the Tasks extension.

Read it in this order: `tools` and `demo_tools` (what the jobs are), `records`, `store` and `migrations` (what
survives a crash), `worker` (what moves a job), `owners` (whose it is), `service` (the verbs), `listening`
(who is told), `wire` (HTTP and JSON-RPC), `server` (the process). It shares nothing with the client: a client
and a server that share code agree on their mistakes.
"""
