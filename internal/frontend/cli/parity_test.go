package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// critics asks a model in parallel, in a map and for a JSON object.
const critics = `
name: critics
initial_state: {items: [one, two, three]}
reducers: {notes: concat}
start: plan
nodes:
  plan: {type: script, script: plan.sh, next: [facts, style]}
  facts: {type: llm, prompt: "facts of {{initial_prompt}}", state_updates: {notes: "{{output}}"}, next: each}
  style: {type: llm, prompt: "style of {{initial_prompt}}", state_updates: {notes: "{{output}}"}, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: judge, max_concurrency: 1, collect_into: verdicts, next: sum}
  judge: {type: llm, instructions: Be brief., prompt: "judge {{item}}"}
  sum:
    type: llm
    prompt: "sum up {{verdicts}}"
    output_schema: {type: object, properties: {score: {type: integer}}, required: [score]}
    next: done
  done: {type: end, output: "{{notes}} {{verdicts}} {{score}}"}
`

// answers is what the model says to each prompt.
var answers = map[string]string{
	"facts of text": "The facts are right.",
	"style of text": "The style is dry.",
	"judge one":     "Good.",
	"judge two":     "Bad.",
	"judge three":   "So so.",
	"sum up":        `{"score": 7}`,
}

// TestSameEventsFromAnyModel runs a workflow with a model that is part of the program
// and with one behind the OpenAI protocol: what happens is the same.
func TestSameEventsFromAnyModel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agent's script needs a POSIX shell")
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "critics")
	write(t, filepath.Join(agent, "graph.yaml"), critics)
	write(t, filepath.Join(agent, "plan.sh"), "echo '{\"planned\": true}'\n")
	rules := filepath.Join(dir, "rules.yaml")
	write(t, rules, answerRules(t))
	server := openaitest.New(t)
	server.Always(answerPrompt)

	events := func(model string, more ...string) map[string][]map[string]any {
		t.Helper()
		var out, errOut bytes.Buffer
		env := emptyHome(dir, append([]string{"LOKI_SCRIPT_FILE=" + rules}, more...)...)
		args := []string{"--output", "ndjson", "-m", model, "-a", agent, "text"}
		if status := Main(args, env, Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, Faces{}); status != 0 {
			t.Fatalf("%s: status %d: %s", model, status, &errOut)
		}
		return normal(t, out.Bytes())
	}
	builtin := events("builtin:script")
	openai := events("openai:m", "LOKI_PLATFORM=openai:m", "OPENAI_API_KEY=k", "OPENAI_API_BASE="+server.URL())
	if diff := cmp.Diff(builtin, openai); diff != "" {
		t.Errorf("builtin (-) and openai (+) differ:\n%s", diff)
	}
	ofRun := builtin[""]
	if last := ofRun[len(ofRun)-1]; last["output"] != "The facts are right.\nThe style is dry. [\"Good.\",\"Bad.\",\"So so.\"] 7" {
		t.Errorf("output %q", last["output"])
	}
	if got := len(server.Requests()); got != len(answers) {
		t.Errorf("the server got %d requests", got)
	}
	for _, r := range server.Requests() {
		if r.JSON()["stream"] != true {
			t.Errorf("a request did not ask for a stream: %s", r.Body)
		}
	}
}

// answerRules is answers as the rules of builtin:script.
func answerRules(t *testing.T) string {
	var rules []any
	for prompt, answer := range answers {
		rules = append(rules, map[string]any{"match": map[string]any{"text": prompt}, "reply": answer})
	}
	data, err := json.Marshal(map[string]any{"rules": rules}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// answerPrompt is answers as a server gives them.
func answerPrompt(c *wiretest.Call) {
	for prompt, answer := range answers {
		if bytes.Contains(c.Body, []byte(prompt)) {
			openaitest.Text(strings.SplitAfter(answer, " ")...)(c)
			return
		}
	}
	wiretest.Status(http.StatusNotFound, `{"error":{"message":"no answer to this prompt"}}`)(c)
}

// normal returns the events of each node and element, and under "" those of the run,
// each in order. Nodes that run side by side mix, so their order is not compared. What
// may differ between models and runs is left out: ids, times, the model, tokens, and how
// replies are cut into deltas.
func normal(t *testing.T, ndjson []byte) map[string][]map[string]any {
	t.Helper()
	events := make(map[string][]map[string]any)
	for line := range bytes.Lines(ndjson) {
		var ev map[string]any
		if err := json.Unmarshal(line, &ev); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if ev["type"] == "delta" {
			continue
		}
		for _, name := range []string{"time", "run", "seconds", "usage", "model"} {
			delete(ev, name)
		}
		source := ""
		if ev["node"] != nil {
			source = fmt.Sprint(ev["node"], ev["item"])
		}
		events[source] = append(events[source], ev)
	}
	return events
}
