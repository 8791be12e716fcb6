package acpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/text"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool/builtin/patch"
)

const (
	maxDiff    = 256 << 10 // bytes of a text whose difference is shown
	maxOutput  = 16 << 10  // bytes of the output of a call while it runs
	maxPlan    = 50        // nodes of a graph that a plan has before they are visited
	outputIn   = 100 * time.Millisecond
	titleWidth = 80
)

// view makes updates of events. It implements [event.Emitter].
type view struct {
	s *sess

	mu       sync.Mutex
	turn     int    // number of the turn, for ids
	message  int    // likewise, of the message
	run      string // id of the run at work
	texts    string // what was said in this message
	whole    string // what was said in this turn
	calls    []*call
	question *event.Question // that waits; nil for none
	plan     []acp.PlanEntry // nodes of a graph
	nodes    []string        // likewise, their names
}

// call is a call of a tool.
type call struct {
	acp.ToolCall
	scope  string // that made it
	place  int    // of the call in its reply, from 1
	tool   string
	output string // what it has printed
	shown  time.Time
	over   bool
}

func newView(s *sess) *view { return &view{s: s} }

// begin begins a turn, which has so many before it.
func (v *view) begin(turns int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turn, v.message, v.texts, v.whole, v.calls, v.question = turns+1, v.message+1, "", "", nil, nil
	v.plan, v.nodes = nil, nil
	if in, ok := v.s.conv.Agent(); ok && in.Graph != nil {
		for _, n := range in.Graph.Nodes {
			v.nodes = append(v.nodes, n.ID)
		}
		if len(v.nodes) > maxPlan {
			v.nodes = nil
		}
		for _, name := range v.nodes {
			v.plan = append(v.plan, acp.PlanEntry{Content: name, Priority: "medium", Status: acp.Pending})
		}
	}
}

// scopeOf names what calls tools: an agent, or a node of a graph.
func scopeOf(agentID, node string, item *int) string {
	key := agentID + "\x00" + node
	if item != nil {
		key += "\x00" + strconv.Itoa(*item)
	}
	return key
}

// Emit implements [event.Emitter].
func (v *view) Emit(_ context.Context, ev event.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	scope := scopeOf(ev.AgentID, ev.Node, ev.Item)
	own := ev.Depth == 0 && ev.Node == ""
	switch b := ev.Body.(type) {
	case event.Started:
		if ev.Depth > 0 {
			v.sendCall(&call{ToolCall: acp.ToolCall{ToolCallID: v.id("agent-" + ev.AgentID), Title: ev.Agent + ": " + text.OneLine(b.Prompt, titleWidth), ToolKind: "think"}, scope: "agent/" + scope, tool: "agent"})
		} else if own {
			v.run = ev.Run
		}
	case event.ModelCall, event.Retry:
		if ev.Depth == 0 {
			v.message, v.texts = v.message+1, ""
		}
		v.calls = slices.DeleteFunc(v.calls, func(c *call) bool { return c.scope == scope && c.over })
	case event.Delta:
		v.chunk(ev, own, b.Text)
	case event.Reasoning:
		v.chunk(ev, false, b.Text)
	case event.Reply:
		if own && v.texts == "" {
			v.sayLocked(b.Text)
		}
		if ev.Depth == 0 {
			v.sendUsage(b.Model, b.Usage, nil)
		}
	case event.ToolCall:
		v.startCall(ev, scope, b)
	case event.ToolOutput:
		v.sendOutput(scope, b)
	case event.ToolResult:
		v.endCall(ev, scope, b)
	case event.TodoUpdated:
		if ev.Depth == 0 {
			v.s.send(planOf(b.Todos))
		}
	case event.NodeStarted:
		if ev.Depth == 0 {
			v.node(ev.Node, acp.InProgress)
		}
	case event.NodeFinished:
		if ev.Depth == 0 && !b.Waiting {
			v.node(ev.Node, acp.Completed)
		}
	case event.Question:
		v.question = &b
	case event.Answer:
		v.question = nil
	case event.Warning:
		v.noticeLocked("warning", b.Text)
	case event.CompressionStarted:
		v.compaction(acp.Compaction{Status: acp.InProgress})
	case event.CompressionFinished:
		c := acp.Compaction{Status: acp.Completed}
		if b.Error != "" {
			c = acp.Compaction{Status: acp.Failed, Error: b.Error}
		} else if b.Recap != "" {
			c.Summary = []acp.ContentBlock{acp.Text(b.Recap)}
		}
		v.compaction(c)
	case event.SessionNamed:
		v.s.send(acp.SessionTitle{Kind: acp.SessionInfoUpdate, Title: b.Title})
	case event.Finished:
		if ev.Depth > 0 {
			v.endAgent(ev, b)
		}
	}
	return nil
}

// id returns an id that no other turn has.
func (v *view) id(of string) string { return fmt.Sprintf("%d-%s", v.turn, of) }

// chunk sends a piece of a reply: of the answer, or of what leads to it.
func (v *view) chunk(ev event.Event, answer bool, piece string) {
	switch {
	case ev.Depth > 0 || piece == "":
	case answer:
		v.sayLocked(piece)
	default:
		v.s.send(acp.Chunk{Kind: acp.AgentThoughtChunk, Content: acp.Text(piece), MessageID: v.id(fmt.Sprintf("thought-%d", v.message))})
	}
}

// say sends a text as a part of the answer.
func (v *view) say(said string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sayLocked(said)
}

func (v *view) sayLocked(said string) {
	if v.whole == "" {
		said = strings.TrimLeft(said, "\n")
	}
	if said == "" {
		return
	}
	v.texts, v.whole = v.texts+said, v.whole+said
	v.s.send(acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text(said), MessageID: v.id(fmt.Sprintf("message-%d", v.message))})
}

// end sends the output of a turn, unless it was sent in pieces.
func (v *view) end(output string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if output != "" && v.whole == "" {
		v.sayLocked(output)
	}
}

// openQuestion returns the question that waits, and its run; nil for none.
func (v *view) openQuestion() (run string, q *event.Question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.run, v.question
}

// sendUsage sends how much of the context a reply has used, where the size is known. Cost is that of the session, nil where it is not known.
func (v *view) sendUsage(model string, u chat.Usage, cost *acp.Cost) {
	m, err := v.s.app.Catalog.Resolve(model, catalog.Chat)
	if err == nil && m.MaxInputTokens > 0 {
		v.s.send(acp.Usage{Kind: acp.UsageUpdate, Used: u.Total(), Size: m.MaxInputTokens, Cost: cost})
	}
}

// sendCost sends what the session has cost, where that is known.
func (v *view) sendCost(all chat.Usage) {
	if v.s.record != nil || all.CostUnknown || all.Total() == 0 {
		return
	}
	v.sendUsage(v.s.conv.Settings().Model, chat.Usage{InputTokens: v.s.storedSession().Tokens()}, &acp.Cost{Amount: all.Cost, Currency: "USD"})
}

// notice sends a notice, if the client has them.
func (v *view) notice(severity, said string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.noticeLocked(severity, said)
}

func (v *view) noticeLocked(severity, said string) {
	if v.s.server.capabilities().Session.Notices != nil && said != "" {
		v.s.send(acp.Notice{Kind: acp.NoticeUpdate, Severity: severity, Title: said})
	}
}

// compaction sends how a compression is, if the client has that.
func (v *view) compaction(c acp.Compaction) {
	if v.s.server.capabilities().Session.Compaction != nil {
		c.Kind, c.CompactionID = acp.CompactionUpdate, v.id("compaction")
		v.s.send(c)
	}
}

// planOf returns a todo list as a plan.
func planOf(todos []event.Todo) acp.Plan {
	p := acp.Plan{Kind: acp.PlanUpdate, Entries: []acp.PlanEntry{}}
	next := acp.InProgress // the first item that is not done
	for _, t := range todos {
		e := acp.PlanEntry{Content: t.Desc, Priority: "medium", Status: acp.Completed}
		if !t.Done {
			e.Status, next = next, acp.Pending
		}
		p.Entries = append(p.Entries, e)
	}
	return p
}

// node sends the plan of a graph of which a node has a status now.
func (v *view) node(name, status string) {
	i := slices.Index(v.nodes, name)
	if i < 0 {
		i = len(v.nodes)
		v.nodes, v.plan = append(v.nodes, name), append(v.plan, acp.PlanEntry{Content: name, Priority: "medium"})
	}
	v.plan[i].Status = status
	v.s.send(acp.Plan{Kind: acp.PlanUpdate, Entries: slices.Clone(v.plan)})
}

// sendCall sends that a call begins.
func (v *view) sendCall(c *call) {
	for _, other := range v.calls {
		if other.scope == c.scope {
			c.place = max(c.place, other.place)
		}
	}
	c.place++
	v.calls = append(v.calls, c)
	sent := c.ToolCall
	sent.Kind, sent.Status = acp.ToolCallBegins, acp.InProgress
	v.s.send(sent)
}

// startCall sends a call of a tool. The one of a child agent has the name of the agent in front.
func (v *view) startCall(ev event.Event, scope string, b event.ToolCall) {
	id := b.ID
	if ev.AgentID != "" || ev.Node != "" {
		id = strings.ReplaceAll(scope, "\x00", "/") + "/" + id
	}
	c := v.s.describe(b.Name, b.Arguments)
	c.ToolCallID = v.id(id)
	if ev.Depth > 0 {
		c.Title = ev.Agent + ": " + c.Title
	}
	v.sendCall(&call{ToolCall: c, scope: scope, tool: b.Name})
}

// find returns the last call of a scope for which f holds, nil if there is none.
func (v *view) find(scope string, f func(*call) bool) *call {
	for _, c := range slices.Backward(v.calls) {
		if c.scope == scope && !c.over && f(c) {
			return c
		}
	}
	return nil
}

// findID is find for the call with an id, as events have it.
func (v *view) findID(scope, id string) *call {
	return v.find(scope, func(c *call) bool { return c.ToolCallID == v.id(id) || strings.HasSuffix(c.ToolCallID, "/"+id) })
}

// sendOutput sends what a call prints, not too often.
func (v *view) sendOutput(scope string, b event.ToolOutput) {
	c := v.find(scope, func(c *call) bool { return c.tool == b.Name })
	if c == nil {
		return
	}
	c.output = strings.TrimPrefix(c.output+"\n"+b.Text, "\n")
	c.output = c.output[max(0, len(c.output)-maxOutput):]
	if time.Since(c.shown) < outputIn {
		return
	}
	c.shown = time.Now()
	v.s.send(acp.ToolCall{Kind: acp.ToolCallChanges, ToolCallID: c.ToolCallID, Content: append(slices.Clone(c.Content), textContent(strings.ToValidUTF8(c.output, "")))})
}

// endCall sends the result of a call.
func (v *view) endCall(ev event.Event, scope string, b event.ToolResult) {
	c := v.findID(scope, b.ID)
	if c == nil {
		return
	}
	c.over = true
	v.s.send(result(c.ToolCall, b.Text, b.Failed))
}

// result returns the end of a call.
func result(of acp.ToolCall, text string, failed bool) acp.ToolCall {
	r := acp.ToolCall{Kind: acp.ToolCallChanges, ToolCallID: of.ToolCallID, Status: acp.Completed, Content: slices.Clone(of.Content)}
	if failed {
		r.Status = acp.Failed
	}
	if text = plain(text); text != "" {
		r.Content = append(r.Content, textContent(text))
	}
	return r
}

// plain returns the result of a call as a user reads it: its texts, if it is an object as models get it.
func plain(result string) string {
	var of struct {
		Error  string  `json:"tool_call_error"`
		Output *string `json:"output"`
		Stderr string  `json:"stderr"`
	}
	if json.Unmarshal([]byte(result), &of) != nil || of.Error == "" && of.Output == nil && of.Stderr == "" {
		return result
	}
	texts := []string{of.Error, *cmp.Or(of.Output, new("")), of.Stderr}
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// endAgent sends the end of a child agent.
func (v *view) endAgent(ev event.Event, b event.Finished) {
	id := v.id("agent-" + ev.AgentID)
	for _, c := range v.calls {
		if c.ToolCallID == id && !c.over {
			c.over = true
			v.s.send(result(c.ToolCall, cmp.Or(b.Output, b.Error), b.Status() == event.Failed))
		}
	}
}

// textContent returns a text as the content of a call.
func textContent(text string) acp.ToolCallContent {
	block := acp.Text(text)
	return acp.ToolCallContent{Type: "content", Content: &block}
}

// kinds are those of the tools of the program. Calls of foreign agents have a kind as their name.
var kinds = map[string]string{
	"edit": "edit", "delete": "delete", "move": "move", "read": "read", "search": "search", "execute": "execute", "fetch": "fetch", "think": "think",
	"fs_cat": "read", "fs_read": "read", "fs_write": "edit", "fs_patch": "edit", "fs_mkdir": "edit", "fs_rm": "delete", "fs_ls": "search", "fs_glob": "search",
	"fs_grep": "search", "execute_command": "execute", "execute_py_code": "execute", "execute_sql_code": "execute", "fetch_url_via_curl": "fetch", "fetch_url_via_jina": "fetch",
}

// describe returns a call as clients see it, with the difference that it makes.
func (s *sess) describe(name, arguments string) acp.ToolCall {
	c := acp.ToolCall{Title: name, Name: name, ToolKind: cmp.Or(kinds[name], "other")}
	if json.Valid([]byte(arguments)) {
		c.RawInput = json.RawMessage(arguments)
	}
	var args struct {
		Path     string  `json:"path"`
		Contents string  `json:"contents"`
		Command  string  `json:"command"`
		Before   *string `json:"before"` // of a foreign agent, in place of what the file has
	}
	_ = json.Unmarshal([]byte(arguments), &args) // what is not a text is not shown
	switch {
	case kinds[name] == "execute" && args.Command != "":
		c.Title = text.OneLine(args.Command, titleWidth)
	case args.Path != "" && kinds[name] != "":
		c.Title += " " + text.OneLine(args.Path, titleWidth)
		path := args.Path
		if !filepath.IsAbs(path) {
			of, _ := s.conv.Agent() // which may work in a worktree
			path = filepath.Join(cmp.Or(of.Workdir, s.place.cwd), path)
		}
		c.Locations = []acp.Location{{Path: path}}
		if kinds[name] == "edit" {
			if c.Content = s.difference(name, path, args.Contents); args.Before != nil && len(c.Content) > 0 {
				c.Content[0].OldText = args.Before
			}
		}
	}
	return c
}

// difference returns what a call that writes changes, nil if that is not known.
func (s *sess) difference(name, path, contents string) []acp.ToolCallContent {
	d := acp.ToolCallContent{Type: "diff", Path: path}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= maxDiff {
		if old, err := os.ReadFile(path); err == nil {
			d.OldText = new(strings.ToValidUTF8(string(old), "\ufffd"))
		}
	} else if err == nil {
		return nil
	}
	switch name {
	case "fs_write":
		d.NewText = &contents
	case "fs_patch":
		parsed, err := patch.Parse(contents)
		after := ""
		if err == nil {
			before := ""
			if d.OldText != nil {
				before = *d.OldText
			}
			after, err = parsed.Apply(before)
		}
		if err != nil {
			return nil
		}
		d.NewText = &after
	}
	if d.NewText == nil || len(*d.NewText) > maxDiff {
		return nil
	}
	return []acp.ToolCallContent{d}
}
