package openai_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// input is a request for a response.
func input(model, text, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"` + model + `","input":` + text + more + `}`
}

const weatherFunction = `"tools":[{"type":"function","name":"get_weather","description":"Tells it.","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`

func TestResponses(t *testing.T) {
	url := newServer(t) + "/v1/responses"
	for _, tt := range []struct {
		name, body string
		want       map[string]string
	}{
		{"text", input("builtin:echo", `"Hi"`, ""), map[string]string{
			"object": "response", "status": "completed", "model": "builtin:echo", "output.0.type": "message", "output.0.role": "assistant", "output.0.status": "completed",
			"output.0.content.0.type": "output_text", "output.0.content.0.text": "Hi", "output.0.content.0.annotations": "[]", "output_text": "Hi", "store": "true",
			"usage.total_tokens": "2", "parallel_tool_calls": "true", "tools": "[]", "tool_choice": "auto", "truncation": "disabled", "error": "",
		}},
		{"items", input("builtin:script", `[{"role":"developer","content":"Be brief"},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}]`, `"store":false`), map[string]string{"output_text": "Brief: Hi", "store": "false"}},
		{"instructions", input("builtin:script", `"Hi"`, `"instructions":"Be brief."`), map[string]string{"output_text": "Brief: Hi", "instructions": "Be brief."}},
		{"role", input("role:pirate", `"Hi"`, ""), map[string]string{"output_text": "Brief: Hi"}},
		{"agent", input("agent:guide", `"Hi"`, ""), map[string]string{"output_text": "Brief: Hi"}},
		{"graph", input("agent:hello", `"you"`, ""), map[string]string{"output_text": "Hello, you!"}},
		{"reasoning", input("builtin:script", `"think"`, `"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"]`), map[string]string{
			"output.0.type": "reasoning", "output.0.summary.0.text": "Hm.", "output.1.type": "message", "output_text": "Thought.",
		}},
		{"call", input("builtin:script", `"weather"`, weatherFunction), map[string]string{"output.0.type": "function_call", "output.0.name": "get_weather", "output.0.arguments": `{"city":"Oslo"}`, "output.0.status": "completed", "output.1": ""}},
		{"one_call", input("builtin:script", `"both"`, weatherFunction+`,"parallel_tool_calls":false`), map[string]string{"output.0.type": "function_call", "output.1": "", "parallel_tool_calls": "false"}},
		{"history", input("builtin:script", `[{"role":"user","content":"weather"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"c1","name":"get_weather","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c1","output":"sunny"}]`, weatherFunction), map[string]string{"output_text": "It is fine: sunny"}},
		{"form", input("builtin:script", `"json"`, `"text":{"format":{"type":"json_schema","name":"trip","strict":true,"schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`), map[string]string{"output_text": `{"city":"Oslo","days":2}`}},
		{"limit", input("builtin:echo", `"one two three four five six"`, `"max_output_tokens":2`), map[string]string{"status": "incomplete", "incomplete_details.reason": "max_output_tokens"}},
		{"without_effect", input("builtin:echo", `"Hi"`, `"background":false,"truncation":"disabled","metadata":{"a":"b"},"user":"u","service_tier":"auto","conversation":null,"max_tool_calls":null,"top_logprobs":0,"text":{"verbosity":"medium"}`), map[string]string{"output_text": "Hi", "metadata.a": "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := post(t, url, tt.body)
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, body)
			}
			check := func(body []byte) {
				t.Helper()
				for path, want := range tt.want {
					if got := get(t, body, path); got != want {
						t.Errorf("%s is %q, want %q: %s", path, got, want, body)
					}
				}
			}
			check(body)
			status, _, stream := post(t, url, strings.TrimSuffix(tt.body, "}")+`,"stream":true}`)
			events := frames(t, stream)
			if status != http.StatusOK || len(events) < 4 {
				t.Fatalf("stream: %d: %s", status, stream)
			}
			last := events[len(events)-1]
			if kind := get(t, last, "type"); kind != "response."+get(t, last, "response.status") {
				t.Errorf("the last event is %s", last)
			}
			check([]byte(get(t, last, "response")))
			if a, b := get(t, events[0], "response.id"), get(t, last, "response.id"); a != b {
				t.Errorf("the id changes from %s to %s", a, b)
			}
			text := ""
			for i, e := range events {
				if n := get(t, e, "sequence_number"); n != strconv.Itoa(i) {
					t.Errorf("event %d has the number %s", i, n)
				}
				if get(t, e, "type") == "response.output_text.delta" {
					text += get(t, e, "delta")
				}
			}
			if want, ok := tt.want["output_text"]; ok && text != want {
				t.Errorf("the deltas are %q, want %q", text, want)
			}
		})
	}
}

// TestPreviousResponse: a response goes on from any earlier one, from each in its own way.
func TestPreviousResponse(t *testing.T) {
	url := newServer(t) + "/v1/responses"
	ask := func(body string) (id string, answer []byte) {
		t.Helper()
		status, _, answer := post(t, url, body)
		if status != http.StatusOK {
			t.Fatalf("%d: %s", status, answer)
		}
		return get(t, answer, "id"), answer
	}
	after := func(id string) string { return `"previous_response_id":"` + id + `"` }

	first, answer := ask(input("builtin:script", `"weather"`, weatherFunction))
	call := get(t, answer, "output.0.call_id")
	second, answer := ask(input("builtin:script", `[{"type":"function_call_output","call_id":"`+call+`","output":"sunny"}]`, after(first)+","+weatherFunction))
	if get(t, answer, "output_text") != "It is fine: sunny" || get(t, answer, "previous_response_id") != first {
		t.Errorf("the result: %s", answer)
	}
	third, answer := ask(input("builtin:script", `"Hello"`, after(second)))
	if get(t, answer, "output_text") != "You said: Hello" {
		t.Errorf("the third: %s", answer)
	}
	tokens := get(t, answer, "usage.input_tokens")
	branch, answer := ask(input("builtin:script", `"Hello"`, after(second)))
	if get(t, answer, "usage.input_tokens") != tokens || session(branch) == session(third) {
		t.Errorf("a branch: %s, beside %s", answer, third)
	}
	_, answer = ask(input("builtin:script", `[{"type":"function_call_output","call_id":"`+call+`","output":"sunny, too"}]`, after(first)+","+weatherFunction))
	if get(t, answer, "output_text") != "It is fine: sunny, too" {
		t.Errorf("another result: %s", answer)
	}
	for _, tt := range []struct{ body, param, code string }{
		{input("builtin:script", `"Hi"`, after("resp_nothing")), "previous_response_id", "previous_response_not_found"},
		{input("builtin:script", `"Hi"`, after(first+"9")), "previous_response_id", "previous_response_not_found"},
		{input("builtin:script", `"Hi"`, after(first)), "input", "invalid_request"},
		{input("agent:hello", `"Hi"`, after(third)), "previous_response_id", "previous_response_not_found"},
	} {
		if _, _, answer := post(t, url, tt.body); get(t, answer, "error.param") != tt.param || get(t, answer, "error.code") != tt.code {
			t.Errorf("%s: %s", tt.body, answer)
		}
	}

	waits, answer := ask(input("agent:approve", `"it"`, ""))
	if get(t, answer, "loki.question.text") != "Ship it?" {
		t.Fatalf("the question: %s", answer)
	}
	if _, answer = ask(input("agent:approve", `"ship"`, after(waits))); get(t, answer, "output_text") != "Shipped it." {
		t.Errorf("the answer: %s", answer)
	}
}

// TestPreviousResponseOfAnotherProcess: a response is followed after the server was killed and came back.
func TestPreviousResponseOfAnotherProcess(t *testing.T) {
	s := servertest.Program(t, files)
	_, _, answer := post(t, s.URL+"/v1/responses", input("builtin:script", `"weather"`, weatherFunction))
	result := input("builtin:script", `[{"type":"function_call_output","call_id":"`+get(t, answer, "output.0.call_id")+`","output":"sunny"}]`, `"previous_response_id":"`+get(t, answer, "id")+`",`+weatherFunction)
	s.Kill()
	s.Begin()
	if status, _, answer := post(t, s.URL+"/v1/responses", result); status != http.StatusOK || get(t, answer, "output_text") != "It is fine: sunny" {
		t.Errorf("%d: %s", status, answer)
	}
}

// session returns the part of a response's id that names the session.
func session(id string) string {
	s, _, _ := strings.Cut(strings.TrimPrefix(id, "resp_"), "_")
	return s
}

func TestRefusedResponses(t *testing.T) {
	url := newServer(t) + "/v1/responses"
	for _, tt := range []struct{ name, body, param string }{
		{"background", input("builtin:echo", `"Hi"`, `"background":true`), "background"},
		{"conversation", input("builtin:echo", `"Hi"`, `"conversation":"c"`), "conversation"},
		{"include", input("builtin:echo", `"Hi"`, `"include":["message.output_text.logprobs"]`), "include[0]"},
		{"truncation", input("builtin:echo", `"Hi"`, `"truncation":"auto"`), "truncation"},
		{"tool", input("builtin:echo", `"Hi"`, `"tools":[{"type":"web_search","filters":{}}]`), "tools[0].type"},
		{"item", input("builtin:echo", `[{"type":"item_reference","id":"x"}]`, ""), "input[0].type"},
		{"part", input("builtin:echo", `[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]`, ""), "input[0].content[0].file_id"},
		{"empty", input("builtin:echo", `[]`, ""), "input"},
		{"no_input", `{"model":"builtin:echo"}`, "input"},
		{"verbosity", input("builtin:echo", `"Hi"`, `"text":{"verbosity":"low"}`), "text.verbosity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, _, answer := post(t, url, tt.body); status != http.StatusBadRequest || get(t, answer, "error.param") != tt.param {
				t.Errorf("%d: %s", status, answer)
			}
		})
	}
	status, _, stream := post(t, url, input("builtin:script", `"breaks"`, `"stream":true`))
	if status != http.StatusOK || !strings.Contains(string(stream), "event: response.failed") || !strings.Contains(string(stream), `"code":"provider_error"`) {
		t.Errorf("a stream that breaks: %d: %s", status, stream)
	}
	if data := frames(t, stream); get(t, data[len(data)-1], "type") != "response.failed" || strings.Contains(string(stream), "data: {\"error\"") {
		t.Errorf("it ends with %s", data[len(data)-1])
	}
}
