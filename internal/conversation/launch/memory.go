package launch

import (
	"context"

	"loki/internal/agent/memory"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// nodeMemory returns how nodes of an agent's run use the memory, nil if they cannot. What a node gets may come from others, so it only proposes.
func (s *Service) nodeMemory(r Run) func(context.Context, *run.Task, chat.Memory, string) (string, []tool.Tool, error) {
	m := s.Memory()
	if m == nil || m.Off || r.Memory == chat.MemoryOff {
		return nil
	}
	return func(ctx context.Context, t *run.Task, mode chat.Memory, prompt string) (string, []tool.Tool, error) {
		s, place := m.Of(auth.OwnerOf(ctx)), m.Place(string(s.Scope(r.Agent.Ref)))
		recalled, found, err := steps.ReadNote[memory.Recalled](ctx, t.Steps, "memory")
		if err == nil && !found {
			recalled = s.Recall(ctx, place, prompt, m.Tokens)
			err = steps.WriteNote(ctx, t.Steps, "memory", recalled)
		}
		emit := func(ctx context.Context, action string, facts ...memory.Fact) error {
			e := event.Memory{Action: action}
			for _, f := range facts {
				e.Facts = append(e.Facts, event.MemoryFact{ID: f.ID, Scope: f.Scope, Title: f.Title})
			}
			return t.Events.Emit(ctx, e)
		}
		if err == nil && len(recalled.Facts) > 0 && !found {
			err = emit(ctx, "recalled", recalled.Facts...)
		}
		if recalled.Text != "" {
			recalled.Text += "\n"
		}
		return recalled.Text, memory.Tools(memory.Options{
			Store: s, Place: place, Mode: mode, Source: memory.Source{Run: t.Events.Run}, Untrusted: func() string { return "what comes to a node of a graph" },
			Wrote: func(ctx context.Context, action string, f memory.Fact) error { return emit(ctx, action, f) },
		}), err
	}
}
