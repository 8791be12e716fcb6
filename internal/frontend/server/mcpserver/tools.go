package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
	"loki/internal/workflow/run"
)

// The tools that are no agents.
const (
	toolAsk    = ownPrefix + "ask"
	toolSearch = ownPrefix + "search"
	toolRun    = ownPrefix + "run"
	toolCancel = ownPrefix + "cancel"
	toolAnswer = ownPrefix + "answer"
)

// readOnly are the hints of a tool that changes nothing.
func readOnly() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
}

// askArguments are those of loki_ask.
type askArguments struct {
	Prompt string `json:"prompt" jsonschema:"what the model is asked"`
	Model  string `json:"model,omitempty" jsonschema:"id of the model; absent: the one of the configuration"`
	Role   string `json:"role,omitempty" jsonschema:"name of the role under which the model answers"`
	Rag    string `json:"rag,omitempty" jsonschema:"name of the knowledge base from which the model answers"`

	Schema map[string]any `json:"schema,omitempty" jsonschema:"JSON Schema of the answer, which is JSON then"`
}

// searchArguments are those of loki_search.
type searchArguments struct {
	Query string `json:"query" jsonschema:"what is looked for"`
	Rag   string `json:"rag" jsonschema:"name of the knowledge base"`
	Limit int    `json:"limit,omitempty" jsonschema:"the most passages, 1 to 20; absent: 5"`
}

// found is the structured result of loki_search.
type found struct {
	Passages []api.RAGPassage `json:"passages"`
}

// addAsk adds the tool that asks models.
func (s *server) addAsk() {
	mcp.AddTool(s.mcp, &mcp.Tool{Name: toolAsk, Title: "Ask a model", Description: "Asks a language model of the user, without tools.", Annotations: readOnly(), OutputSchema: json.RawMessage(outputSchema)},
		func(ctx context.Context, req *mcp.CallToolRequest, in askArguments) (*mcp.CallToolResult, any, error) {
			job, err := s.question(ctx, in)
			if err != nil {
				return failureResult(err), nil, nil
			}
			job.Info.Terms = s.terms(req.Params.Meta)
			r, err := s.start(ctx, req, job)
			return r, nil, err
		})
}

// offerSearch offers the tool that searches knowledge bases, if there are some.
func (s *server) offerSearch(ctx context.Context, offer func(kind, name string, what any, add func())) {
	names, err := s.bases(ctx)
	if err != nil || len(names) == 0 {
		return
	}
	t := &mcp.Tool{
		Name: toolSearch, Title: "Search a knowledge base", Annotations: readOnly(),
		Description: fmt.Sprintf("Finds passages in the documents of a knowledge base. There are: %s.", strings.Join(names, ", ")),
	}
	offer(kindTool, toolSearch, t, func() {
		mcp.AddTool(s.mcp, t, func(ctx context.Context, _ *mcp.CallToolRequest, in searchArguments) (*mcp.CallToolResult, found, error) {
			passages, err := s.search(ctx, in)
			return nil, found{passages}, err
		})
	})
}

// bases returns the names of the knowledge bases that are offered.
func (s *server) bases(ctx context.Context) ([]string, error) {
	names, err := s.app.Knowledge().Names(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !listed(s.settings.RAGs, name) }), err
}

// question returns the job of a question to a model.
func (s *server) question(ctx context.Context, in askArguments) (run.Job, error) {
	if in.Prompt == "" {
		return run.Job{}, errors.New("prompt: the text is empty")
	}
	if in.Model != "" {
		if _, err := s.app.Models.ServedModel(in.Model, catalog.Chat); err != nil {
			return run.Job{}, err
		}
	}
	none := ""
	conv := s.talks.Begin(conversation.Options{
		Settings: chat.Settings{Model: in.Model, EnabledTools: &none, EnabledMCPServers: &none}, NoStream: true, Caller: conversation.Caller{Events: s.runs.Events()},
	})
	if in.Role != "" {
		role, _, err := s.talks.Roles().Load(in.Role)
		if err == nil {
			err = conv.UseRole(ctx, role)
		}
		if err != nil {
			return run.Job{}, err
		}
	}
	q := conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, in.Prompt), Text: in.Prompt}}
	if in.Rag != "" {
		if err := s.mayRead(in.Rag); err != nil {
			return run.Job{}, err
		}
		if err := conv.UseKnowledge(in.Rag); err != nil {
			return run.Job{}, err
		}
	}
	if in.Schema != nil {
		source, err := json.Marshal(in.Schema)
		if err != nil {
			return run.Job{}, err
		}
		if q.Form, err = conversation.NewForm("schema", source); err != nil {
			return run.Job{}, err
		}
	}
	return conv.BackgroundJob(ctx, q)
}

// mayRead refuses a knowledge base that the caller may not search.
func (s *server) mayRead(name string) error {
	if !listed(s.settings.RAGs, name) || !s.who.Allows(auth.ReadRAGs) {
		return fault.New(fault.NotFound, "there is no knowledge base %s here", name)
	}
	return nil
}

// search finds passages in a knowledge base.
func (s *server) search(ctx context.Context, in searchArguments) ([]api.RAGPassage, error) {
	if in.Limit < 0 || in.Limit > 20 {
		return nil, errors.New("limit: a number from 1 to 20 is expected")
	}
	if err := s.mayRead(in.Rag); err != nil {
		return nil, err
	}
	events := s.app.Events(event.Discard)
	bases := s.app.Knowledge()
	base, release, err := bases.Open(ctx, events, in.Rag)
	if err != nil {
		return nil, err
	}
	defer release()
	hits, err := base.Search(ctx, rag.Query{Text: in.Query, Retry: bases.Builder(events, nil).Retry})
	if err != nil {
		return nil, err
	}
	limit := in.Limit
	if limit == 0 {
		limit = 5
	}
	list := make([]api.RAGPassage, 0, limit)
	for _, h := range hits.Hits[:min(limit, len(hits.Hits))] {
		list = append(list, api.RAGPassage{Source: s.app.Hide(h.Source()), Heading: h.Heading, Text: s.app.Hide(h.Text), Score: h.Score})
	}
	return list, nil
}

// runArguments are those of loki_run.
type runArguments struct {
	RunID string  `json:"run_id" jsonschema:"id of the run"`
	Wait  float64 `json:"wait,omitempty" jsonschema:"seconds to wait until the run rests, up to 50"`
}

// cancelArguments are those of loki_cancel.
type cancelArguments struct {
	RunID string `json:"run_id" jsonschema:"id of the run"`
}

// answerArguments are those of loki_answer.
type answerArguments struct {
	RunID      string `json:"run_id" jsonschema:"id of the run"`
	QuestionID string `json:"question_id" jsonschema:"id of the open question"`
	Answer     string `json:"answer" jsonschema:"the answer of the user: an option, or a text where one is accepted"`
}

// addRunTools adds the tools about runs.
func (s *server) addRunTools() {
	if s.settings.Runs == config.RunsNone {
		return
	}
	if s.who.Allows(auth.ReadRuns) {
		s.addLook()
	}
	if s.who.Allows(auth.WriteRuns) {
		s.addChange()
	}
}

// addLook adds the tool that looks at runs.
func (s *server) addLook() {
	mcp.AddTool(s.mcp, &mcp.Tool{Name: toolRun, Title: "Look at a run", Description: "Returns the status of a run, and resumes it if it was interrupted.", OutputSchema: json.RawMessage(outputSchema)},
		func(ctx context.Context, req *mcp.CallToolRequest, in runArguments) (*mcp.CallToolResult, any, error) {
			if in.Wait < 0 || in.Wait > 50 {
				return failureResult(errors.New("wait: a number from 0 to 50 is expected")), nil, nil
			}
			info, err := s.find(ctx, in.RunID)
			if err == nil {
				err = s.revive(ctx, info)
			}
			if err != nil {
				return failureResult(err), nil, nil
			}
			info, _, err = s.wait(ctx, req, info.ID, time.Duration(in.Wait*float64(time.Second)))
			if err != nil {
				return nil, nil, err
			}
			pending, err := s.openQuestions(ctx, info)
			return s.resultOr(info, pending, err), nil, nil
		})
}

// addChange adds the tools that change runs.
func (s *server) addChange() {
	mcp.AddTool(s.mcp, &mcp.Tool{Name: toolCancel, Title: "Cancel a run", Description: "Cancels a run, and runs the compensations that its agent defines.", OutputSchema: json.RawMessage(outputSchema)},
		func(ctx context.Context, _ *mcp.CallToolRequest, in cancelArguments) (*mcp.CallToolResult, any, error) {
			info, err := s.find(ctx, in.RunID)
			if err == nil {
				err = s.runs.Cancel(ctx, info.ID)
			}
			if err == nil {
				info, err = s.runs.Store().Info(ctx, info.ID)
			}
			r := s.resultOr(info, nil, err)
			r.IsError = err != nil
			return r, nil, nil
		})
	mcp.AddTool(s.mcp, &mcp.Tool{Name: toolAnswer, Title: "Answer a question", Description: "Answers an open question of a run with the answer of the user. It cannot consent to tool calls.", OutputSchema: json.RawMessage(outputSchema)},
		func(ctx context.Context, req *mcp.CallToolRequest, in answerArguments) (*mcp.CallToolResult, any, error) {
			info, err := s.find(ctx, in.RunID)
			if err != nil {
				return failureResult(err), nil, nil
			}
			pending, err := s.runs.Store().Pending(ctx, info.ID)
			if err != nil {
				return failureResult(err), nil, nil
			}
			if i := slices.IndexFunc(pending, func(p run.Pending) bool { return p.ID == in.QuestionID }); i >= 0 && (isConsent(pending[i]) || pending[i].Kind == kindSecret) {
				return failureResult(fmt.Errorf("only the user can answer question %s: loki --resume %s", in.QuestionID, info.ID)), nil, nil
			}
			if err := s.answer(ctx, info.ID, map[string]string{in.QuestionID: in.Answer}); err != nil {
				return failureResult(err), nil, nil
			}
			r, err := s.follow(ctx, req, info.ID, s.settings.Wait)
			return r, nil, err
		})
}

// revive resumes a run whose process died.
func (s *server) revive(ctx context.Context, info run.Info) error {
	if summary.Status(info) != "interrupted" || !s.who.Allows(auth.RunAgents) {
		return nil
	}
	_, err := s.runs.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: info.ID}, Uncanceled: true})
	if now, failure := s.runs.Store().Info(ctx, info.ID); err != nil && failure == nil && summary.Status(now) != "interrupted" {
		return nil // it was resumed elsewhere
	}
	return err
}
