package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"loki/internal/frontend/cli"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
)

func TestMain(m *testing.M) {
	servertest.Main(m, func() int {
		return cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{Server: server.Serve})
	})
}

// files are the configuration of the servers in these tests.
var files = servertest.Files{
	"config.yaml": "model: builtin:echo\nclients:\n  - type: builtin\n    script: rules.yaml\n",
	"rules.yaml": `rules:
  - match: {tool_result: sunny}
    reply: 'It is fine: {{tool_result}}'
  - match: {text: And again}
    reply: Once more.
  - match: {text: Hello there}
    reply: Ahoy.
  - match: {text: prose}
    reply: No.
  - match: {text: weather, turn: 1}
    tool_calls:
      - name: get_weather
        arguments: {city: Oslo}
  - match: {text: both, turn: 1}
    tool_calls:
      - name: get_weather
        arguments: {city: Oslo}
      - name: get_weather
        arguments: {city: Graz}
  - match: {text: server tool, turn: 1}
    reply: Looking.
    tool_calls:
      - name: get_current_time
  - match: {text: server tool, turn: 2}
    reply: Done.
  - match: {text: think}
    reasoning: Hm.
    reply: Thought.
  - match: {text: voyage, turn: 1}
    tool_calls: [{name: user__ask, arguments: {question: How long?, options: [one day, two days]}}]
  - match: {text: voyage}
    reply: 'got {{tool_result}}'
  - match: {text: slow}
    delay: 200ms
    reply: Slowly.
  - match: {text: count}
    reply: 'one two three four five'
  - match: {text: json}
    reply: '{"city":"Oslo","days":2}'
  - match: {text: breaks}
    reply: one two three
    error: {kind: transient, message: connection lost, after_chunks: 2}
  - match: {text: busy}
    error: {kind: rate_limited, status: 429, message: too many requests, retry_after: 7s}
  - match: {text: cut}
    reply: half
    stop: length
  - match: {system: Be brief}
    reply: 'Brief: {{text}}'
default:
  reply: 'You said: {{text}}'
`,
	"roles/pirate.md":           "---\nmodel: builtin:script\n---\nBe brief.\n",
	"roles/gpt-pirate.md":       "---\nmodel: builtin:script\n---\nBe brief.\n",
	"roles/helper.md":           "---\nmodel: builtin:script\nenabled_tools: get_current_time\n---\nHelp.\n",
	"agents/guide/config.yaml":  "name: guide\nmodel: builtin:script\ninstructions: Be brief, {{who}}.\nvariables:\n  - name: who\n    description: who is asked\n    default: guide\n",
	"agents/hello/graph.yaml":   "name: hello\nversion: \"1.0\"\ndefault_model: builtin:echo\nstart: greet\nnodes:\n  greet:\n    type: llm\n    prompt: \"Hello, {{initial_prompt}}!\"\n    state_updates: {greeting: \"{{output}}\"}\n    next: done\n  done:\n    type: end\n    output: \"{{greeting}}\"\n",
	"agents/approve/graph.yaml": "name: approve\nversion: \"1.0\"\nstart: review\nnodes:\n  review:\n    type: approval\n    question: \"Ship {{initial_prompt}}?\"\n    options: [ship, hold]\n    routes: {ship: shipped, hold: held}\n    on_other: held\n  shipped:\n    type: end\n    output: \"Shipped {{initial_prompt}}.\"\n  held:\n    type: end\n    output: \"Held {{initial_prompt}}.\"\n",
	"agents/twice/graph.yaml":   "name: twice\nversion: \"1.0\"\ndefault_model: builtin:echo\nstart: draft\nnodes:\n  draft: {type: llm, prompt: \"{{initial_prompt}}\", next: title}\n  title: {type: input, question: \"Which title?\", next: ok}\n  ok: {type: approval, question: \"Ship?\", options: [ship, hold], routes: {ship: last, hold: out}, on_other: out}\n  last: {type: llm, prompt: \"{{initial_prompt}}\", next: out}\n  out: {type: end, output: Out.}\n",
	"agents/asker/config.yaml":  "name: asker\nmodel: builtin:script\ninstructions: Ask.\n",
	"agents/slow/graph.yaml":    "name: slow\nversion: \"1.0\"\nstart: work\nnodes:\n  work:\n    type: llm\n    model: builtin:script\n    prompt: \"{{initial_prompt}}\"\n    state_updates: {said: \"{{output}}\"}\n    next: done\n  done:\n    type: end\n    output: \"{{said}}\"\n",
	"agents/echo/config.yaml":   "name: echo\ninstructions: Twice.\n",
}

// newServer starts a server and returns its address.
func newServer(t *testing.T) string {
	t.Helper()
	return servertest.Start(t, files).URL
}

// post sends a request and returns the answer.
func post(t testing.TB, url, body string, header ...string) (status int, h http.Header, answer []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, answer
}

// get returns the value at a path of a JSON text, such as choices.0.message.content, as compact JSON or, of a string, its text;
// empty if there is none.
func get(t testing.TB, data []byte, path string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			n := 0
			if err := json.Unmarshal([]byte(name), &n); err != nil || n >= len(at) {
				return ""
			}
			v = at[n]
		default:
			return ""
		}
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// frames returns the data of the frames of a stream.
func frames(t testing.TB, stream []byte) (data [][]byte) {
	t.Helper()
	for lines := bufio.NewScanner(bytes.NewReader(stream)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, []byte(text))
		}
	}
	return data
}
