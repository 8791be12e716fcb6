// client.mjs PROGRAM DIRECTORY: an editor that has an agent write a file.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const [program, cwd] = process.argv.slice(2);
const child = spawn(program, ["--acp"], { stdio: ["pipe", "pipe", "inherit"], cwd });
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const m = methods.client;
const updates = [];
let text = "";

const editor = client({ name: "test" })
  .onNotification(m.session.update, ({ params }) => {
    const u = params.update;
    updates.push(u.sessionUpdate);
    if (u.sessionUpdate === "agent_message_chunk") text += u.content.text;
  })
  .onRequest(m.session.requestPermission, ({ params }) => {
    const diff = params.toolCall.content.find((c) => c.type === "diff");
    console.log("permission", params.toolCall.title, JSON.stringify(diff.newText), params.options.map((o) => o.kind).join(" "));
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
  })
  .onRequest(m.fs.readTextFile, ({ params }) => ({ content: readFileSync(params.path, "utf8") + "(not saved)\n" }))
  .onRequest(m.fs.writeTextFile, ({ params }) => {
    writeFileSync(params.path, params.content + "(by the editor)\n");
    return {};
  });

await editor.connectWith(stream, async (ctx) => {
  const a = methods.agent;
  const init = await ctx.request(a.initialize, {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, auth: { terminal: true } },
  });
  console.log("version", init.protocolVersion, init.authMethods.map((x) => x.id).join(" "));
  const { sessionId, modes } = await ctx.request(a.session.new, { cwd, mcpServers: [] });
  console.log("modes", modes.currentModeId, modes.availableModes.map((x) => x.id).join(" "));
  const prompt = (said) => ctx.request(a.session.prompt, { sessionId, prompt: [{ type: "text", text: said }] });
  console.log("stop", (await prompt("write it")).stopReason, JSON.stringify(text));
  console.log("file", JSON.stringify(readFileSync(cwd + "/made.txt", "utf8")));
  text = "";
  await prompt("read it");
  console.log("read", JSON.stringify(text));
  const slow = prompt("late");
  await ctx.notify(a.session.cancel, { sessionId });
  console.log("stop", (await slow).stopReason);
  const { sessions } = await ctx.request(a.session.list, { cwd });
  console.log("listed", sessions.map((s) => s.title).join());
  updates.length = 0;
  await ctx.request(a.session.load, { sessionId, cwd, mcpServers: [] });
  console.log("replayed", updates.filter((u) => !u.startsWith("available")).slice(0, 8).join(" ")); // the turn that was canceled may be among the rest
  try {
    await ctx.request(a.session.prompt, { sessionId: "none", prompt: [] });
  } catch (e) {
    console.log("error", e.code);
  }
});
child.stdin.end();
child.on("exit", (code) => console.log("exit", code));
