package script

import (
	"fmt"
	"regexp"
	"slices"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// readAnswer reads the answer of a rule whose conditions have the regular
// expression re, or nil. Its keys stand beside those of the conditions, so m is left
// to the caller to close.
func readAnswer(m *yamldoc.Map, re *regexp.Regexp) answer {
	a := answer{
		text:      readTemplate(m, "reply", re),
		reasoning: readTemplate(m, "reasoning", re),
		calls:     readCalls(m, re),
		usage:     readUsage(m.Map("usage")),
		fail:      readFailure(m.Map("error")),
	}
	m.Int("chunk", &a.chunk, 1, maxCount)
	duration(m, "delay", &a.delay)
	duration(m, "chunk_delay", &a.chunkDelay)
	oneOf(m, "stop", &a.stop, stops)
	return a
}

// checkTogether reports keys that are missing or mean nothing beside each other.
func checkTogether(m *yamldoc.Map, fail *Failure) {
	if m == nil {
		return
	}
	text := m.Has("reply") || m.Has("reasoning")
	content := text || m.Has("tool_calls")
	switch {
	case !content && !m.Has("error"):
		m.Node().Errorf("there is no answer; expected reply, reasoning, tool_calls or error")
	case m.Has("chunk") && !text:
		m.Get("chunk").KeyErrorf("this means nothing without reply or reasoning")
	case m.Has("chunk_delay") && !content:
		m.Get("chunk_delay").KeyErrorf("this means nothing without reply, reasoning or tool_calls")
	case m.Has("error") && m.Has("stop"):
		m.Get("stop").KeyErrorf("this means nothing beside error")
	case m.Has("error") && m.Has("usage"):
		m.Get("usage").KeyErrorf("this means nothing beside error")
	case fail == nil:
	case content && fail.AfterChunks == 0:
		m.Get("error").KeyErrorf("this comes before the reply; set after_chunks to send some of it first")
	case !content && fail.AfterChunks > 0:
		m.Get("error").KeyErrorf("after_chunks means nothing: there is nothing to send before the error")
	}
}

func readTemplate(m *yamldoc.Map, key string, re *regexp.Regexp) template {
	var s string
	if !m.Text(key, &s) {
		return nil
	}
	t, err := parseTemplate(s, re)
	if err != nil {
		m.Get(key).Errorf("%v", err)
	}
	return t
}

func readCalls(m *yamldoc.Map, re *regexp.Regexp) []call {
	var out []call
	for _, n := range items(m, "tool_calls") {
		c := readCall(n.Map(), re)
		if c.id != "" && slices.ContainsFunc(out, func(o call) bool { return o.id == c.id }) {
			n.Errorf("the id %q is there twice", c.id)
		}
		out = append(out, c)
	}
	return out
}

func readCall(m *yamldoc.Map, re *regexp.Regexp) call {
	c := call{arguments: []jsonPiece{{raw: "{}"}}}
	if m != nil && !m.Has("name") {
		m.Node().Errorf("the name is missing")
	}
	filled(m, "name", &c.name)
	filled(m, "id", &c.id)
	if n := m.Get("arguments"); n != nil {
		c.arguments = readArguments(n, re)
	}
	strict(m)
	return c
}

func readUsage(m *yamldoc.Map) Usage {
	var u Usage
	for _, part := range []struct {
		key   string
		field **int
	}{
		{"input_tokens", &u.Input},
		{"cached_input_tokens", &u.CachedInput},
		{"output_tokens", &u.Output},
		{"reasoning_tokens", &u.Reasoning},
	} {
		var n int
		if m.Int(part.key, &n, 0, maxCount) {
			*part.field = &n
		}
	}
	if exceeds(u.CachedInput, u.Input) {
		m.Get("cached_input_tokens").KeyErrorf("this is a part of input_tokens, which must be there and not be less")
	}
	if exceeds(u.Reasoning, u.Output) {
		m.Get("reasoning_tokens").KeyErrorf("this is a part of output_tokens, which must be there and not be less")
	}
	strict(m)
	return u
}

// exceeds reports whether part is given and more than whole.
func exceeds(part, whole *int) bool {
	return part != nil && (whole == nil || *part > *whole)
}

// stops are the reasons that a rule may give for the end of a reply.
var stops = []chat.StopReason{chat.StopEnd, chat.StopLength, chat.StopToolCalls, chat.StopFiltered, chat.StopOther}

// kinds are the kinds of error that a rule may answer with.
var kinds = []provider.ErrorKind{
	provider.Authentication, provider.RateLimited, provider.ContextOverflow, provider.Transient,
	provider.Refused, provider.Invalid, provider.BadReply,
}

// readFailure reads an error; nil means none.
func readFailure(m *yamldoc.Map) *Failure {
	if m == nil {
		return nil
	}
	var f Failure
	if !m.Has("kind") {
		m.Node().KeyErrorf("the kind is missing; expected one of %s", alternatives(kinds))
	}
	oneOf(m, "kind", &f.Err.Kind, kinds)
	f.Err.Msg = fmt.Sprintf("scripted error of kind %s", f.Err.Kind)
	filled(m, "message", &f.Err.Msg)
	m.Int("status", &f.Err.Status, 100, 599)
	duration(m, "retry_after", &f.Err.RetryAfter)
	m.Int("after_chunks", &f.AfterChunks, 0, maxCount)
	strict(m)
	return &f
}
