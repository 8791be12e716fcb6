package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// Tools declares the tools of requests in the words that a provider takes, and remembers which of them it refuses. One that
// cannot be declared is left out, so that the others can be used. The zero value is ready. It may be used from
// several goroutines.
type Tools struct {
	mu      sync.Mutex
	refused map[string]string // by toolKey, why a tool is left out
	shorter map[string]int    // by name of a model, the longest description of a tool in characters
	fewer   map[string]int    // by name of a model, how many tools it takes
	noted   map[string]bool   // texts of notes
}

// Chat answers req by ask. The tools of the request that ask gets are in the words of d; calls and the messages have the
// tools' own words outside.
func (t *Tools) Chat(ctx context.Context, req provider.Request, d normalize.Dialect, ask func(context.Context, provider.Request) iter.Seq2[provider.Chunk, error]) iter.Seq2[provider.Chunk, error] {
	if len(req.Tools) == 0 {
		return ask(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		for {
			sent := t.declare(req, d)
			for _, note := range t.news(sent.notes) {
				if !yield(provider.Chunk{Kind: provider.Note, Text: note}, nil) {
					return
				}
			}
			begun, again := false, false
			for chunk, err := range ask(ctx, sent.request) {
				if err != nil && !begun && t.learn(req, sent, err) {
					again = true
					break
				}
				begun = true
				if chunk.Kind == provider.ToolCall {
					chunk.ToolCall = sent.own(chunk.ToolCall)
				}
				if !yield(chunk, err) {
					return
				}
			}
			if !again {
				return
			}
		}
	}
}

// declared is a request in the words of a provider.
type declared struct {
	request provider.Request
	tools   []normalize.Declared // as in the request
	notes   []string
}

// own returns a call in the words of the tool.
func (d declared) own(call chat.ToolCall) chat.ToolCall {
	for _, t := range d.tools {
		if t.Name == call.Name {
			call.Name, call.Arguments = t.Own, normalize.Rename(call.Arguments, t.Names)
			break
		}
	}
	return call
}

// declare returns req in the words of d, without the tools that are known to be refused.
func (t *Tools) declare(req provider.Request, d normalize.Dialect) declared {
	out := declared{request: req}
	taken := make(map[string]bool, len(req.Tools))
	for _, tool := range req.Tools {
		taken[tool.Name] = true
	}
	t.mu.Lock()
	longest, most := t.shorter[req.Model], t.fewer[req.Model]
	t.mu.Unlock()
	for _, tool := range req.Tools {
		t.mu.Lock()
		why, refused := t.refused[toolKey(req.Model, tool)]
		t.mu.Unlock()
		if refused {
			out.notes = append(out.notes, why)
			continue
		}
		one, ok := d.Declare(tool, taken)
		switch {
		case !ok:
			out.notes = append(out.notes, fmt.Sprintf("the tool %s is left out: the schema of its arguments is too large", tool.Name))
			continue
		case most > 0 && len(out.tools) == most && req.Choice.Name != tool.Name:
			out.notes = append(out.notes, fmt.Sprintf("the tool %s is left out: the provider takes %d tools at most", tool.Name, most))
			continue
		}
		taken[one.Name] = true
		if longest > 0 {
			one.Description = text.CutRunes(one.Description, longest)
		}
		out.tools = append(out.tools, one)
	}
	out.request.Tools = make([]chat.Tool, len(out.tools))
	for i, one := range out.tools {
		out.request.Tools[i] = one.Tool
		if one.Own == req.Choice.Name {
			out.request.Choice.Name = one.Name
		}
	}
	if out.request.Tools == nil || len(out.tools) == 0 {
		out.request.Tools, out.request.Choice = nil, chat.ToolChoice{}
	}
	out.request.Messages = out.translate(req.Messages)
	return out
}

// translate returns messages whose calls are in the words of the provider.
func (d declared) translate(messages []chat.Message) []chat.Message {
	changed := make(map[string]normalize.Declared)
	for _, t := range d.tools {
		if t.Name != t.Own || len(t.Names) > 0 {
			changed[t.Own] = t
		}
	}
	if len(changed) == 0 {
		return messages
	}
	messages = slices.Clone(messages)
	for i, m := range messages {
		if t, ok := changed[m.ToolName]; ok {
			messages[i].ToolName = t.Name
		}
		calls := slices.Clone(m.ToolCalls)
		for j, call := range calls {
			if t, ok := changed[call.Name]; ok {
				sent := make(map[string]string, len(t.Names))
				for name, own := range t.Names {
					sent[own] = name
				}
				calls[j].Name, calls[j].Arguments = t.Name, normalize.Rename(call.Arguments, sent)
			}
		}
		messages[i].ToolCalls = calls
	}
	return messages
}

// news returns the notes that were not returned before.
func (t *Tools) news(notes []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var fresh []string
	for _, note := range notes {
		if !t.noted[note] {
			if t.noted == nil {
				t.noted = make(map[string]bool)
			}
			t.noted[note] = true
			fresh = append(fresh, note)
		}
	}
	return fresh
}

// learn reports whether a refusal is about a tool, or about the number of tools, that further requests can do without.
func (t *Tools) learn(req provider.Request, sent declared, err error) bool {
	words, ok := Complaint(err)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := number(tooMany(), words); n > 0 && n < len(sent.tools) {
		return remember(&t.fewer, req.Model, n)
	}
	i := refusedTool(words, sent.tools)
	if i < 0 {
		return false
	}
	one := sent.tools[i]
	if n := number(tooLong(), words); n > 0 && n < len([]rune(one.Description)) && strings.Contains(words, "description") {
		return remember(&t.shorter, req.Model, n)
	}
	if one.Own == req.Choice.Name {
		return false
	}
	for _, tool := range req.Tools {
		if tool.Name == one.Own {
			note := fmt.Sprintf("the tool %s is left out: the provider refuses it: %s", one.Own, text.OneLine(err.Error(), 300))
			return remember(&t.refused, toolKey(req.Model, tool), note)
		}
	}
	return false
}

// remember sets a value of a map, and reports whether that changed it.
func remember[V comparable](to *map[string]V, key string, v V) bool {
	if old, known := (*to)[key]; known && old == v {
		return false
	}
	if *to == nil {
		*to = make(map[string]V)
	}
	(*to)[key] = v
	return true
}

// toolKey identifies a tool as long as its declaration is the same.
func toolKey(model string, t chat.Tool) string {
	return model + "\x00" + t.Name + "\x00" + t.Description + "\x00" + string(t.Parameters)
}

// The words of refusals, in lower case: "Invalid 'tools': array too long. Expected an array with maximum length 128" and "string
// too long. Expected a string with maximum length 1024".
var (
	tooMany = text.Regexp(`'tools'.*(?:array too long|too many).*maximum length (\d+)`)
	tooLong = text.Regexp(`string too long.*maximum length (\d+)`)
	// place is where a declaration is in a request: tools.3.custom, tools[3].function, function_declarations[3],
	// toolConfig.tools.3.toolSpec, or the same counted from 1 with .member behind it.
	place  = text.Regexp(`\b(?:tools|function_?declarations)(?:\[(\d+)\]|[./](\d+)(\.member)?)`)
	quoted = text.Regexp("(?:function|tool):? |['\"`]")
)

func number(re *regexp.Regexp, words string) int {
	m := re.FindStringSubmatch(words)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// refusedTool returns the place of the tool that a refusal names, -1 if it names none.
func refusedTool(words string, tools []normalize.Declared) int {
	byName := make(map[string]int, len(tools))
	for i, t := range tools {
		byName[strings.ToLower(t.Name)] = i
	}
	places := place().FindAllStringSubmatch(words, -1)
	if len(places) > 0 {
		m := places[len(places)-1] // of tools[0].function_declarations[3] the last
		i, err := strconv.Atoi(m[1] + m[2])
		if m[3] != "" {
			i--
		}
		if err == nil && i >= 0 && i < len(tools) {
			return i
		}
	}
	for _, at := range quoted().FindAllStringIndex(words, -1) {
		rest := words[at[1]:]
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if strings.HasPrefix(rest, name) && (len(rest) == len(name) || !isNamePart(rest[len(name)])) {
				return byName[name]
			}
		}
	}
	return -1
}

func isNamePart(c byte) bool {
	return c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}
