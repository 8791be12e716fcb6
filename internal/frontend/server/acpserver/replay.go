package acpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/agent/team/todo"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// replay sends what was said in the session, the same each time, and says whether the last turn was cut off.
func (s *sess) replay(ctx context.Context) {
	s.mu.Lock()
	s.live = true
	s.mu.Unlock()
	list := new(todo.List)
	r := replayer{s: s, ctx: event.NewContext(ctx, event.NewScope(event.Discard, event.Source{}, nil)), calls: make(map[string]acp.ToolCall)}
	r.todos = append(r.todos, todo.Tools(list)...)
	for _, m := range s.history() {
		r.message(m)
	}
	if items := list.Items(); len(items) > 0 {
		todos := make([]event.Todo, len(items))
		for i, item := range items {
			todos[i] = event.Todo{ID: item.ID, Desc: item.Desc, Done: item.Done}
		}
		s.send(planOf(todos))
	}
	if id, err := s.unfinishedRun(ctx); err == nil && id != "" {
		s.send(acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text("The last turn was interrupted. /resume continues it."), MessageID: "interrupted"})
	}
}

// replayer replays a session.
type replayer struct {
	s       *sess
	ctx     context.Context
	turn, n int
	calls   map[string]acp.ToolCall // of the turn, by the ids of the model
	todos   []tool.Tool
}

func (r *replayer) chunk(kind string, b acp.ContentBlock) {
	r.s.send(acp.Chunk{Kind: kind, Content: b, MessageID: fmt.Sprintf("%d-replay-%d", r.turn, r.n)})
}

func (r *replayer) message(m chat.Message) {
	r.n++
	if m.Question() {
		r.turn++
		clear(r.calls)
	}
	switch {
	case m.Role == chat.ToolRole:
		if c, ok := r.calls[m.ToolCallID]; ok {
			r.s.send(result(c, m.Text(), m.Failed))
			r.update(m)
		}
	case m.Role == chat.System, m.Continuation:
	case m.Role == chat.User:
		r.parts(acp.UserMessageChunk, m.Parts)
	default:
		r.parts(acp.AgentMessageChunk, m.Parts)
		for _, call := range m.ToolCalls {
			c := r.s.describe(call.Name, call.Arguments)
			c.Kind, c.ToolCallID, c.Status, c.Content = acp.ToolCallBegins, fmt.Sprintf("%d-%s", r.turn, call.ID), acp.InProgress, nil
			r.calls[call.ID] = c
			r.s.send(c)
		}
	}
}

// parts sends the parts of a message. What a model thought before it answered is a thought.
func (r *replayer) parts(kind string, parts []chat.Part) {
	for _, p := range parts {
		switch {
		case p.Type == chat.ImagePart:
			mime, data, ok := strings.Cut(strings.TrimPrefix(p.URL, "data:"), ";base64,")
			if ok {
				r.chunk(kind, acp.ContentBlock{Type: "image", MimeType: mime, Data: data})
			}
		case p.Text == "":
		case p.Type == chat.ReasoningPart:
			r.chunk(acp.AgentThoughtChunk, acp.Text(p.Text))
		default:
			r.chunk(kind, acp.Text(p.Text))
		}
	}
}

// update changes the todo list as a call did.
func (r *replayer) update(result chat.Message) {
	for _, t := range r.todos {
		if t.Declaration().Name == result.ToolName && !result.Failed {
			_, _ = t.Call(r.ctx, tool.Call{Name: result.ToolName, Arguments: json.RawMessage(r.calls[result.ToolCallID].RawInput)}) // it did no harm then
		}
	}
}
