// Clients of OpenAI's API, unmodified, against the server at the address in the first argument. Each line of
// the output is a check as JSON: {"name", "ok", "got"}. The exit status is 1 if one failed.
import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText, generateObject, embedMany, tool, stepCountIs } from 'ai'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { tool as langTool } from '@langchain/core/tools'
import { ToolMessage, HumanMessage } from '@langchain/core/messages'
import { z } from 'zod'

const baseURL = process.argv[2] + '/v1'
const apiKey = 'any'
let failed = false

async function check(name, does) {
  try {
    await does()
    console.log(JSON.stringify({ name, ok: true }))
  } catch (err) {
    failed = true
    console.log(JSON.stringify({ name, ok: false, got: String(err.stack ?? err) }))
  }
}

const openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
const question = [{ role: 'user', content: 'Hello' }]
const weather = {
  type: 'function',
  function: { name: 'get_weather', description: 'Tells the weather.', strict: true, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } },
}
const trip = z.object({ city: z.string(), days: z.number() })

await check('openai: models', async () => {
  const ids = []
  for await (const m of openai.models.list()) ids.push(m.id)
  assert.ok(ids.includes('builtin:echo'), ids.join())
  assert.ok(ids.includes('agent:hello'), ids.join())
})
await check('openai: completion', async () => {
  const c = await openai.chat.completions.create({ model: 'builtin:echo', messages: question })
  assert.equal(c.choices[0].message.content, 'Hello')
  assert.equal(c.choices[0].finish_reason, 'stop')
  assert.ok(c.usage.total_tokens > 0)
})
await check('openai: stream', async () => {
  const stream = await openai.chat.completions.create({ model: 'builtin:script', messages: question, stream: true, stream_options: { include_usage: true } })
  let text = '', usage
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? ''
    usage = chunk.usage ?? usage
  }
  assert.equal(text, 'You said: Hello')
  assert.ok(usage.completion_tokens > 0)
})
await check('openai: stream helper', async () => {
  const stream = openai.chat.completions.stream({ model: 'builtin:script', messages: [{ role: 'user', content: 'weather?' }], tools: [weather] })
  const c = await stream.finalChatCompletion()
  assert.equal(c.choices[0].message.tool_calls[0].function.arguments, '{"city":"Oslo"}')
  assert.equal(c.choices[0].finish_reason, 'tool_calls')
})
await check('openai: runTools', async () => {
  const runner = openai.chat.completions.runTools({
    model: 'builtin:script', messages: [{ role: 'user', content: 'weather?' }],
    tools: [{ type: 'function', function: { ...weather.function, parse: JSON.parse, function: async ({ city }) => `sunny in ${city}` } }],
  })
  assert.equal(await runner.finalContent(), 'It is fine: sunny in Oslo')
})
await check('openai: runTools, streamed', async () => {
  const runner = openai.chat.completions.runTools({
    model: 'builtin:script', stream: true, messages: [{ role: 'user', content: 'weather?' }],
    tools: [{ type: 'function', function: { ...weather.function, parse: JSON.parse, function: async ({ city }) => `sunny in ${city}` } }],
  })
  assert.equal(await runner.finalContent(), 'It is fine: sunny in Oslo')
})
await check('openai: parse', async () => {
  const c = await openai.chat.completions.parse({ model: 'builtin:script', messages: [{ role: 'user', content: 'json' }], response_format: zodResponseFormat(trip, 'trip') })
  assert.deepEqual(c.choices[0].message.parsed, { city: 'Oslo', days: 2 })
})
await check('openai: an agent with a question', async () => {
  const first = await openai.chat.completions.create({ model: 'agent:approve', messages: [{ role: 'user', content: 'it' }] })
  assert.match(first.choices[0].message.content, /Ship it\?/)
  const messages = [{ role: 'user', content: 'it' }, first.choices[0].message, { role: 'user', content: 'ship' }]
  const second = await openai.chat.completions.create({ model: 'agent:approve', messages }, { headers: { 'X-Loki-Run-Id': first.loki.run_id } })
  assert.equal(second.choices[0].message.content, 'Shipped it.')
})
await check('openai: errors', async () => {
  const of = (body) => openai.chat.completions.create({ model: 'builtin:echo', messages: question, ...body }).then(() => assert.fail('no error'), (err) => err)
  let err = await of({ n: 2 })
  assert.ok(err instanceof OpenAI.BadRequestError && err.param === 'n' && err.code === 'invalid_request', String(err))
  err = await of({ model: 'nothing' })
  assert.ok(err instanceof OpenAI.NotFoundError && err.code === 'model_not_found', String(err))
  err = await of({ model: 'builtin:script', messages: [{ role: 'user', content: 'busy' }] })
  assert.ok(err instanceof OpenAI.RateLimitError && err.headers.get('retry-after') === '7', String(err))
})
await check('openai: a stream that breaks', async () => {
  const stream = await openai.chat.completions.create({ model: 'builtin:script', messages: [{ role: 'user', content: 'breaks' }], stream: true })
  let text = ''
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? ''
  }, (err) => err instanceof OpenAI.APIError && err.code === 'provider_error')
  assert.ok(text.startsWith('one'), text)
})
await check('openai: embeddings', async () => {
  const e = await openai.embeddings.create({ model: 'builtin:hash', input: ['boats on a lake', 'trees'] })
  assert.equal(e.data.length, 2)
  assert.equal(e.data[0].embedding.length, 1024)
  assert.ok(e.data[0].embedding.some((x) => x !== 0))
})
await check('openai: responses', async () => {
  const r = await openai.responses.create({ model: 'builtin:echo', input: 'Hello' })
  assert.equal(r.output_text, 'Hello')
  assert.equal(r.status, 'completed')
  const again = await openai.responses.create({ model: 'builtin:echo', input: 'Again', previous_response_id: r.id })
  assert.equal(again.output_text, 'Again')
  assert.equal(again.previous_response_id, r.id)
})
await check('openai: responses, streamed', async () => {
  const stream = openai.responses.stream({ model: 'builtin:script', input: [{ role: 'user', content: 'weather?' }], tools: [{ type: 'function', ...weather.function }] })
  const types = []
  for await (const event of stream) types.push(event.type)
  const r = await stream.finalResponse()
  assert.equal(r.output[0].type, 'function_call')
  assert.equal(r.output[0].arguments, '{"city":"Oslo"}')
  assert.equal(types[0], 'response.created')
  assert.equal(types.at(-1), 'response.completed')
  const next = await openai.responses.create({ model: 'builtin:script', previous_response_id: r.id, input: [{ type: 'function_call_output', call_id: r.output[0].call_id, output: 'sunny' }] })
  assert.equal(next.output_text, 'It is fine: sunny')
})
await check('openai: responses, parsed', async () => {
  const r = await openai.responses.parse({ model: 'builtin:script', input: 'json', text: { format: { type: 'json_schema', name: 'trip', strict: true, schema: z.toJSONSchema(trip) } }, store: false })
  assert.deepEqual(r.output_parsed, { city: 'Oslo', days: 2 })
})

const provider = createOpenAICompatible({ name: 'loki', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })
const aiWeather = tool({ description: 'Tells the weather.', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `sunny in ${city}` })

await check('ai: generateText', async () => {
  const r = await generateText({ model: provider('builtin:echo'), prompt: 'Hello', maxRetries: 0 })
  assert.equal(r.text, 'Hello')
  assert.ok(r.usage.totalTokens > 0)
})
await check('ai: streamText', async () => {
  const r = streamText({ model: provider('builtin:script'), system: 'Be brief', prompt: 'Hello', maxRetries: 0 })
  let text = ''
  for await (const piece of r.textStream) text += piece
  assert.equal(text, 'Brief: Hello')
  assert.ok((await r.usage).totalTokens > 0)
})
await check('ai: reasoning', async () => {
  const r = streamText({ model: provider('builtin:script'), prompt: 'think', maxRetries: 0 })
  assert.equal(await r.reasoningText, 'Hm.')
  assert.equal(await r.text, 'Thought.')
})
await check('ai: tools', async () => {
  const r = await generateText({ model: provider('builtin:script'), prompt: 'weather?', tools: { get_weather: aiWeather }, stopWhen: stepCountIs(3), maxRetries: 0 })
  assert.equal(r.text, 'It is fine: sunny in Oslo')
})
await check('ai: tools, streamed', async () => {
  const r = streamText({ model: provider('builtin:script'), prompt: 'weather?', tools: { get_weather: aiWeather }, stopWhen: stepCountIs(3), maxRetries: 0 })
  await r.consumeStream()
  assert.equal(await r.text, 'It is fine: sunny in Oslo')
})
await check('ai: generateObject', async () => {
  const r = await generateObject({ model: provider('builtin:script'), prompt: 'json', schema: trip, maxRetries: 0 })
  assert.deepEqual(r.object, { city: 'Oslo', days: 2 })
})
await check('ai: an agent', async () => {
  const r = await generateText({ model: provider('agent:hello'), prompt: 'you', temperature: 0.2, maxRetries: 0 })
  assert.equal(r.text, 'Hello, you!')
})
await check('ai: embeddings', async () => {
  const r = await embedMany({ model: provider.embeddingModel('builtin:hash'), values: ['a boat', 'a tree'], maxRetries: 0 })
  assert.equal(r.embeddings.length, 2)
})

const chat = (model, more) => new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL }, ...more })
const langWeather = langTool(async ({ city }) => `sunny in ${city}`, { name: 'get_weather', description: 'Tells the weather.', schema: z.object({ city: z.string() }) })

await check('langchain: invoke', async () => {
  const m = await chat('builtin:echo').invoke('Hello')
  assert.equal(m.content, 'Hello')
  assert.ok(m.usage_metadata.total_tokens > 0)
})
await check('langchain: stream', async () => {
  let text = ''
  for await (const piece of await chat('builtin:script').stream('Hello')) text += piece.content
  assert.equal(text, 'You said: Hello')
})
await check('langchain: tools', async () => {
  const bound = chat('builtin:script').bindTools([langWeather])
  const messages = [new HumanMessage('weather?')]
  const first = await bound.invoke(messages)
  assert.deepEqual(first.tool_calls[0].args, { city: 'Oslo' })
  messages.push(first, new ToolMessage({ tool_call_id: first.tool_calls[0].id, content: await langWeather.invoke(first.tool_calls[0].args) }))
  assert.equal((await bound.invoke(messages)).content, 'It is fine: sunny in Oslo')
})
await check('langchain: withStructuredOutput', async () => {
  const r = await chat('builtin:script').withStructuredOutput(trip, { method: 'jsonSchema', name: 'trip' }).invoke('json')
  assert.deepEqual(r, { city: 'Oslo', days: 2 })
})
await check('langchain: withStructuredOutput by a call', async () => {
  const r = await chat('builtin:script').withStructuredOutput(z.object({ city: z.string() }), { method: 'functionCalling', name: 'get_weather' }).invoke('weather?')
  assert.deepEqual(r, { city: 'Oslo' })
})
await check('langchain: responses', async () => {
  const m = await chat('builtin:echo', { useResponsesApi: true }).invoke('Hello')
  assert.equal(m.text, 'Hello')
})
await check('langchain: embeddings', async () => {
  const e = new OpenAIEmbeddings({ model: 'builtin:hash', apiKey, maxRetries: 0, configuration: { baseURL } })
  const [v] = await e.embedDocuments(['a boat'])
  assert.equal(v.length, 1024)
})

process.exit(failed ? 1 : 0)
