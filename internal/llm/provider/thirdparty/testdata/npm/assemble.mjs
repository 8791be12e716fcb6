// Asks servers through the official SDKs and tells what these make of the replies.
// Standard input is a list of jobs, standard output the list of what came:
//
//   job    {sdk, base, model, stream, prompt, tool}
//   result {texts, reasoning, calls: [{id, name, arguments}], stop, input, output,
//           cached, written, thinking} or {error}
//
// Counts are in tokens: input is the whole prompt, output the whole reply.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { CohereClientV2 } from "cohere-ai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from "@aws-sdk/client-bedrock-runtime";

const schema = { type: "object", properties: { city: { type: "string" } } };
const about = { name: "weather", description: "Tells the weather." };

const sdks = {
  async openai_chat(job) {
    const client = new OpenAI({ apiKey: "sk-test", baseURL: job.base + "/v1", maxRetries: 0 });
    const request = { model: job.model, messages: [{ role: "user", content: job.prompt }] };
    if (job.tool) request.tools = [{ type: "function", function: { ...about, parameters: schema } }];
    const reply = job.stream
      ? await client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(request);
    const { message, finish_reason } = reply.choices.find((c) => c.index === 0);
    const { usage } = reply;
    return {
      texts: [message.content ?? "", message.refusal ?? ""],
      calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments })),
      stop: finish_reason,
      input: usage?.prompt_tokens,
      output: usage?.completion_tokens,
      cached: usage?.prompt_tokens_details?.cached_tokens,
      thinking: usage?.completion_tokens_details?.reasoning_tokens,
    };
  },

  async openai_responses(job) {
    const client = new OpenAI({ apiKey: "sk-test", baseURL: job.base + "/v1", maxRetries: 0 });
    const request = { model: job.model, input: job.prompt };
    if (job.tool) request.tools = [{ type: "function", ...about, parameters: schema, strict: false }];
    const reply = job.stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    const items = (type) => reply.output.filter((item) => item.type === type);
    const { usage } = reply;
    return {
      texts: items("message").flatMap((m) => m.content).map((p) => p.text ?? p.refusal ?? ""),
      reasoning: items("reasoning").flatMap((r) => [...(r.summary ?? []), ...(r.content ?? [])]).map((p) => p.text).join(""),
      calls: items("function_call").map((c) => ({ id: c.call_id, name: c.name, arguments: c.arguments })),
      stop: reply.incomplete_details?.reason ?? reply.status,
      input: usage?.input_tokens,
      output: usage?.output_tokens,
      cached: usage?.input_tokens_details?.cached_tokens,
      thinking: usage?.output_tokens_details?.reasoning_tokens,
    };
  },

  async anthropic(job) {
    const client = new Anthropic({ apiKey: "sk-test", baseURL: job.base, maxRetries: 0 });
    const request = { model: job.model, max_tokens: 1000, messages: [{ role: "user", content: job.prompt }] };
    if (job.tool) request.tools = [{ ...about, input_schema: schema }];
    const reply = job.stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    const blocks = (type) => reply.content.filter((block) => block.type === type);
    const { usage } = reply;
    return {
      texts: blocks("text").map((b) => b.text),
      reasoning: blocks("thinking").map((b) => b.thinking).join(""),
      calls: blocks("tool_use").map((b) => ({ id: b.id, name: b.name, arguments: JSON.stringify(b.input) })),
      stop: reply.stop_reason,
      input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
      output: usage.output_tokens,
      cached: usage.cache_read_input_tokens ?? 0,
      written: usage.cache_creation_input_tokens ?? 0,
    };
  },

  async gemini(job) {
    const client = new GoogleGenAI({ apiKey: "sk-test", httpOptions: { baseUrl: job.base, apiVersion: "v1beta", retryOptions: { attempts: 1 } } });
    const request = { model: job.model, contents: job.prompt };
    if (job.tool) request.config = { tools: [{ functionDeclarations: [{ ...about, parametersJsonSchema: schema }] }] };
    const replies = [];
    if (job.stream) {
      for await (const piece of await client.models.generateContentStream(request)) replies.push(piece);
    } else {
      replies.push(await client.models.generateContent(request));
    }
    const candidates = replies.map((r) => r.candidates?.[0]).filter(Boolean);
    const parts = candidates.flatMap((c) => c.content?.parts ?? []);
    const usage = replies.map((r) => r.usageMetadata).filter(Boolean).at(-1) ?? {};
    const thinking = usage.thoughtsTokenCount ?? 0;
    return {
      texts: parts.filter((p) => p.text && !p.thought).map((p) => p.text),
      reasoning: parts.filter((p) => p.text && p.thought).map((p) => p.text).join(""),
      calls: parts.filter((p) => p.functionCall).map(({ functionCall: c }) => ({ id: c.id ?? "", name: c.name, arguments: JSON.stringify(c.args ?? {}) })),
      stop: candidates.map((c) => c.finishReason).filter(Boolean).at(-1),
      input: (usage.promptTokenCount ?? 0) + (usage.toolUsePromptTokenCount ?? 0),
      output: (usage.candidatesTokenCount ?? 0) + thinking,
      cached: usage.cachedContentTokenCount,
      thinking,
    };
  },

  async bedrock(job) {
    const client = new BedrockRuntimeClient({
      region: "us-east-1", endpoint: job.base, maxAttempts: 1, credentials: { accessKeyId: "AKIATEST", secretAccessKey: "secret" },
      requestHandler: new NodeHttpHandler(), // the default speaks HTTP/2 only
    });
    const request = { modelId: job.model, messages: [{ role: "user", content: [{ text: job.prompt }] }] };
    if (job.tool) request.toolConfig = { tools: [{ toolSpec: { ...about, inputSchema: { json: schema } } }] };
    const blocks = []; // {text}, {reasoning}, {call}; of a stream by the index that it gives
    let stop, usage = {};
    if (job.stream) {
      for await (const event of (await client.send(new ConverseStreamCommand(request))).stream) {
        const { contentBlockStart: start, contentBlockDelta: delta } = event;
        if (start?.start?.toolUse) {
          const { toolUseId: id, name } = start.start.toolUse;
          blocks[start.contentBlockIndex] = { call: { id, name, arguments: "" } };
        }
        if (delta) {
          const block = (blocks[delta.contentBlockIndex] ??= {});
          const { text, reasoningContent, toolUse } = delta.delta;
          if (text) block.text = (block.text ?? "") + text;
          if (reasoningContent?.text) block.reasoning = (block.reasoning ?? "") + reasoningContent.text;
          if (toolUse && block.call) block.call.arguments += toolUse.input;
        }
        stop ??= event.messageStop?.stopReason;
        usage = event.metadata?.usage ?? usage;
      }
    } else {
      const reply = await client.send(new ConverseCommand(request));
      ({ stopReason: stop, usage } = reply);
      for (const { text, reasoningContent, toolUse } of reply.output.message.content) {
        const call = toolUse && { id: toolUse.toolUseId, name: toolUse.name, arguments: JSON.stringify(toolUse.input) };
        blocks.push({ text, reasoning: reasoningContent?.reasoningText?.text, call });
      }
    }
    const all = (kind) => blocks.filter((b) => b?.[kind]).map((b) => b[kind]);
    return {
      texts: all("text"),
      reasoning: all("reasoning").join(""),
      calls: all("call"),
      stop,
      input: (usage.inputTokens ?? 0) + (usage.cacheReadInputTokens ?? 0) + (usage.cacheWriteInputTokens ?? 0),
      output: usage.outputTokens,
      cached: usage.cacheReadInputTokens,
      written: usage.cacheWriteInputTokens,
    };
  },

  async cohere(job) {
    const client = new CohereClientV2({ token: "sk-test", environment: job.base, maxRetries: 0 });
    const request = { model: job.model, messages: [{ role: "user", content: job.prompt }] };
    if (job.tool) request.tools = [{ type: "function", function: { ...about, parameters: schema } }];
    const texts = [], thoughts = [], calls = [];
    let plan = "", stop, usage;
    if (job.stream) {
      const at = (list, index, text) => (list[index] = (list[index] ?? "") + (text ?? ""));
      for await (const event of await client.chatStream(request)) {
        const message = event.delta?.message;
        switch (event.type) {
          case "content-start":
          case "content-delta":
            at(texts, event.index, message.content.text);
            at(thoughts, event.index, message.content.thinking);
            break;
          case "tool-plan-delta":
            plan += message.toolPlan;
            break;
          case "tool-call-start":
            calls[event.index] = { id: message.toolCalls.id, name: message.toolCalls.function.name, arguments: message.toolCalls.function.arguments ?? "" };
            break;
          case "tool-call-delta":
            calls[event.index].arguments += message.toolCalls.function.arguments;
            break;
          case "message-end":
            stop = event.delta.finishReason;
            usage = event.delta.usage;
        }
      }
    } else {
      const reply = await client.chat(request);
      plan = reply.message.toolPlan ?? "";
      texts.push(...(reply.message.content ?? []).map((p) => p.text ?? ""));
      thoughts.push(...(reply.message.content ?? []).map((p) => p.thinking ?? ""));
      calls.push(...(reply.message.toolCalls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments })));
      stop = reply.finishReason;
      usage = reply.usage;
    }
    const tokens = usage?.billedUnits ?? usage?.tokens;
    return {
      texts: texts.length ? texts : [plan], reasoning: thoughts.join(""), calls, stop,
      input: tokens?.inputTokens, output: tokens?.outputTokens, cached: usage?.cachedTokens,
    };
  },
};

const input = [];
for await (const piece of process.stdin) input.push(piece);
const results = [];
for (const job of JSON.parse(Buffer.concat(input).toString())) {
  try {
    results.push(await sdks[job.sdk](job));
  } catch (e) {
    results.push({ error: `${e?.name}: ${e?.message}` });
  }
}
process.stdout.write(JSON.stringify(results));
