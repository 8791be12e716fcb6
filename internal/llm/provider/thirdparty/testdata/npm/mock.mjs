// Starts aimock on a free port of the loopback interface, writes its URL as a line, and
// ends when standard input does.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true, chunkSize: 7 });
mock.addFixtures([
  { match: { userMessage: "weather", hasToolResult: false }, response: {
    toolCalls: [{ name: "weather", arguments: '{"city":"Zürich","days":2}', id: "toolu_0123456789" }, { name: "weather", arguments: '{"city":"Oslo"}', id: "toolu_abcdefghij" }],
    finishReason: "tool_calls",
  } },
  { match: { userMessage: "weather", hasToolResult: true, toolResultContains: "18 degrees" }, response: { content: "It is 18 degrees in Zürich: \u{1F324}." } },
  { match: { userMessage: "think" }, response: { content: "Forty-two.", reasoning: "Let me see: six times seven." } },
  { match: { userMessage: "look and tell" }, response: {
    content: "I look it up.", toolCalls: [{ name: "weather", arguments: "{}", id: "toolu_look000001" }],
  } },
  { match: { userMessage: "long" }, response: { content: "Half a sen", finishReason: "length" } },
  { match: { userMessage: "hello" }, response: { content: "Hello, Größe! \u{1F600} <b>& so on." } },
  { match: { userMessage: "too often" }, response: { error: { message: "Rate limit reached.", type: "rate_limit_error" }, status: 429, retryAfter: 7 } },
  { match: { userMessage: "overloaded" }, response: { error: { message: "Overloaded.", type: "overloaded_error" }, status: 503 } },
  { match: { userMessage: "who am I" }, response: { error: { message: "Invalid key.", type: "authentication_error" }, status: 401 } },
]);
await mock.start();
console.log(mock.url);
process.stdin.resume().on("end", async () => {
  await mock.stop();
  process.exit();
});
