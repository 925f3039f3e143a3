// mcp-remote between a host that speaks over pipes and /mcp: it signs in by the browser, here a program that allows what is asked.
// Prints the tools that were offered, what calling one answered, and what was asked for at each sign-in.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { consent } from "./browsing.mjs";

const asked = [];
const program = "node_modules/mcp-remote/dist/proxy.js";
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [program, `${process.env.JOINERY_URL}/mcp`, "--allow-http", "--transport", "http-only"],
  env: { HOME: process.env.MCP_HOME, MCP_REMOTE_CONFIG_DIR: process.env.MCP_HOME, PATH: process.env.MCP_HOME },
  stderr: "pipe",
});
let said = "";
transport.stderr.on("data", async (piece) => {
  said += piece;
  for (const [place] of said.matchAll(/https?:\/\/\S+\/oauth\/authorize\?\S+(?=\s)/g)) {
    if (asked.includes(place)) continue;
    asked.push(place);
    await fetch(await consent(new URL(place)));
  }
});

const client = new Client({ name: "joinery-tests", version: "1.0.0" });
try {
  await client.connect(transport, { timeout: 20_000 });
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const { isError, structuredContent } = await client.callTool({ name: "sources_list", arguments: {} });
  const scopes = asked.map((place) => new URL(place).searchParams.get("scope"));
  const resources = asked.map((place) => new URL(place).searchParams.get("resource"));
  console.log(JSON.stringify({ tools, isError: Boolean(isError), object: structuredContent.object, scopes, resources }));
} catch (error) {
  console.error(said);
  throw error;
} finally {
  await client.close();
}
