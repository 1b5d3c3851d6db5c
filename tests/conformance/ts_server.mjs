// A server on the official TypeScript SDK (v2), which speaks 2026-07-28. The SDK has no Tasks extension: the three
// methods are written here, on the SDK's own seams for methods of an extension.
//
// node ts_server.mjs stdio | http PORT [json|sse]     the endpoint is http://127.0.0.1:PORT/mcp
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer, ProtocolError, createMcpHandler, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';

const TASKS = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const NAME_FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const text = said => ({ content: [{ type: 'text', text: said }] });
const object = (properties = {}) => fromJsonSchema({ type: 'object', properties });
const elicitation = message => inputRequired.elicit({ mode: 'form', message, requestedSchema: NAME_FORM });

const tasks = new Map();

function begin(work) {
    const now = new Date().toISOString();
    const task = { taskId: randomUUID(), status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: 60000, pollIntervalMs: 100 };
    tasks.set(task.taskId, task);
    work(task);
    return { resultType: 'task', ...task, content: [] };
}

function settle(task, changes) {
    if (['completed', 'failed', 'cancelled'].includes(task.status)) return;
    Object.assign(task, changes, { lastUpdatedAt: new Date().toISOString() });
}

function known(taskId) {
    const task = tasks.get(taskId);
    if (task === undefined) throw new ProtocolError(-32602, `Unknown task: ${taskId}`);
    return task;
}

function asks(task) {
    settle(task, { status: 'input_required', inputRequests: { name: elicitation('Whose task is it?') } });
}

function answered(task, responses) {
    const answer = responses?.name;
    if (task.status !== 'input_required' || answer === undefined) return;
    delete task.inputRequests;
    settle(task, { status: 'completed', result: text(`${answer.action} ${answer.content?.name ?? ''}`.trim()) });
}

function register(server, announce) {
    server.registerTool(
        'greet',
        {
            description: 'Greet; the region travels as a header, too.',
            inputSchema: object({ name: { type: 'string' }, region: { type: 'string', 'x-mcp-header': 'Region' } }),
        },
        ({ name }) => text(`Hello, ${name}!`),
    );
    server.registerTool(
        'add',
        {
            description: 'Add, with a structured result.',
            inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }),
            outputSchema: object({ sum: { type: 'number' } }),
        },
        ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
    );
    server.registerTool('progress', { description: 'Report progress while the call is open.' }, async ctx => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let step = 1; step <= 3 && progressToken !== undefined; step++) {
            const params = { progressToken, progress: step, total: 3, message: `step ${step}` };
            await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        }
        return text('done');
    });
    server.registerTool('ask_first', { description: 'Ask before answering, without a task.' }, ctx => {
        const answer = ctx.mcpReq.inputResponses?.who;
        if (answer === undefined)
            return inputRequired({ inputRequests: { who: elicitation('Who are you?') }, requestState: 'one "é" two' });
        return text(`${answer.action} ${answer.content?.name} ${ctx.mcpReq.requestState()}`);
    });
    server.registerTool('announce', { description: 'Tell subscribers that the tools have changed.' }, () => {
        announce();
        return text('announced');
    });
    server.registerTool(
        'slow',
        { description: 'A task.', inputSchema: object({ ms: { type: 'integer' } }) },
        ({ ms }) => begin(task => setTimeout(() => settle(task, { status: 'completed', result: text('ok') }), ms)),
    );
    server.registerTool('broken', { description: 'A task that fails.' }, () =>
        begin(task => settle(task, { status: 'failed', error: { code: -32603, message: 'out of paper' } })),
    );
    server.registerTool('ask', { description: 'A task that asks.' }, () => begin(asks));
}

function withTasks(mcp) {
    const reads = object({ taskId: { type: 'string' } });
    const on = (method, params, handle) =>
        mcp.server.setRequestHandler(method, { params }, (request, ctx) => {
            if (ctx.mcpReq.envelope?.[CAPABILITIES]?.extensions?.[TASKS] === undefined)
                throw new ProtocolError(-32021, 'Missing required client capability', {
                    requiredCapabilities: { extensions: { [TASKS]: {} } },
                });
            return handle(known(request.taskId), ctx, request);
        });
    on('tasks/get', reads, task => task);
    on('tasks/cancel', reads, task => (settle(task, { status: 'cancelled' }), {}));
    on('tasks/update', reads, (task, ctx, request) => {
        answered(task, ctx.mcpReq.inputResponses ?? request.inputResponses);
        return {};
    });
}

let announce = () => {};

function makeServer() {
    const capabilities = { tools: { listChanged: true }, extensions: { [TASKS]: {} } };
    const server = new McpServer({ name: 'ts-peer', version: '1.0.0' }, { capabilities });
    register(server, () => announce(server));
    withTasks(server);
    return server;
}

const [transport, port, responseMode = 'auto'] = process.argv.slice(2);
if (transport === 'stdio') {
    announce = server => server.sendToolListChanged();
    serveStdio(makeServer);
} else {
    const handler = createMcpHandler(makeServer, { responseMode, onerror: error => console.error(error.message) });
    announce = () => handler.notify.toolsChanged();
    const serve = toNodeHandler(handler);
    const guards = [localhostHostValidation(), localhostOriginValidation()];
    const listener = createServer((request, response) => {
        if (!guards.every(guard => guard(request, response))) return;
        if (request.url !== '/mcp') response.writeHead(404).end();
        else void serve(request, response);
    });
    listener.listen(Number(port), '127.0.0.1');
}
