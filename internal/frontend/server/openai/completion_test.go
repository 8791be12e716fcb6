package openai_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// said is a chat of one question to a model.
func said(model, text, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]` + more + `}`
}

const weather = `"tools":[{"type":"function","function":{"name":"get_weather","description":"Tells it.","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":true}}]`

func TestCompletions(t *testing.T) {
	url := newServer(t) + "/v1/chat/completions"
	for _, tt := range []struct {
		name, body string
		want       map[string]string // by path
	}{
		{"model", said("builtin:echo", "Hi", ""), map[string]string{
			"object": "chat.completion", "model": "builtin:echo", "choices.0.message.content": "Hi", "choices.0.message.role": "assistant", "choices.0.finish_reason": "stop",
			"usage.total_tokens": "2", "loki.model": "builtin:echo",
		}},
		{"bare_name_of_a_model", said("script", "Hi", ""), map[string]string{"choices.0.message.content": "You said: Hi", "model": "script"}},
		{"bare_name_of_a_role", said("pirate", "Hi", ""), map[string]string{"choices.0.message.content": "Brief: Hi"}},
		{"role", said("role:pirate", "Hi", ""), map[string]string{"choices.0.message.content": "Brief: Hi", "loki.model": "builtin:script"}},
		{"agent", said("agent:guide", "Hi", ""), map[string]string{"choices.0.message.content": "Brief: Hi"}},
		{"agent_with_variables", said("agent:guide", "Hi", `"loki":{"variables":{"who":"you"}}`), map[string]string{"choices.0.message.content": "Brief: Hi"}},
		{"graph", said("agent:hello", "you", `"temperature":0.5`), map[string]string{"choices.0.message.content": "Hello, you!", "choices.0.finish_reason": "stop"}},
		{"developer_and_parts", `{"model":"builtin:script","messages":[{"role":"developer","content":[{"type":"text","text":"Be brief."}]},{"role":"user","name":"u","content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}]}`, map[string]string{"choices.0.message.content": "Brief: Hi"}},
		{"only_system", `{"model":"builtin:script","messages":[{"role":"system","content":"Be brief."},{"role":"system","content":"Hi"}]}`, map[string]string{"choices.0.message.content": "Brief: Hi"}},
		{"nulls", said("builtin:echo", "Hi", `"n":null,"stop":null,"tools":null,"tool_choice":null,"response_format":null,"temperature":null,"seed":null,"stream":null,"stream_options":null,"max_tokens":null,"logprobs":null,"user":null,"loki":null,"reasoning_effort":null,"parallel_tool_calls":null`), map[string]string{"choices.0.message.content": "Hi"}},
		{"without_effect", said("builtin:echo", "Hi", `"n":1,"user":"u","metadata":{"a":"b"},"store":true,"service_tier":"auto","parallel_tool_calls":true,"logprobs":false,"logit_bias":{},"presence_penalty":0,"frequency_penalty":0.0,"modalities":["text"],"prompt_cache_key":"k","safety_identifier":"s","prediction":{"type":"content","content":"x"}`), map[string]string{"choices.0.message.content": "Hi"}},
		{"parameters", said("builtin:echo", "Hi", `"temperature":0.1,"top_p":1,"reasoning_effort":"low","max_completion_tokens":50,"seed":7,"frequency_penalty":-0.5,"presence_penalty":1`), map[string]string{"choices.0.message.content": "Hi"}},
		{"output_limit", said("builtin:echo", "one two three four five six seven", `"max_tokens":2`), map[string]string{"choices.0.finish_reason": "length"}},
		{"stop", said("builtin:script", "count", `"stop":["four","three"]`), map[string]string{"choices.0.message.content": "one two ", "choices.0.finish_reason": "stop"}},
		{"client_tools", said("builtin:script", "weather?", weather), map[string]string{
			"choices.0.finish_reason": "tool_calls", "choices.0.message.content": "", "choices.0.message.tool_calls.0.type": "function",
			"choices.0.message.tool_calls.0.function.name": "get_weather", "choices.0.message.tool_calls.0.function.arguments": `{"city":"Oslo"}`,
		}},
		{"no_choice", said("builtin:echo", "weather?", weather+`,"tool_choice":"none"`), map[string]string{"choices.0.finish_reason": "stop"}},
		{"named_choice", said("builtin:script", "weather?", weather+`,"tool_choice":{"type":"function","function":{"name":"get_weather"}}`), map[string]string{"choices.0.finish_reason": "tool_calls"}},
		{"one_call", said("builtin:script", "both", weather+`,"parallel_tool_calls":false`), map[string]string{"choices.0.message.tool_calls.0.function.arguments": `{"city":"Oslo"}`, "choices.0.message.tool_calls.1": ""}},
		{"two_calls", said("builtin:script", "both", weather), map[string]string{"choices.0.message.tool_calls.1.function.arguments": `{"city":"Graz"}`}},
		{"tool_result", `{"model":"builtin:script","messages":[{"role":"user","content":"weather"},
			{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"sunny"}],` + weather + `}`, map[string]string{"choices.0.message.content": "It is fine: sunny"}},
		{"server_tool_of_a_role", said("role:helper", "server tool", ""), map[string]string{"choices.0.message.content": "Looking.\nDone."}},
		{"both_tools", said("role:helper", "weather", weather), map[string]string{"choices.0.finish_reason": "tool_calls"}},
		{"schema", said("builtin:script", "json", `"response_format":{"type":"json_schema","json_schema":{"name":"trip","strict":true,"schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}}`), map[string]string{"choices.0.message.content": `{"city":"Oslo","days":2}`}},
		{"json", said("builtin:script", "json", `"response_format":{"type":"json_object"}`), map[string]string{"choices.0.message.content": `{"city":"Oslo","days":2}`}},
		{"image", `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"text","text":"See "},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]}]}`, map[string]string{"choices.0.finish_reason": "stop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := post(t, url, tt.body)
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, body)
			}
			for path, want := range tt.want {
				if got := get(t, body, path); got != want {
					t.Errorf("%s is %q, want %q: %s", path, got, want, body)
				}
			}
			streamed := strings.TrimSuffix(strings.ReplaceAll(tt.body, `"stream":null,"stream_options":null,`, ""), "}") + `,"stream":true,"stream_options":{"include_usage":true}}`
			status, _, body = post(t, url, streamed)
			if status != http.StatusOK {
				t.Fatalf("stream: %d: %s", status, body)
			}
			checkStream(t, body, tt.want)
		})
	}
}

// checkStream compares a stream with what the same answer in one piece is.
func checkStream(t *testing.T, stream []byte, want map[string]string) {
	t.Helper()
	data := frames(t, stream)
	if len(data) < 4 || string(data[len(data)-1]) != "[DONE]" {
		t.Fatalf("the stream: %s", stream)
	}
	var content, finish, id string
	var calls [][]byte
	for i, d := range data[:len(data)-1] {
		if get(t, d, "object") != "chat.completion.chunk" || i > 0 && get(t, d, "id") != id {
			t.Errorf("chunk %d: %s", i, d)
		}
		id = get(t, d, "id")
		content += get(t, d, "choices.0.delta.content")
		if reason := get(t, d, "choices.0.finish_reason"); reason != "" {
			finish = reason
		}
		if c := get(t, d, "choices.0.delta.tool_calls"); c != "" {
			calls = append(calls, []byte(c))
		}
	}
	if role := get(t, data[0], "choices.0.delta.role"); role != "assistant" {
		t.Errorf("the first chunk has the role %q: %s", role, data[0])
	}
	if last := data[len(data)-2]; get(t, last, "choices") != "[]" || get(t, last, "usage.total_tokens") == "" {
		t.Errorf("the usage: %s", last)
	}
	for path, wanted := range want {
		got := ""
		switch rest, isCall := strings.CutPrefix(path, "choices.0.message.tool_calls."); {
		case path == "choices.0.message.content":
			got = content
		case path == "choices.0.finish_reason":
			got = finish
		case isCall && len(calls) == 1:
			got = get(t, calls[0], rest)
		default:
			continue
		}
		if got != wanted {
			t.Errorf("in the stream %s is %q, want %q: %s", path, got, wanted, stream)
		}
	}
}

func TestRefusedCompletions(t *testing.T) {
	url := newServer(t) + "/v1/chat/completions"
	for _, tt := range []struct {
		name, body, param string
		status            int
		code              string
	}{
		{"several_answers", said("builtin:echo", "Hi", `"n":2`), "n", 400, "invalid_request"},
		{"logprobs", said("builtin:echo", "Hi", `"logprobs":true`), "logprobs", 400, "invalid_request"},
		{"penalty", said("builtin:echo", "Hi", `"presence_penalty":2.5`), "presence_penalty", 400, "invalid_request"},
		{"audio", said("builtin:echo", "Hi", `"modalities":["text","audio"]`), "modalities[1]", 400, "invalid_request"},
		{"functions", said("builtin:echo", "Hi", `"functions":[]`), "functions", 400, "invalid_request"},
		{"no_model", `{"messages":[{"role":"user","content":"a"}]}`, "model", 400, "invalid_request"},
		{"no_messages", `{"model":"builtin:echo"}`, "messages", 400, "invalid_request"},
		{"empty_messages", `{"model":"builtin:echo","messages":[]}`, "messages", 400, "invalid_request"},
		{"nothing_said", `{"model":"builtin:echo","messages":[{"role":"system","content":"a"},{"role":"assistant","content":"b"}]}`, "messages", 400, "invalid_request"},
		{"wrong_role", `{"model":"builtin:echo","messages":[{"role":"function","content":"a"}]}`, "messages[0].role", 400, "invalid_request"},
		{"wrong_part", `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, "messages[0].content[0].type", 400, "invalid_request"},
		{"file_address", `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]}`, "messages[0].content[0].image_url.url", 400, "invalid_request"},
		{"private_address", `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/a.png"}}]}]}`, "messages", 400, "invalid_request"},
		{"open_call", `{"model":"builtin:echo","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"b"}]}`, "messages", 400, "invalid_request"},
		{"result_without_call", `{"model":"builtin:echo","messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]}`, "messages[1].tool_call_id", 400, "invalid_request"},
		{"hot", said("builtin:echo", "Hi", `"temperature":3`), "temperature", 400, "invalid_request"},
		{"effort", said("builtin:echo", "Hi", `"reasoning_effort":"huge"`), "reasoning_effort", 400, "invalid_request"},
		{"no_tokens", said("builtin:echo", "Hi", `"max_tokens":0`), "max_tokens", 400, "invalid_request"},
		{"wrong_type", said("builtin:echo", "Hi", `"temperature":"warm"`), "temperature", 400, "invalid_request"},
		{"choice_without_tools", said("builtin:echo", "Hi", `"tool_choice":"required"`), "tool_choice", 400, "invalid_request"},
		{"unknown_choice", said("builtin:echo", "Hi", weather+`,"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", 400, "invalid_request"},
		{"custom_tool", said("builtin:echo", "Hi", `"tools":[{"type":"custom","custom":{"name":"c"}}]`), "tools[0].type", 400, "invalid_request"},
		{"bad_schema", said("builtin:echo", "Hi", `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"nothing"}}}`), "response_format.json_schema.schema", 400, "invalid_request"},
		{"stream_options", said("builtin:echo", "Hi", `"stream_options":{"include_usage":true}`), "stream_options", 400, "invalid_request"},
		{"model_not_found", said("nothing:here", "Hi", ""), "model", 404, "model_not_found"},
		{"role_not_found", said("role:nobody", "Hi", ""), "model", 404, "model_not_found"},
		{"agent_by_path", said("agent:../agents/guide", "Hi", ""), "model", 404, "model_not_found"},
		{"rules_of_the_client", said("builtin:script/etc/passwd", "Hi", ""), "model", 404, "model_not_found"},
		{"ambiguous", said("echo", "Hi", ""), "model", 400, "invalid_request"},
		{"tools_of_a_graph", said("agent:hello", "Hi", weather), "tools", 400, "invalid_request"},
		{"variable", said("agent:guide", "Hi", `"loki":{"variables":{"x":"y"}}`), "", 400, "invalid_request"},
		{"consent", said("agent:guide", "Hi", `"loki":{"variables":{"auto_confirm":"1"}}`), "variables", 403, "forbidden"},
		{"detached_tools", said("agent:guide", "Hi", weather+`,"loki":{"detach":true}`), "loki.detach", 400, "invalid_request"},
		{"run_not_found", said("agent:approve", "Hi", `"loki":{"run_id":"nothing"}`), "", 404, "run_not_found"},
		{"busy", said("builtin:script", "busy", ""), "", 429, "rate_limited"},
		{"not_the_form", said("builtin:script", "prose", `"response_format":{"type":"json_object"}`), "", 502, "provider_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, body := range []string{tt.body, strings.TrimSuffix(tt.body, "}") + `,"stream":true}`} {
				if tt.name == "stream_options" {
					body = tt.body
				}
				status, h, answer := post(t, url, body)
				if status != tt.status || get(t, answer, "error.code") != tt.code || get(t, answer, "error.param") != tt.param || get(t, answer, "error.message") == "" {
					t.Errorf("got %d %s, want %d, code %s, param %s", status, answer, tt.status, tt.code, tt.param)
				}
				if status == 429 && h.Get("Retry-After") != "7" {
					t.Errorf("Retry-After is %q", h.Get("Retry-After"))
				}
			}
		})
	}
}

// TestUnknownMembers: what other servers and clients add is ignored, with a warning, also in messages and parts. Loki's own member, and
// what changes the question, is checked.
func TestUnknownMembers(t *testing.T) {
	url := newServer(t) + "/v1/chat/completions"
	for _, tt := range []struct{ name, body, ignored string }{
		{"top", said("builtin:echo", "Hi", `"top_k":3,"chat_template_kwargs":{"a":1}`), "chat_template_kwargs, top_k"},
		{"message", `{"model":"builtin:echo","messages":[{"role":"user","content":"Hi","reasoning_details":[]}]}`, "messages[0].reasoning_details"},
		{"part", `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{}}]}]}`, "messages[0].content[0].cache_control"},
		{"none", said("builtin:echo", "Hi", ""), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, answer := post(t, url, tt.body)
			if want := strings.TrimSuffix("not supported, and ignored: "+tt.ignored, "not supported, and ignored: "); status != http.StatusOK || get(t, answer, "choices.0.message.content") != "Hi" || get(t, answer, "loki.warnings.0") != want {
				t.Errorf("%d: %s, want the warning %q", status, answer, want)
			}
		})
	}
	for _, body := range []string{said("builtin:echo", "Hi", `"loki":{"detatch":true}`), said("builtin:echo", "Hi", `"functions":[{"name":"f"}]`)} {
		if status, _, answer := post(t, url, body); status != http.StatusBadRequest {
			t.Errorf("%d: %s", status, answer)
		}
	}
}

// TestBrokenStream: a stream that fails in the middle says so, and has no end mark.
func TestBrokenStream(t *testing.T) {
	url := newServer(t) + "/v1/chat/completions"
	status, _, body := post(t, url, said("builtin:script", "breaks", `"stream":true`))
	data := frames(t, body)
	if last := data[len(data)-1]; status != http.StatusOK || get(t, last, "error.code") != "provider_error" || get(t, last, "error.message") == "" {
		t.Errorf("%d: %s", status, body)
	}
}

func TestReasoningIsStreamed(t *testing.T) {
	_, _, body := post(t, newServer(t)+"/v1/chat/completions", said("builtin:script", "think", `"stream":true`))
	got := ""
	for _, d := range frames(t, body) {
		if json.Valid(d) {
			got += get(t, d, "choices.0.delta.reasoning_content")
		}
	}
	if got != "Hm." {
		t.Errorf("reasoning %q: %s", got, body)
	}
}

// TestQuestionOfPlainAgent: a tool of the agent's asks, in both formats.
func TestQuestionOfPlainAgent(t *testing.T) {
	url := newServer(t)
	for _, detach := range []string{"", `,"detach":true`} {
		first := ""
		if detach != "" {
			first = `"loki":{"detach":true}`
		}
		_, _, body := post(t, url+"/v1/chat/completions", said("agent:asker", "voyage", first))
		id := get(t, body, "loki.run_id")
		if text := get(t, body, "choices.0.message.content"); id == "" || text != "How long?\n\n- one day\n- two days" {
			t.Fatalf("the question: %s", body)
		}
		status, _, body := post(t, url+"/v1/chat/completions", said("agent:asker", "two days", `"loki":{"run_id":"`+id+`"`+detach+`}`))
		if status != http.StatusOK || !strings.Contains(get(t, body, "choices.0.message.content"), "two days") {
			t.Errorf("the answer: %d %s", status, body)
		}
		_, _, body = post(t, url+"/v1/responses", input("agent:asker", `"voyage"`, first))
		if get(t, body, "loki.question.options") != `["one day","two days"]` {
			t.Fatalf("the question of a response: %s", body)
		}
		status, _, body = post(t, url+"/v1/responses", input("agent:asker", `"one day"`, `"previous_response_id":"`+get(t, body, "id")+`"`))
		if status != http.StatusOK || !strings.Contains(get(t, body, "output_text"), "one day") {
			t.Errorf("the answer to a response: %d %s", status, body)
		}
	}
}

// TestDetach: a detached run names itself first, and goes on when the client leaves.
func TestDetach(t *testing.T) {
	url := newServer(t)
	const detach = `"loki":{"detach":true},"stream":true`
	for _, tt := range []struct{ name, path, body, want string }{
		{"graph", "/chat/completions", said("agent:slow", "slow", detach), "Slowly."},
		{"plain", "/chat/completions", said("agent:asker", "slow", detach), "Slowly."},
		{"response", "/responses", input("agent:slow", `"slow"`, detach), "Slowly."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := post(t, url+"/v1"+tt.path, tt.body)
			if status != http.StatusOK || !strings.Contains(string(body), tt.want) {
				t.Errorf("with the client: %d %s", status, body)
			}
			res, err := http.Post(url+"/v1"+tt.path, "application/json", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			id := ""
			for lines := bufio.NewScanner(res.Body); id == "" && lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					id = get(t, []byte(data), "loki.run_id") + get(t, []byte(data), "response.loki.run_id")
				}
			}
			res.Body.Close()
			events, err := http.Get(url + "/v1/runs/" + id + "/events") // which end with the run
			if err != nil {
				t.Fatal(err)
			}
			defer events.Body.Close()
			if all, _ := io.ReadAll(events.Body); id == "" || !strings.Contains(string(all), tt.want) || !strings.Contains(string(all), `"status":"done"`) {
				t.Errorf("run %q without the client: %s", id, all)
			}
		})
	}
	status, _, body := post(t, url+"/v1/chat/completions", said("agent:slow", "slow", `"loki":{"detach":true}`))
	if status != http.StatusOK || get(t, body, "choices.0.message.content") != "Slowly." || get(t, body, "loki.run_id") == "" {
		t.Errorf("in one piece: %d %s", status, body)
	}
	for _, model := range []string{"builtin:echo", "role:pirate"} {
		if status, _, body := post(t, url+"/v1/chat/completions", said(model, "Hi", `"loki":{"detach":true}`)); status != http.StatusBadRequest || get(t, body, "error.param") != "loki.detach" {
			t.Errorf("%s: %d %s", model, status, body)
		}
	}
}

// TestQuestion: an agent that waits for a human answers with the question, and the next message of the user answers that.
func TestQuestion(t *testing.T) {
	url := newServer(t) + "/v1/chat/completions"
	for _, streamed := range []string{"", `"stream":true`} {
		_, _, body := post(t, url, said("agent:approve", "it", ""))
		id := get(t, body, "loki.run_id")
		if text := get(t, body, "choices.0.message.content"); id == "" || text != "Ship it?\n\n- ship\n- hold" || get(t, body, "loki.question.options") != `["ship","hold"]` || get(t, body, "choices.0.finish_reason") != "stop" {
			t.Fatalf("the question: %s", body)
		}
		more := `"loki":{"run_id":"` + id + `"}`
		if streamed != "" {
			more += "," + streamed
		}
		status, _, body := post(t, url, said("agent:approve", "ship", more))
		if status != http.StatusOK || !strings.Contains(string(body), "Shipped it.") {
			t.Errorf("the answer: %d %s", status, body)
		}
		if status, _, body = post(t, url, said("agent:approve", "ship", more)); status != http.StatusConflict && streamed == "" {
			t.Errorf("answered twice: %d %s", status, body)
		}
	}
}
