package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/client"
	"loki/internal/frontend/command/display"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// farServer is the server that does what the command asks for.
type farServer struct {
	*client.Client
	command string    // what a command for this server begins with, for hints
	asker   ask.Asker // of what its runs ask; nil if the user cannot be asked
}

// atServer lists the flags that mean something at a server.
var atServer = []string{
	"server", "model", "role", "session", "empty-session", "agent", "agent-variable", "file", "skill", "rag", "effort", "schema", "no-stream", "no-compensate", "yes",
	"output", "quiet", "verbose", "attach", "resume", "answer", "answers", "signal", "force", "fork", "set", "budget", "priority", "concurrency-key", "concurrency-limit", "throttle", "debounce", "cancel", "runs", "limit", "run", "state", "step", "diff", "graph", "format",
	"schedule", "schedules", "from", "until", "cron", "every", "at", "timezone", "start", "end", "jitter", "grace", "blackout", "missed", "overlap", "max-parked", "budget-month", "paused",
	"schedule-history", "schedule-pause", "schedule-continue", "schedule-delete", "schedule-now",
	"list-agents", "list-models", "list-roles", "list-rags", "list-sessions",
}

// noServer returns the error that what the user asks for does not work with a server. It is named if --server does it, and
// not LOKI_SERVER.
func noServer(what string, named bool) error {
	err := fault.New(fault.Usage, "%s does not work with a server", what)
	if named {
		return err.WithHint("leave out --server to do it on this computer")
	}
	return err.WithHint("LOKI_SERVER names one; to do it on this computer: LOKI_SERVER= loki ...")
}

// server returns the server that --server or LOKI_SERVER name, nil for none and for an action that is about this
// computer.
func (c *command) server() (*farServer, error) {
	address, named := c.opts.server, c.opts.flags.Changed("server")
	if !named {
		address = c.app.Env.Get("LOKI_SERVER")
	}
	if address == "" {
		return nil, nil
	}
	a := c.opts.action
	if a.local {
		return nil, nil
	}
	if a.remote == nil {
		return nil, noServer(flagText(a.flag), named)
	}
	if c.talks() {
		return nil, noServer("the REPL", named)
	}
	var wrong string
	c.opts.flags.Visit(func(f *pflag.Flag) {
		if wrong == "" && (!slices.Contains(atServer, f.Name) || f.Name == "budget" && a.flag == "rag" || f.Name == "step" && !c.opts.state) {
			wrong = f.Name
		}
	})
	if wrong != "" {
		return nil, noServer(flagText(wrong), named)
	}
	far, err := client.New(client.Options{URL: address, Key: c.app.Env.Get("LOKI_SERVER_KEY")})
	if err != nil {
		return nil, err
	}
	if far.Exposed() {
		c.warn("the key is sent to " + far.URL() + " unencrypted: use https:// where others can listen")
	}
	r := &farServer{Client: far, command: "loki"}
	if named {
		r.command += " --server " + address
	}
	return r, nil
}

// doRemotely does what the options ask for at a server.
func (c *command) doRemotely(ctx context.Context, s *farServer) error {
	a := c.opts.action
	if a.work == nil {
		return a.remote(c, ctx, s, nil)
	}
	face := c.newFace(ctx)
	defer face.screen.Close()
	return face.close(a.remote(c, ctx, s, face))
}

// answerRemotely asks a model or an agent of the server.
func (c *command) answerRemotely(ctx context.Context, s *farServer, face *face) error {
	if slices.Contains(c.opts.files, input.LastReply) {
		return fault.New(fault.Usage, "-f %s: the last reply of a session is at the server", input.LastReply)
	}
	var of api.AgentDetail
	var err error
	if c.opts.agent != "" {
		of, err = s.Agent(ctx, c.opts.agent)
		if fault.CodeOf(err) == fault.NotFound {
			return fault.Wrap(fault.NotFound, err, "").WithHint("the agents of the server: %s --list agents", s.command)
		}
		if err != nil {
			return err
		}
	}
	piped := !c.InTerminal && len(c.opts.text) > 0 && of.Asks && c.opts.answers == ""
	stdin := io.Reader(nil)
	if !piped {
		stdin = c.In
	}
	asked, attached, err := c.question(ctx, face, stdin)
	if err != nil {
		return err
	}
	if s.asker, err = c.askerAt(ctx, face, piped); err != nil {
		return err
	}
	asked.User = attached.Message(asked.Text)
	caller := conversation.Caller{Events: c.app.Events(face.emitter), Asker: s.asker}
	if err := c.app.Conversations().Begin(conversation.Options{Caller: caller}).LoadSkills(ctx, c.opts.sampling.skills, &asked); err != nil {
		return err
	}
	inSession := c.opts.hasSession && c.opts.session != session.TempName
	if c.opts.agent != "" {
		if of.Kind == "graph" {
			if err := refuse(c.opts.flags, "agent", append([]string{"rag"}, ofGraph...), "the graph itself sets the instructions and memory of its models"); err != nil {
				return err
			}
		}
		if !inSession && len(attached.Images) == 0 && c.opts.schema == "" {
			return c.runRemotely(ctx, s, face, of, asked.User.Text())
		}
		if of.Kind == "graph" {
			return fault.New(fault.Usage, "agent %s is a graph, and its prompt is text only: pictures cannot be attached", of.Name)
		}
	}
	r := api.CompletionRequest{
		Prompt: promptOf(asked.User), Model: c.opts.model, Role: c.opts.role, RAG: c.opts.knowledge.base, Effort: string(c.opts.sampling.Effort),
	}
	if c.opts.schema != "" {
		if r.Schema, err = readSchema(ctx, c.opts.schema); err != nil {
			return err
		}
	}
	id := ""
	if inSession {
		if id, err = c.sessionAt(ctx, s); err != nil {
			return err
		}
	} else if c.opts.emptySession {
		return noSession("empty-session")
	} else {
		r.Agent, r.Variables = c.opts.agent, c.agentVariables()
	}
	return c.completeRemotely(ctx, s, face, id, r)
}

// promptOf returns a message as the API takes it.
func promptOf(m chat.Message) api.Prompt {
	if len(m.Parts) == 1 && m.Parts[0].Type == chat.TextPart {
		return api.Prompt{Text: m.Parts[0].Text}
	}
	p := api.Prompt{Parts: []api.PromptPart{}}
	for _, part := range m.Parts {
		if part.Type == chat.ImagePart {
			p.Parts = append(p.Parts, api.PromptPart{Type: "image_url", ImageURL: &api.PromptImage{URL: part.URL}})
		} else {
			p.Parts = append(p.Parts, api.PromptPart{Type: "text", Text: part.Text})
		}
	}
	return p
}

// readSchema reads the JSON Schema in a file.
func readSchema(ctx context.Context, path string) (map[string]any, error) {
	data, err := userfile.ReadFile(ctx, path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "reading the schema")
	}
	var schema map[string]any
	if err := json.Unmarshal(text.TrimMark(data), &schema); err != nil {
		return nil, fault.Wrap(fault.Config, err, "%s is not a JSON Schema", path)
	}
	return schema, nil
}

// sessionAt returns the id of the session of -s, which is begun if there is none.
func (c *command) sessionAt(ctx context.Context, s *farServer) (string, error) {
	id, err := s.SessionNamed(ctx, c.opts.agent, c.opts.session)
	if err != nil {
		return "", err
	}
	if id == "" {
		begun, err := s.NewSession(ctx, api.SessionRequest{Alias: c.opts.session, Agent: c.opts.agent, Variables: c.agentVariables()})
		return begun.ID, err
	}
	if c.opts.emptySession {
		err = s.EmptySession(ctx, id)
	}
	return id, err
}

// completeRemotely asks for a completion and shows it as it comes.
func (c *command) completeRemotely(ctx context.Context, s *farServer, face *face, session string, r api.CompletionRequest) error {
	w := &farCompletion{emit: c.app.Events(face.emitter)}
	if c.opts.noStream {
		done, err := s.Complete(ctx, session, r)
		if err != nil {
			return err
		}
		if err := w.whole(ctx, done); err != nil {
			return err
		}
	} else {
		for frame, err := range s.Stream(ctx, session, r) {
			if err == nil {
				err = w.frame(ctx, frame)
			}
			if err != nil {
				return err
			}
		}
	}
	if w.outcome == nil {
		return fault.New(fault.Failure, "the server at %s closed the connection before the end of its answer", s.URL())
	}
	if o := w.outcome; o.FinishReason == "question" && o.RunID != "" {
		detail, err := s.Run(ctx, o.RunID)
		if err != nil {
			return err
		}
		return c.goOnRemotely(ctx, s, face, detail, false)
	}
	return nil
}

// farCompletion makes events of the frames of a completion.
type farCompletion struct {
	emit    event.Scope
	text    string // of the reply that is coming
	outcome *api.CompletionOutcome
}

// whole emits a completion that came in one piece.
func (w *farCompletion) whole(ctx context.Context, a api.Completion) error {
	w.outcome = &api.CompletionOutcome{FinalMessage: a.FinalMessage, Usage: a.Usage, Model: a.Model, FinishReason: a.FinishReason, RunID: a.RunID}
	bodies := []event.Body{event.Started{Model: a.Model}}
	for _, text := range a.Warnings {
		bodies = append(bodies, event.Warning{Text: text})
	}
	for _, call := range a.ToolCalls {
		bodies = append(bodies, event.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Args})
		if call.Result != nil && call.IsError != nil { // else it was not made
			bodies = append(bodies, event.ToolResult{ID: call.ID, Name: call.Name, Text: *call.Result, Failed: *call.IsError})
		}
	}
	if a.FinishReason != "question" {
		bodies = append(bodies,
			event.Reply{Model: a.Model, Text: a.FinalMessage, Stop: chat.StopReason(a.FinishReason), Usage: usageOf(a.Usage)},
			event.Finished{Output: a.FinalMessage, Stop: chat.StopReason(a.FinishReason), Usage: usageOf(a.Usage)})
	}
	for _, b := range bodies {
		if err := w.emit.Emit(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func usageOf(u api.TokenUsage) chat.Usage {
	used := chat.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedInputTokens: u.CachedInputTokens, ReasoningTokens: u.ReasoningTokens,
		Estimated: u.Estimated, CostUnknown: u.CostUSD == nil,
	}
	if u.CostUSD != nil {
		used.Cost = *u.CostUSD
	}
	return used
}

// frame emits what a frame says.
func (w *farCompletion) frame(ctx context.Context, f client.Frame) error {
	if ev, err := event.Parse(f.Data); err == nil { // of a node or a child agent
		return w.emit.With(func(src *event.Source) { *src = ev.Source }).Emit(ctx, ev.Body)
	}
	body, err := w.body(f)
	if body == nil {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Failure, err, "event %s of the server cannot be read", f.Name)
	}
	return w.emit.Emit(ctx, body)
}

// body returns the event that a frame says. It is nil for a frame of a newer server, and where a question ends the completion, which
// continues then, or fails.
func (w *farCompletion) body(f client.Frame) (event.Body, error) {
	var d struct {
		Text    string                `json:"text"`
		Model   string                `json:"model"`
		ID      string                `json:"id"`
		Name    string                `json:"name"`
		Args    string                `json:"args"`
		Result  string                `json:"result"`
		Failed  bool                  `json:"is_error"`
		Stop    chat.StopReason       `json:"stop"`
		Usage   chat.Usage            `json:"usage"`
		Outcome api.CompletionOutcome `json:"outcome"`
	}
	err := json.Unmarshal(f.Data, &d)
	switch f.Name {
	case "started":
		return event.Started{Model: d.Model}, err
	case "assistant_delta":
		w.text += d.Text
		return event.Delta{Text: d.Text}, err
	case "reasoning_delta":
		return event.Reasoning{Text: d.Text}, err
	case "tool_call":
		return event.ToolCall{ID: d.ID, Name: d.Name, Arguments: d.Args}, err
	case "tool_result":
		return event.ToolResult{ID: d.ID, Name: d.Name, Text: d.Result, Failed: d.Failed}, err
	case "usage":
		reply := event.Reply{Model: d.Model, Text: w.text, Stop: d.Stop, Usage: d.Usage}
		w.text = ""
		return reply, err
	case "finished":
		if w.outcome = &d.Outcome; d.Outcome.FinishReason != "question" || err != nil {
			return event.Finished{Output: d.Outcome.FinalMessage, Stop: chat.StopReason(d.Outcome.FinishReason), Usage: usageOf(d.Outcome.Usage)}, err
		}
	}
	return nil, nil
}

// listRemotely returns a function that prints names, or list in machine output.
func listRemotely[T any](load func(s *farServer, ctx context.Context) ([]T, error), row func(T) []string) func(c *command, ctx context.Context, s *farServer, _ *face) error {
	return func(c *command, ctx context.Context, s *farServer, _ *face) error {
		list, err := load(s, ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		shown := []T{}
		for _, item := range list {
			if r := row(item); r != nil {
				rows, shown = append(rows, r), append(shown, item)
			}
		}
		switch {
		case c.opts.output != outputText:
			return printJSON(c.Out, shown)
		case c.OutTerminal && len(rows) > 0 && len(rows[0]) > 1:
			return c.print(shown, display.Table(rows))
		}
		names := make([]string, len(rows))
		for i, r := range rows {
			names[i] = r[0]
		}
		return printLines(c.Out, names)
	}
}

// chatModels lists the chat models of the server.
func (r *farServer) chatModels(ctx context.Context) ([]api.Model, error) {
	list, err := r.Models(ctx)
	return slices.DeleteFunc(list, func(m api.Model) bool { return m.Kind != "chat" }), err
}

// listSessionsAt lists the sessions of the server; with -a those of an agent.
func (c *command) listSessionsAt(ctx context.Context, s *farServer, face *face) error {
	load := func(s *farServer, ctx context.Context) ([]api.SessionEntry, error) {
		return s.Sessions(ctx, c.opts.agent)
	}
	return listRemotely(load, func(e api.SessionEntry) []string {
		if e.Agent != c.opts.agent {
			return nil
		}
		return []string{cmp.Or(e.Alias, e.ID), display.Age(time.Since(e.ModifiedAt)), strconv.Itoa(e.Turns), firstWords(cmp.Or(e.Error, e.First), mostColumns)}
	})(c, ctx, s, face)
}

// drawGraphAt prints a drawing of the graph of an agent of the server.
func (c *command) drawGraphAt(ctx context.Context, s *farServer, _ *face) error {
	drawing, err := s.AgentGraph(ctx, c.opts.graph, cmp.Or(c.opts.format, outputText))
	if err == nil {
		_, err = c.Out.Write(drawing)
	}
	return err
}

// showRunAt prints one run of the server, or its state.
func (c *command) showRunAt(ctx context.Context, s *farServer, _ *face) error {
	if !c.opts.state {
		r, err := s.Run(ctx, c.opts.value)
		if err != nil {
			return err
		}
		return c.printRun(r)
	}
	state, err := s.State(ctx, c.opts.value, c.opts.shownStep())
	if err != nil {
		return err
	}
	return c.printState(state)
}

// listRunsAt prints a table of the runs of the server.
func (c *command) listRunsAt(ctx context.Context, s *farServer, _ *face) error {
	list, err := s.Runs(ctx, client.RunQuery{Agent: c.opts.agent, Limit: c.oneMore()})
	if err != nil {
		return err
	}
	return c.printRuns(list)
}

// diffStatesAt prints how the states of two steps differ.
func (c *command) diffStatesAt(ctx context.Context, s *farServer, _ *face) error {
	var ids [2]string
	var places [2]string
	for i, which := range c.opts.diff[0] {
		id, step, err := parseRunStep(which)
		if err != nil {
			return err
		}
		if step < 0 {
			last, err := s.State(ctx, id, -1)
			if err != nil {
				return err
			}
			step = last.Step
		}
		ids[i], places[i] = id, fmt.Sprintf("%s@%d", id, step)
	}
	changes, err := s.Diff(ctx, ids[0], places[0], places[1])
	if err != nil {
		return err
	}
	return c.printChanges(changes)
}
