package openaitest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func post(t *testing.T, s *openaitest.Server, body string) (int, string) {
	t.Helper()
	return postTo(t, s, "/chat/completions", body)
}

func postTo(t *testing.T, s *openaitest.Server, path, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestScript(t *testing.T) {
	s := openaitest.New(t)
	if status, text := post(t, s, "{}"); status != http.StatusNotImplemented || !strings.Contains(text, "no reply is scripted") {
		t.Errorf("without a script: %d %s", status, text)
	}
	s.Script(openaitest.Text("one"), openaitest.Reasoned("why", "two"))
	s.Always(openaitest.ToolCalls("three", chat.ToolCall{ID: "c", Name: "f", Arguments: `{"a":1}`}))
	for _, want := range [][]string{
		{`"content":"one"`, `"finish_reason":"stop"`, `"usage"`},
		{`"content":"two"`, `"reasoning_content":"why"`},
		{`"content":"three"`, `"arguments":"{\"a\":1}"`, `"finish_reason":"tool_calls"`},
		{`"content":"three"`},
	} {
		_, text := post(t, s, `{"model":"m"}`)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s\nwant %s", text, w)
			}
		}
	}
	if r := s.Requests(); len(r) != 5 || r[1].Path != "/chat/completions" || r[1].JSON()["model"] != "m" || r[0].JSON() == nil {
		t.Errorf("requests %+v", r)
	}
}

func TestStreaming(t *testing.T) {
	s := openaitest.New(t)
	s.Always(openaitest.Text("one", "two"))
	for body, usage := range map[string]bool{
		`{"stream":true}`: false,
		`{"stream":true,"stream_options":{"include_usage":true}}`: true,
	} {
		_, text := post(t, s, body)
		if strings.Count(text, "data: ") != strings.Count(text, "\n\n") || !strings.HasSuffix(text, "data: [DONE]\n\n") ||
			!strings.Contains(text, `"content":"two"`) || strings.Contains(text, "prompt_tokens") != usage {
			t.Errorf("%s: %s", body, text)
		}
	}
}

func TestResponses(t *testing.T) {
	s := openaitest.New(t)
	s.Always(openaitest.Reasoned("why", "one", "two"))
	if _, text := postTo(t, s, "/responses", "{}"); !strings.Contains(text, `"text":"onetwo"`) || !strings.Contains(text, `"encrypted_content":"enc:why"`) {
		t.Errorf("reply %s", text)
	}
	if _, text := postTo(t, s, "/responses", `{"stream":true}`); !strings.Contains(text, `"delta":"two"`) || !strings.Contains(text, "event: response.completed\n") {
		t.Errorf("reply %s", text)
	}
	s.Always(openaitest.ToolCalls("", chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"}))
	if _, text := postTo(t, s, "/responses", "{}"); !strings.Contains(text, `"call_id":"c"`) {
		t.Errorf("reply %s", text)
	}
}

func TestModels(t *testing.T) {
	s := openaitest.New(t)
	s.Models("a", "b")
	s.Script(openaitest.Text("still there"))
	resp, err := http.Get(s.URL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), `"id":"b"`) {
		t.Errorf("models: %s", text)
	}
	if _, text := post(t, s, "{}"); !strings.Contains(text, "still there") {
		t.Errorf("reply: %s", text)
	}
}

func TestAfterAndWaitIdle(t *testing.T) {
	s := openaitest.New(t)
	started, ready := make(chan struct{}), make(chan struct{})
	s.Script(func(c *wiretest.Call) {
		close(started)
		wiretest.After(ready, openaitest.Text("late"))(c)
	})
	got := make(chan string)
	go func() { // ends with the reply, which the test waits for
		resp, err := http.Post(s.URL()+"/chat/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		got <- string(text)
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitIdle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitIdle while serving = %v", err)
	}
	close(ready)
	if text := <-got; !strings.Contains(text, "late") {
		t.Errorf("reply: %s", text)
	}
	if err := s.WaitIdle(t.Context()); err != nil {
		t.Errorf("WaitIdle = %v", err)
	}
}
