// foreign.mjs PROGRAM DIRECTORY: an editor whose agent is a foreign agent.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const [program, cwd] = process.argv.slice(2);
const child = spawn(program, ["--acp", "-a", "coder"], { stdio: ["pipe", "pipe", "inherit"], cwd });
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const m = methods.client;
let text = "";

const editor = client({ name: "test" })
  .onNotification(m.session.update, ({ params }) => {
    const u = params.update;
    if (u.sessionUpdate === "agent_message_chunk") text += u.content.text;
  })
  .onRequest(m.session.requestPermission, ({ params }) => {
    const diff = params.toolCall.content.find((c) => c.type === "diff");
    console.log("permission", params.toolCall.kind, JSON.stringify(diff?.oldText), JSON.stringify(diff?.newText));
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
  });

await editor.connectWith(stream, async (ctx) => {
  const a = methods.agent;
  await ctx.request(a.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await ctx.request(a.session.new, { cwd, mcpServers: [] });
  const { stopReason } = await ctx.request(a.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
  console.log("stop", stopReason);
  console.log("said", text.trim().replace(/\s+/g, " "));
});
child.stdin.end();
