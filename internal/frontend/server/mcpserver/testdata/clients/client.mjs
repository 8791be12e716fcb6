// Calls an agent with a client of others: client.mjs KIND PROGRAM, or client.mjs KIND URL KEY. It prints what came of each step as a line.
const [kind, program, key] = process.argv.slice(2);
let Client, StdioClientTransport, StreamableHTTPClientTransport, elicitation;
if (kind === "sdk") {
  ({ Client } = await import("@modelcontextprotocol/sdk/client/index.js"));
  ({ StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js"));
  ({ StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js"));
  ({ ElicitRequestSchema: elicitation } = await import("@modelcontextprotocol/sdk/types.js"));
} else {
  ({ Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client"));
  ({ StdioClientTransport } = await import("@modelcontextprotocol/client/stdio"));
  elicitation = "elicitation/create";
}
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(elicitation, async (request) => {
  console.log("asked", request.params.message);
  return { action: "accept", content: { answer: request.params.message.startsWith("Who") ? "Ada" : "publish" } };
});
const env = Object.fromEntries(Object.entries(process.env));
await client.connect(
  key
    ? new StreamableHTTPClientTransport(new URL(program), { requestInit: { headers: { Authorization: "Bearer " + key } } })
    : new StdioClientTransport({ command: program, args: ["--mcp"], env }),
);
console.log("tools", (await client.listTools()).tools.map((t) => t.name).join(" "));
let progress = 0;
const result = await client.callTool({ name: "ask", arguments: { prompt: "it" } }, ...(kind === "sdk" ? [undefined, { onprogress: () => progress++ }] : [{ onprogress: () => progress++ }]));
console.log("result", result.structuredContent.status, result.content[0].text);
const again = await client.callTool({ name: "loki_run", arguments: { run_id: result.structuredContent.run_id } });
console.log("again", again.structuredContent.status);
const wrong = await client.callTool({ name: "ask", arguments: { prompt: "it", mood: "x" } });
console.log("wrong", wrong.isError, wrong.content[0].text);
console.log("prompts", (await client.listPrompts()).prompts.length > 0);
const resource = await client.readResource({ uri: "loki://runs/" + result.structuredContent.run_id });
console.log("resource", JSON.parse(resource.contents[0].text).status);
console.log("progress", progress > 0);
await client.close();
