package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/fault"
	"loki/internal/frontend/api/summary"
	"loki/internal/llm/chat"
)

// runURI begins the addresses of runs.
const runURI = "loki://runs/"

// addResources adds the runs on record.
func (s *server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "run", Title: "A run", URITemplate: runURI + "{id}", MIMEType: "application/json", Description: "how a run is, as GET /v1/runs/{id} of a server says it",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		info, err := s.runs.Store().Info(ctx, strings.TrimPrefix(req.Params.URI, runURI))
		if err != nil {
			return nil, resourceNotFound(req.Params.URI, err)
		}
		data, err := json.Marshal(summary.Of(info))
		return content(req.Params.URI, "application/json", s.app.Hide(string(data))), err
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "events", Title: "The events of a run", URITemplate: runURI + "{id}/events", MIMEType: "application/x-ndjson", Description: "what happened in a run, an event on each line",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		events, err := s.runs.Store().Events(ctx, strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, runURI), "/events"), 0, 0)
		if err != nil {
			return nil, resourceNotFound(req.Params.URI, err)
		}
		var b strings.Builder
		for _, ev := range events {
			b.Write(ev.JSON)
			b.WriteByte('\n')
		}
		return content(req.Params.URI, "application/x-ndjson", s.app.Hide(b.String())), nil
	})
}

// resourceNotFound returns the error of a resource that is not there.
func resourceNotFound(uri string, err error) error {
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Usage {
		return mcp.ResourceNotFoundError(uri)
	}
	return err
}

// content returns the text of a resource.
func content(uri, kind, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}
}

// inputArgument is the argument of a prompt.
const inputArgument = "input"

// addPrompts adds the roles.
func (s *server) addPrompts() error {
	names, err := s.talks.Roles().Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		role, _, err := s.talks.Roles().Load(name)
		if err != nil {
			continue // loki --list-roles and its use say why
		}
		s.mcp.AddPrompt(&mcp.Prompt{
			Name: name, Title: "Role " + name, Description: "what a model is told under the role " + name,
			Arguments: []*mcp.PromptArgument{{Name: inputArgument, Description: "what the model is asked"}},
		}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := &mcp.GetPromptResult{}
			for _, m := range role.Messages(chat.Text(chat.User, req.Params.Arguments[inputArgument])) {
				of := mcp.Role("user")
				if m.Role == chat.Assistant {
					of = "assistant"
				}
				r.Messages = append(r.Messages, &mcp.PromptMessage{Role: of, Content: &mcp.TextContent{Text: m.Text()}})
			}
			return r, nil
		})
	}
	return nil
}
