package mcpserver

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/agent/role/macro"
	"loki/internal/base/fault"
	"loki/internal/frontend/api/summary"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
	"loki/internal/workflow/run"
)

// runURI begins the addresses of runs.
const runURI = "loki://runs/"

// addResources adds the runs on record.
func (s *server) addResources() {
	if s.only == "" && s.who.Allows(auth.ReadRAGs) {
		s.addDocuments()
	}
	if s.settings.Runs == config.RunsNone || !s.who.Allows(auth.ReadRuns) {
		return
	}
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "run", Title: "A run", URITemplate: runURI + "{id}", MIMEType: "application/json", Description: "the status of a run, in the form of GET /v1/runs/{id}",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		info, err := s.find(ctx, strings.TrimPrefix(req.Params.URI, runURI))
		if err != nil {
			return nil, resourceNotFound(req.Params.URI, err)
		}
		data, err := json.Marshal(summary.Of(info))
		return content(req.Params.URI, "application/json", s.app.Hide(string(data))), err
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "events", Title: "The events of a run", URITemplate: runURI + "{id}/events", MIMEType: "application/x-ndjson", Description: "the events of a run, one on each line",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		info, err := s.find(ctx, strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, runURI), "/events"))
		if err != nil {
			return nil, resourceNotFound(req.Params.URI, err)
		}
		events, err := s.runs.Store().Events(ctx, info.ID, 0, 0)
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

// offerPrompts offers the roles, and the macros that consist of prompts, as prompts. A role wins over a macro of its name.
func (s *server) offerPrompts(offer func(kind, name string, what any, add func())) error {
	names, err := s.talks.Roles().Names()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !listed(s.settings.Roles, name) })
	for _, name := range names {
		role, _, err := s.talks.Roles().Load(name)
		if err != nil {
			continue // loki --list-roles and its use say why
		}
		p := &mcp.Prompt{
			Name: name, Title: "Role " + name, Description: "the instructions of the role " + name,
			Arguments: []*mcp.PromptArgument{{Name: inputArgument, Description: "what the model is asked"}},
		}
		offer(kindPrompt, name, []any{p, role.Messages(chat.Text(chat.User, ""))}, func() {
			s.mcp.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
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
		})
	}
	macros, err := s.app.Macros().Names()
	if err != nil {
		return err
	}
	for _, name := range macros {
		m, _, err := s.app.Macros().Load(name)
		if err != nil || !listed(s.settings.Macros, name) || slices.Contains(names, name) || !m.OnlyPrompts() {
			continue
		}
		p := &mcp.Prompt{Name: name, Title: "Macro " + name, Description: "the prompts of the macro " + name}
		for _, v := range m.Variables {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: v.Name, Required: v.Default == nil})
		}
		offer(kindPrompt, name, []any{p, m}, func() {
			s.mcp.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return fillMacro(m, req.Params.Arguments)
			})
		})
	}
	return nil
}

// fillMacro returns the prompts of a macro.
func fillMacro(m macro.Macro, given map[string]string) (*mcp.GetPromptResult, error) {
	var args []string
	for _, v := range m.Variables {
		value, ok := given[v.Name]
		if !ok && v.Default != nil {
			value, ok = *v.Default, true
		}
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the argument " + v.Name + " is missing"}
		}
		args = append(args, value)
	}
	steps, err := m.Fill(args)
	r := &mcp.GetPromptResult{}
	for _, step := range steps {
		r.Messages = append(r.Messages, &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: step.Text}})
	}
	return r, err
}

// baseURI begins the addresses of documents of knowledge bases.
const baseURI = "loki://rags/"

// addDocuments adds the passages of knowledge bases, by document.
func (s *server) addDocuments() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "document", Title: "A document of a knowledge base", URITemplate: baseURI + "{name}/{+source}", MIMEType: "text/plain",
		Description: "the passages of a document; its source is that of a result of " + toolSearch + ", without the line numbers",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		name, source, _ := strings.Cut(strings.TrimPrefix(req.Params.URI, baseURI), "/")
		var err error
		for _, part := range []*string{&name, &source} {
			if plain, bad := url.PathUnescape(*part); bad == nil {
				*part = plain
			}
		}
		text, err := s.document(ctx, name, source)
		if err != nil {
			return nil, resourceNotFound(req.Params.URI, err)
		}
		return content(req.Params.URI, "text/plain", s.app.Hide(text)), nil
	})
}

// document returns the passages of a document of a knowledge base.
func (s *server) document(ctx context.Context, name, source string) (string, error) {
	none := fault.New(fault.NotFound, "there is no document %s in %s", source, name)
	if !listed(s.settings.RAGs, name) {
		return "", none
	}
	base, release, err := s.app.Knowledge().Open(ctx, s.app.Events(event.Discard), name)
	if err != nil {
		return "", err
	}
	defer release()
	for f, err := range base.Index().Files(ctx) {
		if err != nil {
			return "", err
		}
		if f.Path != source {
			continue
		}
		ids := make([]rag.ID, f.Chunks)
		for i := range ids {
			ids[i] = rag.ID{File: f.ID, Seq: i}
		}
		chunks, err := base.Index().Chunks(ctx, ids, false)
		texts := make([]string, len(chunks))
		for i, c := range chunks {
			texts[i] = strings.TrimSpace(c.Heading + "\n" + c.Text)
		}
		return strings.Join(texts, "\n\n"), err
	}
	return "", none
}

// mostCompletions is how many values are proposed.
const mostCompletions = 100

// complete proposes values for the parts of addresses.
func (s *server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	all := []string{} // and not null
	var err error
	switch {
	case req.Params.Ref == nil || req.Params.Ref.Type != "ref/resource":
	case req.Params.Argument.Name == "name" && s.who.Allows(auth.ReadRAGs):
		all, err = s.bases(ctx)
	case req.Params.Argument.Name == "id" && s.who.Allows(auth.ReadRuns) && s.settings.Runs != config.RunsNone:
		q := run.Query{View: s.access.View(s.who), Limit: mostCompletions}
		if s.settings.Runs != config.RunsAll {
			q.Origin = s.origin().String()
		}
		infos, failure := s.runs.Store().Runs(ctx, q)
		for _, info := range infos {
			if s.sees(info) {
				all = append(all, info.ID)
			}
		}
		err = failure
	}
	all = slices.DeleteFunc(all, func(value string) bool { return !strings.HasPrefix(value, req.Params.Argument.Value) })
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: all[:min(len(all), mostCompletions)], Total: len(all), HasMore: len(all) > mostCompletions}}, err
}
