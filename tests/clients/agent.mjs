// What an agent's host does, by the official clients for TypeScript: lists every tool and resource, and calls each tool once.
// Arguments: which client (`handshake` or `stateless`). Prints what it found as one line of JSON.

const [which] = process.argv.slice(2);
const url = new URL(`${process.env.JOINERY_URL}/mcp`);
const requestInit = { headers: { Authorization: `Bearer ${process.env.JOINERY_KEY}` } };
const given = JSON.parse(process.env.JOINERY_ARGUMENTS);

async function connected() {
  const about = { name: "joinery-tests", version: "1.0.0" };
  if (which === "handshake") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client(about);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(about, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return client;
}

async function everyTool(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const client = await connected();
const called = {};
const tools = await everyTool(client);
for (const tool of tools) {
  // the client itself holds what is answered to the tool's output schema
  const answer = await client.callTool({ name: tool.name, arguments: given[tool.name] ?? {} });
  called[tool.name] = answer.isError ? answer.structuredContent.code : "ok";
  if (typeof answer.content[0].text !== "string") throw new Error(`${tool.name}: no text`);
}
const read = {};
for (const { uri } of (await client.listResources()).resources) {
  read[uri] = (await client.readResource({ uri })).contents[0].mimeType;
}
const templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
await client.close();
console.log(JSON.stringify({ called, read, templates }));
