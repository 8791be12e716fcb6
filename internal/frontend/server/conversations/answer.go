package conversations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// answer is made of what happens while a question is answered. It implements [event.Emitter].
type answer struct {
	out    *stream.Emitter // nil for an answer in one piece
	parses bool            // the answer is JSON
	// unrecorded says that the id of the run is that of none on record.
	unrecorded bool

	mu sync.Mutex // guards the completion
	api.Completion
	calls map[string]int // places in ToolCalls, by id
}

// newAnswer returns an answer to the request that is served with ctx, in a session if id is not nil.
func newAnswer(ctx context.Context, id *string) *answer {
	return &answer{
		Completion: api.Completion{RequestID: rest.RequestID(ctx), SessionID: id, ToolCalls: []api.CompletionCall{}},
		calls:      make(map[string]int),
	}
}

// Emit implements [event.Emitter].
func (a *answer) Emit(ctx context.Context, ev event.Event) error {
	rest.Progress(ctx)
	if ev.Depth == 0 {
		a.take(ev)
	}
	if a.out == nil {
		return nil
	}
	err := a.out.Emit(ctx, ev)
	if _, begins := ev.Body.(event.Started); begins && ev.Depth == 0 && ev.Node == "" {
		err = a.out.Send(ctx, "started", api.CompletionStarted{RequestID: a.RequestID, SessionID: a.SessionID, RunID: a.RunID, Model: a.Model})
	}
	if errors.Is(err, stream.ErrGone) { // which ends the work, and undoes nothing
		return &run.StopError{Err: fmt.Errorf("%w: %w", context.Canceled, err)}
	}
	return err
}

// take adds an event to the completion.
func (a *answer) take(ev event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch b := ev.Body.(type) {
	case event.Started:
		if ev.Node == "" {
			if a.Model = b.Model; !a.unrecorded {
				a.RunID = ev.Run
			}
		}
	case event.Reply:
		if a.Turns++; ev.Node == "" {
			a.Model = b.Model
		}
	case event.ToolCall:
		a.calls[b.ID] = len(a.ToolCalls)
		a.ToolCalls = append(a.ToolCalls, api.CompletionCall{ID: b.ID, Name: b.Name, Args: b.Arguments})
	case event.ToolResult:
		if i, ok := a.calls[b.ID]; ok {
			a.ToolCalls[i].Result, a.ToolCalls[i].IsError = new(b.Text), new(b.Failed)
			a.ToolCalls[i].Args = cmp.Or(b.Arguments, a.ToolCalls[i].Args)
		}
	case event.CompressionFinished:
		a.Compressed = a.Compressed || b.Error == ""
	case event.AutoContinue:
		a.AutoContinued++
	case event.Question:
		a.Question = &api.OpenQuestion{ID: b.ID, Text: b.Text, Options: b.Options, Default: b.Default}
	case event.Answer:
		if a.Question != nil && a.Question.ID == b.ID {
			a.Question = nil
		}
	case event.Warning:
		a.Warnings = append(a.Warnings, b.Text)
	case event.Finished:
		if ev.Node == "" {
			a.FinalMessage, a.Usage, a.FinishReason = b.Output, api.NewTokenUsage(b.Usage), string(b.Stop)
			if b.Stop == "" { // of a graph
				a.FinishReason = string(chat.StopEnd)
			}
		}
	}
}

// run returns the id of the run that answers, "" if it is not on record.
func (a *answer) run() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.RunID
}

// finish ends the answer with the error of the work, if there is one. That the work waits for an answer is none.
func (a *answer) finish(ctx context.Context, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fault.CodeOf(err) == fault.Suspended && a.Question != nil {
		a.FinishReason = "question"
		return nil
	}
	a.Question = nil
	switch {
	case err == nil && a.parses:
		err = json.Unmarshal([]byte(a.FinalMessage), &a.Parsed)
	case err != nil && strings.Contains(fault.HintOf(err), "loki --resume"):
		e := rest.FromError(ctx, err)
		return e.WithHint("resume it where it stopped: POST /v1/runs/%s/resume", a.RunID)
	}
	return err
}

// outcome returns the completion as the last event of a stream has it.
func (a *answer) outcome() api.CompletionFinished {
	return api.CompletionFinished{Outcome: api.CompletionOutcome{
		FinalMessage: a.FinalMessage, ToolCalls: len(a.ToolCalls), Turns: a.Turns, Compressed: a.Compressed, AutoContinued: a.AutoContinued,
		Usage: a.Usage, Model: a.Model, FinishReason: a.FinishReason, RunID: a.RunID, Parsed: a.Parsed, Question: a.Question,
	}}
}

// reply answers a request with what work makes of it: as a stream if the client wants one.
func (s *service) reply(ctx context.Context, req *api.CompletionRequest, id *string, work func(ctx context.Context, a *answer) error) (*rest.Reply, error) {
	a := newAnswer(ctx, id)
	a.parses = req.Schema != nil
	finish := func(ctx context.Context) error {
		err := work(ctx, a)
		rest.AboutRun(ctx, a.run())
		return a.finish(ctx, err)
	}
	if !req.Stream && !rest.WantsStream(ctx) {
		if err := finish(ctx); err != nil {
			return nil, err
		}
		return rest.JSON(0, &a.Completion), nil
	}
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		a.out = stream.NewEmitter(w)
		if err := finish(ctx); err != nil {
			return err
		}
		return a.out.Send(ctx, "finished", a.outcome())
	}), nil
}
