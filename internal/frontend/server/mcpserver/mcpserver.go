// Package mcpserver offers the agents of the user as tools of an MCP server, which talks to one client over standard input and output.
//
// A call of a tool is a run, recorded like any other: it can be looked at, answered and resumed in every other way. What it asks goes to the user
// of the client in the first way that the client has: as input that the call requires (protocol 2026-07-28), as an elicitation during the call
// (before), or as a result with the status waiting, which loki_answer continues. The last one takes no consent: a model is not a human.
package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/sandbox"
	"loki/internal/conversation"
	"loki/internal/conversation/launch/background"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// protocol of which calls can require input, and what clients before it have.
const protocolWithInput = "2026-07-28"

const (
	endGrace   = 5 * time.Second        // for runs at work when the client has gone
	progressIn = 250 * time.Millisecond // between two notices of progress
	ownPrefix  = "loki_"                // of tools that are no agents
)

// Serve serves one client at standard input and output, until it closes the input or ctx ends. Only is the agent that is offered; empty offers
// the installed ones, as the configuration says. Runs that are at work then are interrupted, and can be resumed.
func Serve(ctx context.Context, o display.Options, only string) error {
	gone := make(chan struct{})
	end := sync.OnceFunc(func() { close(gone) })
	out := &output{w: o.Out, ended: end}
	return serve(ctx, o, only, &mcp.IOTransport{Reader: newInput(o.In, out, end), Writer: out, MaxLineLength: -1}, gone)
}

// serve serves one client. Gone is closed when the client is not there any more; its calls are not canceled then, but interrupted.
func serve(ctx context.Context, o display.Options, only string, transport mcp.Transport, gone <-chan struct{}) error {
	observer, observed := o.App.Observe(ctx)
	defer func() {
		for _, w := range observed(context.WithoutCancel(ctx)) {
			o.Warn(w)
		}
	}()
	hosted, err := o.App.Host(ctx, "", manager.Options{Limit: o.App.Config.MCPServer.MaxRuns, Log: o.App.Log(), Also: observer})
	if err != nil {
		return err
	}
	b, err := newBase(o.App, hosted.Runs)
	if err != nil {
		return errors.Join(err, hosted.Close())
	}
	b.only, b.gone = only, gone
	seen := b.fingerprint() // before the server looks
	s, err := b.newServer(ctx, caller{who: auth.Nobody(), via: "stdio"}, o.Warn)
	if err != nil {
		return errors.Join(err, hosted.Close())
	}
	waking, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { hosted.Runs.Wake(waking) })                                                     // ends with waking
	background.Go(func() { b.watch(waking, seen, func(ctx context.Context) { _ = s.refresh(ctx, nil) }) }) // likewise
	err = s.mcp.Run(ctx, transport)
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) || ctx.Err() != nil {
		err = nil
	}
	grace, done := context.WithCancel(context.WithoutCancel(ctx))
	done() // no client waits for a result
	hosted.Runs.Shutdown(grace)
	stop()
	background.Wait()
	return errors.Join(err, hosted.Close())
}

// base is what the servers for all callers share.
type base struct {
	app      *app.App
	runs     *manager.Manager
	talks    *conversation.Service
	settings config.MCPServer
	link     func(run string, p run.Pending) (string, error) // returns the address of the page of a question; nil where there is none
	only     string                                          // the one agent that is offered; empty for those of the settings
	key      [32]byte                                        // with which the state of calls is sealed
	gone     <-chan struct{}                                 // closed when no client is there any more
}

func newBase(a *app.App, runs *manager.Manager) (*base, error) {
	b := &base{app: a, runs: runs, talks: a.ServerConversations(), settings: a.Config.MCPServer}
	return b, b.loadKey()
}

// caller is who uses a server.
type caller struct {
	who    auth.Identity
	via    string // how it is connected, as in the origin of its runs
	access auth.Access
	// enter begins a run, unless the caller has too many; nil always begins it.
	enter func(ctx context.Context, begin func() (string, error)) (string, error)
	about func(extra *mcp.RequestExtra, run string) // is called with each run that a request begins or changes; may be nil
}

// server offers tools to one caller.
type server struct {
	*base
	caller
	mcp *mcp.Server

	mu      sync.Mutex
	offered map[string]string // what is offered, as JSON, by kind and name
}

// newServer returns what a caller may use. Warn is told which agents are not offered; it may be nil.
func (b *base) newServer(ctx context.Context, c caller, warn func(string)) (*server, error) {
	s := &server{base: b, caller: c, offered: make(map[string]string)}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "loki", Title: "Loki", Version: app.Version}, &mcp.ServerOptions{
		Instructions: "Each tool without " + ownPrefix + " in front runs an agent of the user. A result with the status waiting or running has a run_id: continue with " + toolRun + ".",
		Logger:       slog.New(slog.DiscardHandler), Capabilities: &mcp.ServerCapabilities{Extensions: map[string]any{tasksExtension: map[string]any{}}},
		CompletionHandler: s.complete,
	})
	if err := s.refresh(ctx, warn); err != nil {
		return nil, err
	}
	if s.only == "" && s.settings.Chat && s.who.Allows(auth.RunAgents) {
		s.addAsk()
	}
	s.addRunTools()
	s.addResources()
	return s, s.addTasks()
}

// watchEvery is how often it is looked for agents, roles and macros that have changed.
const watchEvery = 2 * time.Second

// watch calls changed when agents, roles, macros or knowledge bases are not as they were with the fingerprint last, until ctx ends.
func (b *base) watch(ctx context.Context, last string, changed func(ctx context.Context)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := b.fingerprint(); now != last {
			last = now
			changed(ctx)
		}
	}
}

// fingerprint changes with the files of what is offered.
func (b *base) fingerprint() string {
	var all strings.Builder
	note := func(path string) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&all, path, info.ModTime().UnixNano(), info.Size())
		}
	}
	for _, dir := range []string{b.app.Paths.AgentsDir, b.app.Paths.RolesDir, b.app.Paths.MacrosDir, b.app.Paths.RAGsDir} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // as if it were empty
		}
		for _, e := range entries {
			note(filepath.Join(dir, e.Name()))
			if e.IsDir() && dir == b.app.Paths.AgentsDir {
				note(filepath.Join(dir, e.Name(), "graph.yaml"))
				note(filepath.Join(dir, e.Name(), "config.yaml"))
			}
		}
	}
	return all.String()
}

// refresh offers what there is now, and no more what is not there any more. The client learns of changes.
func (s *server) refresh(ctx context.Context, warn func(string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]string)
	offer := func(kind, name string, what any, add func()) {
		doc, _ := json.Marshal(what) // of texts and maps
		now[kind+name] = string(doc)
		if s.offered[kind+name] != string(doc) {
			add()
		}
	}
	if s.who.Allows(auth.RunAgents) {
		if err := s.offerAgents(ctx, offer, warn); err != nil {
			return err
		}
	}
	if s.only == "" && s.who.Allows(auth.ReadRAGs) {
		s.offerSearch(ctx, offer)
	}
	if s.who.Allows(auth.ReadRoles) {
		if err := s.offerPrompts(offer); err != nil {
			return err
		}
	}
	for key := range s.offered {
		if _, ok := now[key]; ok {
			continue
		}
		if name, ok := strings.CutPrefix(key, kindTool); ok {
			s.mcp.RemoveTools(name)
		} else {
			s.mcp.RemovePrompts(strings.TrimPrefix(key, kindPrompt))
		}
	}
	s.offered = now
	return nil
}

// The kinds of what is offered, before their names.
const (
	kindTool   = "tool "
	kindPrompt = "prompt "
)

// offerAgents offers the agents as tools.
func (s *server) offerAgents(ctx context.Context, offer func(kind, name string, what any, add func()), warn func(string)) error {
	agents, err := s.agents(s.only)
	if err != nil {
		return err
	}
	taken := make(map[string]bool)
	for _, of := range agents {
		t, problem := s.toolOf(ctx, of)
		if problem == "" && taken[t.Name] {
			problem = "another one has the same name here"
		}
		if problem != "" {
			if warn != nil {
				warn(fmt.Sprintf("agent %s is not offered: %s", of.Name, problem))
			}
			continue
		}
		taken[t.Name] = true
		offer(kindTool, t.Name, t, func() {
			s.mcp.AddTool(t, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.call(ctx, req, of)
			})
		})
	}
	return nil
}

// listed reports whether a setting of names, nil for all, has a name.
func listed(names []string, name string) bool { return names == nil || slices.Contains(names, name) }

// agents returns the agents that are offered.
func (s *server) agents(only string) (list []agent.Agent, err error) {
	names := []string{only}
	if only == "" {
		if names, err = s.app.Agents.Names(); err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(name string) bool { // those of the program are installed when they are used
			_, err := os.Stat(filepath.Join(s.app.Paths.AgentsDir, name))
			return err != nil
		})
		if s.settings.Agents != nil {
			names = s.settings.Agents
		}
	}
	for _, name := range names {
		ref, err := s.app.Agents.Find(name)
		if err != nil {
			return nil, err
		}
		of, _, err := s.app.Agents.Load(ref)
		if err != nil && only == "" && s.settings.Agents == nil {
			continue // loki --validate says why
		}
		if err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	return list, nil
}

// toolOf describes an agent as a tool. Problem says why it cannot be one.
func (s *server) toolOf(ctx context.Context, of agent.Agent) (t *mcp.Tool, problem string) {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, of.Name)
	switch {
	case name == "" || len(name) > 128:
		return nil, "its name has no letters that a name of a tool may have"
	case strings.HasPrefix(name, ownPrefix):
		return nil, "names that begin with " + ownPrefix + " are those of other tools"
	case of.InForce.Harness != nil && !s.settings.Sandbox.Covers(sandbox.Network):
		return nil, "its program needs the network: set sandbox in mcp_server to network or full"
	}
	properties := map[string]any{promptArgument: map[string]any{"type": "string", "description": "what the agent is asked to do"}}
	required := []string{promptArgument}
	for _, v := range of.InForce.Variables {
		if v.Name == promptArgument {
			return nil, "it has a variable " + promptArgument
		}
		properties[v.Name] = map[string]any{"type": "string", "description": v.Description}
		if v.Default == nil {
			required = append(required, v.Name)
		}
	}
	of.Within = s.terms(nil).Within()
	changes, reaches := s.app.Validator().Effects(ctx, of)
	return &mcp.Tool{
		Name: name, Title: of.Name, Description: cmp.Or(of.InForce.Description, "Runs the agent "+of.Name+"."), OutputSchema: json.RawMessage(outputSchema),
		InputSchema: objectSchema(properties, required), Annotations: &mcp.ToolAnnotations{Title: of.Name, ReadOnlyHint: !changes, OpenWorldHint: &reaches},
	}, ""
}

// promptArgument is the argument with what an agent or a model is asked.
const promptArgument = "prompt"

// objectSchema returns the JSON Schema of the arguments of a tool.
func objectSchema(properties map[string]any, required []string) map[string]any {
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// call runs an agent, or continues the run of a call that required input.
func (s *server) call(ctx context.Context, req *mcp.CallToolRequest, of agent.Agent) (*mcp.CallToolResult, error) {
	if req.Params.RequestState != "" {
		return s.goOn(ctx, req)
	}
	given, wrong := arguments(req, slices.Collect(func(yield func(string) bool) {
		for _, v := range of.InForce.Variables {
			if !yield(v.Name) {
				return
			}
		}
	}))
	if wrong != nil {
		return failureResult(wrong), nil
	}
	prompt := given[promptArgument]
	delete(given, promptArgument)
	if of.Graph == nil && strings.TrimSpace(prompt) == "" {
		return failureResult(errors.New("prompt: the text is empty")), nil
	}
	job, err := s.app.Background.Job(ctx, background.Run{
		Agent: of, Prompt: prompt, Variables: given, Events: s.runs.Events(), Terms: *s.terms(req.Params.Meta),
	})
	if err != nil {
		return failureResult(err), nil
	}
	return s.start(ctx, req, job)
}

// start begins a run for a call and returns how it comes to rest.
func (s *server) start(ctx context.Context, req *mcp.CallToolRequest, job run.Job) (*mcp.CallToolResult, error) {
	job.Info.Owner, job.Info.Origin = s.access.Owner(s.who), s.origin()
	begin := func() (string, error) { return s.runs.Start(ctx, job) }
	var id string
	var err error
	if s.enter != nil {
		id, err = s.enter(ctx, begin)
	} else {
		id, err = begin()
	}
	if err != nil {
		return failureResult(err), nil
	}
	s.note(ctx, id)
	return s.follow(ctx, req, id, s.settings.Wait)
}

// terms are those of a run that a call with metadata begins.
func (s *server) terms(meta mcp.Meta) *run.Terms {
	depth, _ := depthOf(meta) // the call was refused otherwise
	return &run.Terms{NoStream: true, Budget: s.settings.Budget, Origins: run.Origins{Most: s.settings.Sandbox, Depth: depth}}
}

// depthOf returns the depth that the metadata of a call contain; ok is false for one that is refused.
func depthOf(meta mcp.Meta) (depth int, ok bool) {
	switch n := meta[tool.DepthKey].(type) {
	case nil:
		return 0, true
	case float64:
		return int(n), n >= 0 && n <= tool.MaxDepth && n == math.Trunc(n)
	}
	return 0, false
}

// note has the record of who did what name the run of the request that is served with ctx.
func (s *server) note(ctx context.Context, run string) {
	if extra, _ := ctx.Value(extraKey{}).(*mcp.RequestExtra); extra != nil && s.about != nil {
		s.about(extra, run)
	}
}

// extraKey is that of what a transport adds to a request, in the context with which the request is served.
type extraKey struct{}

// origin is that of the runs which the caller begins.
func (s *server) origin() *run.Origin { return &run.Origin{Kind: run.OfMCP, Name: s.via} }

// sees reports whether the caller may see a run: one that a call of it began, or with the setting all each that its subject may see.
func (s *server) sees(info run.Info) bool {
	if s.settings.Runs == config.RunsAll {
		return s.access.View(s.who).Includes(info.Owner)
	}
	own := info.Owner == nil && s.who.Anonymous() || info.Owner != nil && info.Owner.Subject == s.who.Subject
	return own && info.Origin.String() == s.origin().String()
}

// find returns a run that the caller may see.
func (s *server) find(ctx context.Context, id string) (run.Info, error) {
	info, err := s.runs.Store().Info(ctx, id)
	if err == nil && !s.sees(info) {
		err = fault.New(fault.NotFound, "there is no run %s", id)
	}
	if err == nil {
		s.note(ctx, id)
	}
	return info, err
}

// arguments reads the arguments of a call, which are texts. Names are those besides the prompt.
func arguments(req *mcp.CallToolRequest, names []string) (map[string]string, error) {
	given := make(map[string]string)
	if len(req.Params.Arguments) == 0 {
		return given, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(req.Params.Arguments, &raw); err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	for name, value := range raw {
		var text string
		switch {
		case name != promptArgument && !slices.Contains(names, name):
			return nil, fmt.Errorf("there is no argument %s; there are %s", name, strings.Join(append([]string{promptArgument}, names...), ", "))
		case json.Unmarshal(value, &text) == nil:
			given[name] = text
		case value[0] == '{' || value[0] == '[' || string(value) == "null":
			return nil, fmt.Errorf("%s: a text is expected", name)
		default: // a number or a boolean is its text
			given[name] = string(value)
		}
	}
	return given, nil
}

// follow waits until a run rests, at most for so long, and asks the client what the run asks. A client that cancels the call stops the run, which can be resumed.
func (s *server) follow(ctx context.Context, req *mcp.CallToolRequest, id string, limit time.Duration) (*mcp.CallToolResult, error) {
	until := time.Now().Add(limit)
	asTask := hasTasks(req.Session)
	if asTask {
		until = time.Now().Add(min(limit, s.settings.TaskAfter))
	}
	for {
		info, rests, err := s.wait(ctx, req, id, time.Until(until))
		if err != nil {
			if ctx.Err() != nil && !s.left() {
				_ = s.runs.Stop(context.WithoutCancel(ctx), id) // one that has ended meanwhile needs nothing
			}
			return nil, err
		}
		pending, err := s.openQuestions(ctx, info)
		if err != nil {
			return failureResult(err), nil
		}
		questions := s.forClient(req.Session, pending)
		if !rests && asTask {
			return becomesTask(ctx, info), nil
		}
		if !rests || len(questions) == 0 {
			return s.result(info, pending), nil
		}
		if req.Session.InitializeParams().ProtocolVersion >= protocolWithInput {
			return s.inputRequired(req, id, questions)
		}
		began := time.Now()
		given, err := s.elicit(ctx, req.Session, id, questions)
		if errors.Is(err, ask.ErrElsewhere) {
			until = until.Add(time.Since(began)) // the time of a human does not count
			continue
		}
		pages := pagesOf(questions, given)
		if err != nil || len(pages) == 0 && len(answers(questions, given)) == 0 { // declined, or closed
			return s.result(info, pending), err
		}
		if err := s.respond(ctx, id, questions, given); err != nil {
			return failureResult(err), nil
		}
		done, err := s.answeredAtPage(ctx, id, pages, time.Now().Add(limit))
		if err != nil || !done {
			return s.result(info, pending), err
		}
		for _, p := range pages {
			_ = req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id + "/" + p.ID}) // a client may wait without it
		}
		until = until.Add(time.Since(began)) // the time of a human does not count
	}
}

// left reports whether the client is not there any more.
func (s *server) left() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// wait waits until a run rests, at most for so long, and reports its progress.
func (s *server) wait(ctx context.Context, req *mcp.CallToolRequest, id string, limit time.Duration) (info run.Info, rests bool, err error) {
	limited, cancel := context.WithTimeout(ctx, max(limit, 0))
	defer cancel()
	var reporting sync.WaitGroup
	defer reporting.Wait()
	if token := req.Params.GetProgressToken(); token != nil {
		reports, stop := context.WithCancel(limited)
		defer stop()
		reporting.Go(func() { s.report(reports, req.Session, token, id) }) // ends with reports
	}
	for {
		info, err = s.runs.Wait(limited, id)
		if err != nil || !info.Active || retry.Sleep(limited, lookEvery) != nil { // another process may be at work on it
			break
		}
	}
	if limited.Err() != nil && ctx.Err() == nil {
		info, err = s.runs.Store().Info(ctx, id)
		return info, !info.Active && !info.Queued, err
	}
	return info, true, err
}

// lookEvery is how often a run is looked at that another process works on.
const lookEvery = 200 * time.Millisecond

// report counts the nodes and calls of tools that a run has begun.
func (s *server) report(ctx context.Context, session *mcp.ServerSession, token any, id string) {
	var n float64
	var last time.Time
	for f, err := range s.runs.Watch(ctx, id, 0) {
		if err != nil {
			return
		}
		if f.Type != (event.NodeStarted{}).Type() && f.Type != (event.ToolCall{}).Type() {
			continue
		}
		if n++; time.Since(last) < progressIn {
			continue
		}
		last = time.Now()
		if session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: progressOf(f)}) != nil {
			return
		}
	}
}

// progressOf says what an event is about.
func progressOf(f manager.Frame) string {
	ev, err := event.Parse(f.Data)
	if err != nil {
		return ""
	}
	if call, ok := ev.Body.(event.ToolCall); ok {
		return call.Name
	}
	return ev.Node
}

// openQuestions returns the questions of a run that rests.
func (s *server) openQuestions(ctx context.Context, info run.Info) ([]run.Pending, error) {
	if info.Status != run.Suspended {
		return nil, nil
	}
	return s.runs.Store().Pending(ctx, info.ID)
}

// answer answers questions for the user of the client.
func (s *server) answer(ctx context.Context, id string, answers map[string]string) error {
	from := run.Reply{Via: event.ViaMCP}
	if !s.who.Anonymous() {
		from.By = s.who.Subject
		if err := s.runs.MayAnswer(ctx, id, s.who.Subject, answers, s.who.Groups...); err != nil {
			return err
		}
	}
	_, err := s.runs.Answer(ctx, id, manager.Answers{Texts: answers, From: from})
	return err
}

// outcome is the structured result of a call.
type outcome struct {
	RunID     string         `json:"run_id"`
	Status    string         `json:"status"`
	Output    string         `json:"output,omitempty"`
	Error     string         `json:"error,omitempty"`
	Questions []api.Question `json:"questions,omitempty"`
	Usage     chat.Usage     `json:"usage"`
	CostUSD   *float64       `json:"cost_usd,omitempty"`
}

// outputSchema is the JSON Schema of an outcome.
const outputSchema = `{"type": "object", "required": ["run_id", "status"], "properties": {
	"run_id": {"type": "string"},
	"status": {"type": "string", "description": "done, failed, canceled, interrupted, running, or waiting for the answer to questions, or suspended for another reason"},
	"output": {"type": "string"}, "error": {"type": "string"},
	"questions": {"type": "array", "items": {"type": "object"}},
	"usage": {"type": "object"}, "cost_usd": {"type": "number"}}}`

// result describes a run as the result of a call.
func (s *server) result(info run.Info, pending []run.Pending) *mcp.CallToolResult {
	o := outcome{RunID: info.ID, Status: summary.Status(info), Output: s.app.Hide(info.Output), Error: s.app.Hide(info.Error), Usage: info.Usage}
	if len(pending) > 0 {
		o.Status, o.Error, o.Questions = "waiting", "", summary.Questions(info, pending)
	}
	if !info.Usage.CostUnknown {
		o.CostUSD = &info.Usage.Cost
	}
	text := o.Output
	switch {
	case o.Status == "waiting":
		text = waitingText(o)
	case o.Status == string(run.Running):
		text = fmt.Sprintf("The run %s is at work. %s {\"run_id\": %q, \"wait\": 50} waits for it.", o.RunID, toolRun, o.RunID)
	case o.Error != "":
		text = strings.TrimSpace(o.Output + "\n\n" + o.Error)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: o, IsError: info.Status == run.Failed || info.Status == run.Canceled || info.Status == run.Done && info.Error != ""}
}

// waitingText tells a model what a run waits for.
func waitingText(o outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The run %s waits for answers of the user:", o.RunID)
	forModel := false // one of the answers may come from the model
	for _, q := range o.Questions {
		fmt.Fprintf(&b, "\n\n%s: %s", q.ID, q.Text)
		if len(q.Options) > 0 {
			fmt.Fprintf(&b, "\n- %s", strings.Join(q.Options, "\n- "))
		}
		if q.Kind == "consent" || q.Kind == kindSecret {
			fmt.Fprintf(&b, "\nOnly the user can answer this: loki --resume %s", o.RunID)
		} else {
			forModel = true
		}
	}
	if forModel {
		fmt.Fprintf(&b, "\n\nAsk the user, then call %s {\"run_id\": %q, \"question_id\": ..., \"answer\": ...}.", toolAnswer, o.RunID)
	}
	return b.String()
}

// failureResult is the result of a call that cannot be made.
func failureResult(err error) *mcp.CallToolResult {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += "\nhint: " + hint
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}
