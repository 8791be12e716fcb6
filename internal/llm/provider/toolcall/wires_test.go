package toolcall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"loki/internal/base/text/sample"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/cohere"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// replies is how many replies of each wire are tried at most.
const replies = 4000

// made is a call that the model made.
type made struct{ id, name, args string }

// stream writes a reply in the format of a wire, in one of the ways that servers have.
type stream struct {
	*rand.Rand
	calls  []made
	events []any
}

// TestWires generates replies whose calls are known, writes them as servers do, and worse, and compares what the
// clients make of them. A reply that was cut fails and has no calls.
func TestWires(t *testing.T) {
	for _, w := range []struct {
		name  string
		write func(*stream)
		open  func(client.Options) (provider.Chat, error)
	}{
		{"chat_completions", (*stream).openai, func(o client.Options) (provider.Chat, error) { return openai.New(o) }},
		{"responses", (*stream).responses, func(o client.Options) (provider.Chat, error) { o.API = "responses"; return openai.New(o) }},
		{"claude", (*stream).claude, func(o client.Options) (provider.Chat, error) { return anthropic.New(o) }},
		{"gemini", (*stream).gemini, func(o client.Options) (provider.Chat, error) { return gemini.New(o) }},
		{"cohere", (*stream).cohere, func(o client.Options) (provider.Chat, error) { return cohere.New(o) }},
	} {
		t.Run(w.name, func(t *testing.T) {
			server := new(canned)
			h, err := wire.NewClient(wire.Options{Transport: server})
			if err != nil {
				t.Fatal(err)
			}
			c, err := w.open(client.Options{Name: "test", APIBase: "http://server.test", APIKey: wiretest.Key("k"), HTTP: h})
			if err != nil {
				t.Fatal(err)
			}
			for seed := uint64(0); seed < replies && !t.Failed(); seed += uint64(sample.Step(20)) {
				s := &stream{Rand: rand.New(rand.NewPCG(seed, 1))}
				s.make()
				w.write(s)
				server.body, server.Rand = s.body(), s.Rand
				cut := s.IntN(10) == 0
				if cut {
					// The event that ends the reply comes last and is longer than this.
					last := bytes.LastIndex(bytes.TrimRight(server.body, "\n"), []byte("\n\ndata: "))
					server.body = server.body[:s.IntN(max(last, 1))]
				}
				server.check(t, c, s, cut, seed)
			}
		})
	}
}

// canned is a server that answers with a body, cut into packets at random.
type canned struct {
	*rand.Rand
	body []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(&packets{c.Rand, c.body}), Request: r,
	}, nil
}

type packets struct {
	*rand.Rand
	rest []byte
}

func (p *packets) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.IntN(200))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (c *canned) check(t *testing.T, chat provider.Chat, s *stream, cut bool, seed uint64) {
	t.Helper()
	var got []made
	var failure error
	for chunk, err := range chat.Chat(t.Context(), provider.Request{Model: "m", Stream: true}) {
		switch {
		case err != nil:
			failure = err
		case chunk.Kind == provider.ToolCall:
			got = append(got, made{chunk.ToolCall.ID, chunk.ToolCall.Name, chunk.ToolCall.Arguments})
		case chunk.Kind == provider.End && chunk.Broken && !cut && len(s.calls) > 0 && s.calls[0].id == "":
			return // without ids two readings may be possible
		case chunk.Kind == provider.End && chunk.Broken:
			t.Errorf("seed %d: the reply is broken:\n%s", seed, c.body)
		}
	}
	switch {
	case cut && failure == nil:
		t.Errorf("seed %d: a reply that was cut has the calls %q:\n%s", seed, got, c.body)
	case cut && len(got) > 0:
		t.Errorf("seed %d: a reply that was cut has calls", seed)
	case !cut && (failure != nil || !equal(got, s.calls)):
		t.Errorf("seed %d: got %q, error %v, want %q:\n%s", seed, got, failure, s.calls, c.body)
	}
}

func equal(got, want []made) bool {
	if len(got) != len(want) {
		return false
	}
	for i, w := range want {
		if got[i].name != w.name || w.id != "" && got[i].id != w.id || !reflect.DeepEqual(parsed(got[i].args), parsed(w.args)) {
			return false
		}
	}
	return true
}

// parsed returns the value of arguments, which may be encoded as a text.
func parsed(args string) (v any) {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return args
	}
	if inner, ok := v.(string); ok {
		return parsed(inner)
	}
	return v
}

func (s *stream) chance(n int) bool { return s.IntN(n) == 0 }

// make makes up to four calls. Some are equal except for their ids.
func (s *stream) make() {
	for i := range s.IntN(5) {
		c := made{fmt.Sprintf("id_%d", i), [...]string{"f", "get_time", "get_time_zone"}[s.IntN(3)], s.arguments()}
		if i > 0 && i < 3 && s.chance(6) { // of more than three equal calls in a row the rest is dropped
			c.name, c.args = s.calls[i-1].name, s.calls[i-1].args
		}
		s.calls = append(s.calls, c)
	}
}

func (s *stream) arguments() string {
	texts := []string{"", "a b", `}{"`, "Zürich", "😀😋", "\\", "{\"x\":1}", "</think>", "line\nbreak"}
	object := map[string]any{}
	for range s.IntN(4) {
		var v any = texts[s.IntN(len(texts))]
		switch s.IntN(5) {
		case 0:
			v = s.IntN(1000)
		case 1:
			v = []any{true, nil, map[string]any{"q": v}}
		}
		object[[...]string{"path", "a", "ü", "n"}[s.IntN(4)]] = v
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // it can be marshaled
	}
	return string(text)
}

func (s *stream) without(ids bool) {
	for i := range s.calls {
		if !ids {
			s.calls[i].id = ""
		}
	}
}

// distinct leaves out calls that equal others.
func (s *stream) distinct() {
	var list []made
	seen := map[string]bool{}
	for _, c := range s.calls {
		if !seen[c.name+c.args] {
			seen[c.name+c.args] = true
			list = append(list, c)
		}
	}
	s.calls = list
}

func (s *stream) add(event any) { s.events = append(s.events, event) }

// half is the mark of a cut between the halves of a surrogate pair.
const half = "\ufdd0"

// pieces cuts text anywhere, also in the middle of a character beyond the basic plane.
func (s *stream) pieces(text string) []string {
	var list []string
	piece := ""
	for _, r := range text {
		switch {
		case r > 0xFFFF && s.chance(4):
			first, second := utf16.EncodeRune(r)
			list = append(list, piece+fmt.Sprintf("%s%04x", half, first))
			piece = fmt.Sprintf("%s%04x", half, second)
			continue
		case piece != "" && s.chance(4):
			list = append(list, piece)
			piece = ""
		}
		piece += string(r)
	}
	return append(list, piece)
}

// body returns the events as server-sent events, and halves as escapes.
func (s *stream) body() []byte {
	var b bytes.Buffer
	for _, e := range s.events {
		text, ok := e.(string)
		if !ok {
			doc, err := json.Marshal(e)
			if err != nil {
				panic(err) // it can be marshaled
			}
			text = string(doc)
		}
		b.WriteString("data: " + strings.ReplaceAll(text, half, `\u`) + "\n\n")
	}
	return b.Bytes()
}

type m map[string]any

func (s *stream) openai() {
	ids, index := !s.chance(4), s.IntN(4) // by position, none, always 0, rising with each piece
	again := s.IntN(6)
	switch {
	case !ids && index != 0: // equal calls have no identity then
		index = 1
		s.distinct()
	case index == 3:
		again = min(again, 1)
	}
	if !ids && again == 2 {
		again = 1 // at the next index, only an id shows that a call is a copy
	}
	s.without(ids)
	n := 0
	piece := func(i int, c made, name, args any) m {
		f := m{}
		if name != "" {
			f["name"] = name
		}
		if args != nil {
			f["arguments"] = args
		}
		p := m{"function": f, "type": "function"}
		if c.id != "" {
			p["id"] = c.id
		}
		switch index {
		case 0:
			p["index"] = i
		case 2:
			p["index"] = 0
		case 3:
			p["index"] = n
			n++
		}
		return p
	}
	chunk := func(pieces ...m) { s.add(m{"choices": []m{{"index": 0, "delta": m{"tool_calls": pieces}}}}) }
	var queues [][]m
	for i, c := range s.calls {
		var q []m
		switch s.IntN(5) {
		case 0: // whole
			q = []m{piece(i, c, c.name, c.args)}
		case 1:
			q = []m{piece(i, c, c.name, json.RawMessage(c.args))}
		case 2:
			twice, _ := json.Marshal(c.args)
			q = []m{piece(i, c, c.name, string(twice))}
		default:
			every := ids && s.chance(3)
			q = []m{piece(i, c, c.name, "")}
			for _, text := range s.pieces(c.args) {
				label := made{}
				if every {
					label = c
				}
				q = append(q, piece(i, label, "", text))
			}
		}
		queues = append(queues, q)
	}
	s.deliver(queues, index == 0 && s.chance(2), func(p m) { chunk(p) })
	for i, c := range s.calls { // the copies
		switch again {
		case 1:
			chunk(piece(i, c, c.name, c.args))
		case 2:
			chunk(piece(i+1, c, c.name, c.args))
		case 3:
			twice, _ := json.Marshal(c.args)
			chunk(piece(i, c, c.name, string(twice)))
		case 4:
			chunk(piece(i, c, c.name, ""))
			for _, text := range s.pieces(c.args) {
				chunk(piece(i, made{}, "", text))
			}
		}
	}
	s.add(m{"choices": []m{{"index": 0, "delta": m{}, "finish_reason": [...]string{"stop", "tool_calls"}[s.IntN(2)]}}})
	s.add("[DONE]")
}

// deliver sends the pieces of each call in their order, those of several calls mixed or one call after the other.
func (s *stream) deliver(queues [][]m, mixed bool, send func(m)) {
	if !mixed {
		for _, q := range queues {
			for _, p := range q {
				send(p)
			}
		}
		return
	}
	for _, q := range queues { // calls begin in their order
		send(q[0])
	}
	for open := true; open; {
		open = false
		for i := range queues {
			for len(queues[i]) > 1 && !s.chance(3) {
				send(queues[i][1])
				queues[i] = queues[i][1:]
			}
			open = open || len(queues[i]) > 1
		}
	}
}

func (s *stream) responses() {
	keys, final := !s.chance(3), s.IntN(3) // the list at the end: with the ids of the stream, without, with others
	deltas, done := !s.chance(3), !s.chance(3)
	item := func(c made, args string, i int, key string) m {
		it := m{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": args}
		if key != "" {
			it["id"] = fmt.Sprintf("%s_%d", key, i)
		}
		return it
	}
	key := ""
	if keys {
		key = "fc"
	}
	var queues [][]m
	for i, c := range s.calls {
		q := []m{{"type": "response.output_item.added", "output_index": i, "item": item(c, "", i, key)}}
		if deltas {
			for _, text := range s.pieces(c.args) {
				q = append(q, m{"type": "response.function_call_arguments.delta", "output_index": i, "item_id": fmt.Sprintf("fc_%d", i), "delta": text})
			}
		}
		if !deltas || s.chance(2) {
			q = append(q, m{"type": "response.function_call_arguments.done", "output_index": i, "item_id": fmt.Sprintf("fc_%d", i), "arguments": c.args})
		}
		if done {
			q = append(q, m{"type": "response.output_item.done", "output_index": i, "item": item(c, c.args, i, key)})
		}
		queues = append(queues, q)
	}
	if !s.chance(6) {
		s.deliver(queues, s.chance(2), func(p m) { s.add(p) })
	} else {
		final = 0
	}
	output := []m{{"type": "reasoning", "id": "rs", "summary": []m{}}}
	for i, c := range s.calls {
		args := c.args
		switch final {
		case 1:
			key = ""
		case 2:
			key = "other"
		}
		output = append(output, item(c, args, i, key))
	}
	s.add(m{"type": "response.completed", "response": m{"status": "completed", "output": output}})
}

func (s *stream) claude() {
	s.add(m{"type": "message_start", "message": m{"usage": m{"input_tokens": 1}}})
	var queues [][]m
	block := func(i int, c made) []m {
		q := []m{{"type": "content_block_start", "index": i, "content_block": m{"type": "tool_use", "id": c.id, "name": c.name, "input": m{}}}}
		for _, text := range s.pieces(c.args) {
			q = append(q, m{"type": "content_block_delta", "index": i, "delta": m{"type": "input_json_delta", "partial_json": text}})
		}
		if !s.chance(4) {
			q = append(q, m{"type": "content_block_stop", "index": i})
		}
		return q
	}
	for i, c := range s.calls {
		queues = append(queues, block(i, c))
	}
	s.deliver(queues, s.chance(2), func(p m) { s.add(p) })
	if s.chance(3) {
		shift := s.IntN(2) * len(s.calls)
		for i, c := range s.calls {
			for _, p := range block(i+shift, c) {
				s.add(p)
			}
		}
	}
	s.add(m{"type": "message_delta", "delta": m{"stop_reason": "tool_use"}, "usage": m{"output_tokens": 1}})
}

func (s *stream) gemini() {
	ids := s.chance(2)
	if !ids {
		s.distinct()
	}
	s.without(ids)
	var parts []m
	for _, c := range s.calls {
		call := m{"name": c.name, "args": json.RawMessage(c.args)}
		if ids {
			call["id"] = c.id
		}
		parts = append(parts, m{"functionCall": call})
	}
	send := func(parts []m) { s.add(m{"candidates": []m{{"content": m{"role": "model", "parts": parts}}}}) }
	for rest := parts; len(rest) > 0; {
		n := 1 + s.IntN(len(rest))
		send(rest[:n])
		rest = rest[n:]
	}
	if s.chance(3) {
		send(parts)
	}
	s.add(m{"candidates": []m{{"content": m{"role": "model", "parts": []m{{"text": ""}}}, "finishReason": "STOP"}}})
}

func (s *stream) cohere() {
	send := func(i int, c made, again bool) {
		f := m{"name": c.name, "arguments": ""}
		if again {
			f["arguments"] = c.args
		}
		s.add(m{"type": "tool-call-start", "index": i, "delta": m{"message": m{"tool_calls": m{"id": c.id, "type": "function", "function": f}}}})
		if !again {
			for _, text := range s.pieces(c.args) {
				s.add(m{"type": "tool-call-delta", "index": i, "delta": m{"message": m{"tool_calls": m{"function": m{"arguments": text}}}}})
			}
		}
		s.add(m{"type": "tool-call-end", "index": i})
	}
	for i, c := range s.calls {
		send(i, c, false)
	}
	if s.chance(3) {
		shift := s.IntN(2)
		for i, c := range s.calls {
			send(i+shift, c, s.chance(2))
		}
	}
	s.add(m{"type": "message-end", "delta": m{"finish_reason": "TOOL_CALL", "usage": m{"tokens": m{"input_tokens": 1, "output_tokens": 1}}}})
}
