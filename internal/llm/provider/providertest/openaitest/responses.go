package openaitest

import (
	"fmt"
	"strings"
)

// inResponses reports whether the reply has to be in the responses format.
func (c call) inResponses() bool { return strings.HasSuffix(c.R.URL.Path, "/responses") }

// typed sends one event of a streamed response.
func (c call) typed(typ string, v map[string]any) {
	v["type"] = typ
	c.Send("event: " + typ + "\ndata: " + toJSON(v) + "\n\n")
}

func (c call) textDelta(text string) {
	c.typed("response.output_text.delta", map[string]any{"output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": text})
}

// respond answers in the responses format.
func (m message) respond(c call) {
	items := m.items()
	if !c.Streamed() {
		c.sendJSON(m.response(c, items))
		return
	}
	c.startStream()
	c.typed("response.created", map[string]any{"response": map[string]any{"id": "resp_1", "status": "in_progress"}})
	for i, item := range items {
		c.typed("response.output_item.added", map[string]any{"output_index": i, "item": map[string]any{"type": item["type"], "id": item["id"]}})
		switch item["type"] {
		case "reasoning":
			c.typed("response.reasoning_summary_text.delta", map[string]any{"output_index": i, "summary_index": 0, "delta": m.reasoning})
		case "message":
			for _, p := range m.pieces {
				c.typed("response.output_text.delta", map[string]any{"output_index": i, "content_index": 0, "delta": p})
			}
		case "function_call":
			c.typed("response.function_call_arguments.delta", map[string]any{"output_index": i, "delta": item["arguments"]})
		}
		c.typed("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	response := m.response(c, items)
	c.typed("response."+response["status"].(string), map[string]any{"response": response})
}

func (m message) response(c call, items []map[string]any) map[string]any {
	out := max(1, len(m.pieces)+len(m.calls))
	status, incomplete := "completed", any(nil)
	if m.cutOff {
		status, incomplete = "incomplete", map[string]any{"reason": "max_output_tokens"}
	}
	return map[string]any{
		"id": "resp_1", "object": "response", "status": status, "incomplete_details": incomplete, "model": c.model, "error": nil, "output": items,
		"usage": map[string]any{"input_tokens": PromptTokens, "output_tokens": out, "total_tokens": PromptTokens + out},
	}
}

// items returns the reply as the items of a response. Reasoning is encrypted as
// "enc:" and its text.
func (m message) items() []map[string]any {
	items := []map[string]any{}
	if m.reasoning != "" {
		items = append(items, map[string]any{
			"type": "reasoning", "id": "rs_1", "encrypted_content": "enc:" + m.reasoning,
			"summary": []any{map[string]any{"type": "summary_text", "text": m.reasoning}},
		})
	}
	if len(m.pieces) > 0 {
		text := map[string]any{"type": "output_text", "text": strings.Join(m.pieces, ""), "annotations": []any{}}
		items = append(items, map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{text}})
	}
	for i, made := range m.calls {
		items = append(items, map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d", i+1), "status": "completed",
			"call_id": made.ID, "name": made.Name, "arguments": made.Arguments,
		})
	}
	return items
}
