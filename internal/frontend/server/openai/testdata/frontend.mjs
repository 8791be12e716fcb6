// A chat front end, unmodified, with the server at the address in the first argument as its OpenAI: its own server is started and
// asked as its page would. Each line of the output is a check as JSON: {"name", "ok", "got"}.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { writeFile } from 'node:fs/promises'

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const port = probe.address().port
probe.close()
await writeFile('settings.js', `export default {
  chatGptClient: { openaiApiKey: 'any', reverseProxyUrl: '${process.argv[2]}/v1/chat/completions', modelOptions: { model: 'gpt-pirate' } },
  apiOptions: { port: ${port}, host: '127.0.0.1', clientToUse: 'chatgpt' },
}`)
const server = spawn('node', ['node_modules/nodejs-gpt/bin/server.js', '--settings=./settings.js'], { stdio: ['ignore', 'ignore', 'inherit'] })
const say = (body) => fetch(`http://127.0.0.1:${port}/conversation`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })

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

let first
await check('in one piece', async () => {
  for (let tries = 0; ; tries++) { // until it listens
    const answer = await say({ message: 'Hello there' }).catch((err) => { if (tries > 300) throw err })
    if (answer) {
      first = await answer.json()
      break
    }
    await new Promise((done) => setTimeout(done, 50))
  }
  assert.equal(first.response ?? JSON.stringify(first), 'Ahoy.')
})
await check('streamed, in the same conversation', async () => {
  const answer = await say({ message: 'And again', stream: true, conversationId: first.conversationId, parentMessageId: first.messageId })
  const text = await answer.text()
  assert.match(text, /"response":"Once more\."/)
  assert.match(text, /\[DONE\]/)
})
server.kill()
process.exit(failed ? 1 : 0)
