package legacy

import (
	"fmt"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// rounds converts a content of tool calls: the calls of one reply, or with "sequence"
// those of several replies, of which it is not known any more which call belongs to
// which. They are taken for replies of one call each.
func (r *reader) rounds(m *yamldoc.Map) []chat.Message {
	var text string
	var sequence bool
	m.Text("text", &text)
	m.Bool("sequence", &sequence)

	var list, results []chat.Message
	reply := chat.Message{Role: chat.Assistant}
	if text != "" {
		reply = chat.Text(chat.Assistant, r.images.restore(text))
	}
	for _, n := range m.List("tool_results") {
		call, result := r.call(n.Map())
		reply.Parts = append(reply.Parts, r.narration(n.Map())...)
		reply.ToolCalls = append(reply.ToolCalls, call)
		results = append(results, result)
		if sequence {
			list = append(list, reply, result)
			reply, results = chat.Message{Role: chat.Assistant}, nil
		}
	}
	if len(reply.ToolCalls) > 0 || len(reply.Parts) > 0 {
		list = append(list, reply)
	}
	return append(list, results...)
}

// narration returns what a model reasoned and said in front of a call.
func (r *reader) narration(m *yamldoc.Map) []chat.Part {
	var parts []chat.Part
	var thinking value.Value
	if m.Value("thinking", &thinking) {
		parts = r.reasoning(thinking)
	}
	var text string
	if n := m.Get("text"); n != nil && n.Kind() != yamldoc.Null && m.Text("text", &text) && text != "" {
		parts = append(parts, chat.Part{Type: chat.TextPart, Text: r.images.restore(text)})
	}
	return parts
}

// reasoning reads a text, a mapping with a text and its signature, or a list of such mappings.
func (r *reader) reasoning(v value.Value) (parts []chat.Part) {
	if s, ok := v.AsString(); ok && s != "" {
		return []chat.Part{{Type: chat.ReasoningPart, Text: s}}
	}
	if list, ok := v.AsList(); ok {
		for _, element := range list.All() {
			parts = append(parts, r.reasoning(element)...)
		}
	}
	o := v.AsObject()
	if o == nil {
		return parts
	}
	p := chat.Part{Type: chat.ReasoningPart}
	for key, dst := range map[string]*string{"text": &p.Text, "thinking": &p.Text, "signature": &p.Signature} {
		if member, ok := o.Get(key); ok {
			if s, ok := member.AsString(); ok && s != "" {
				*dst = s
			}
		}
	}
	if p.Text == "" && p.Signature == "" {
		return parts
	}
	return append(parts, p)
}

// call converts a call and its result.
func (r *reader) call(m *yamldoc.Map) (chat.ToolCall, chat.Message) {
	r.calls++
	c := m.Map("call")
	call := chat.ToolCall{Arguments: "{}"}
	if c != nil {
		c.Require("name")
	}
	c.Text("name", &call.Name)
	c.Text("id", &call.ID)
	c.Text("thought_signature", &call.Signature)
	if call.ID == "" {
		call.ID = fmt.Sprintf("call_%d", r.calls)
	}
	var arguments, output value.Value
	if c.Value("arguments", &arguments) {
		call.Arguments = jsonText(arguments)
	}
	result := chat.Message{Role: chat.ToolRole, ToolCallID: call.ID, ToolName: call.Name}
	if m.Value("output", &output) {
		if text := jsonText(output); text != "" {
			result.Parts = []chat.Part{{Type: chat.TextPart, Text: r.images.restore(text)}}
		}
	}
	return call, result
}

// jsonText returns v as JSON, but a string as itself: that of arguments is JSON
// already, and that of a result what the tool has printed.
func jsonText(v value.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	return string(v.AppendJSON(nil))
}
