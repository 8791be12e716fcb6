package render

import (
	"context"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/llm/event"
)

// NarratorOptions configure NewNarrator.
type NarratorOptions struct {
	// Quiet leaves only warnings. It wins over Verbose.
	Quiet bool
	// Verbose 1 adds the tokens of each model reply, the tool calls of nodes, the state
	// keys that each super-step changed, the end of a run that failed, and what child
	// agents do, indented. 2 adds tool results and shows values at length. The pieces
	// of a model's answer are never shown.
	Verbose int
	// Watch are keys of the state of a graph whose changes are shown, also if Quiet.
	Watch []string
	// HideQuestions leaves questions and answers out, because the asker shows them on
	// the same terminal.
	HideQuestions bool
	// Location is the time zone of the clock times; nil means the local one.
	Location *time.Location
}

// Narrator shows a graph run on a Screen, line by line, and what runs now in its live
// area. It also prints warnings, retries and tool calls of single answers. A line is
// never longer than necessary: long texts in it are cut.
//
// Progress of a map is drawn in the live area of a terminal. Elsewhere it is shown in
// lines, one for each tenth of the list and none for the last item, whose end is in the
// node's own line.
//
// The build of a knowledge base is a live line; elsewhere one line says that it begins. Another
// one sums it up.
//
// Child agents are rows of the live area, where their tools, tokens and costs change in
// place; when they are over, a line each stays. Elsewhere lines say that one begins, waits
// and ends.
type Narrator struct {
	screen *Screen
	o      NarratorOptions

	// What follows is guarded by screen.mu.
	graph bool // a graph run is what the user started
	nodes int  // node runs since it began
	wide  bool // so many nodes run side by side that the start of each is not shown
	tree  *Tree
	text  strings.Builder

	watched watched
	waits   []openWait // in the order in which they began
	until   time.Time  // of the wait for a provider that was shown last
}

// NewNarrator returns a narrator that writes to screen. Several runs may be shown one
// after another.
func NewNarrator(screen *Screen, o NarratorOptions) *Narrator {
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Quiet {
		o.Verbose = 0
	}
	return &Narrator{screen: screen, o: o, tree: new(Tree), watched: watched{keys: o.Watch}}
}

// Emit shows ev. It never fails.
func (n *Narrator) Emit(_ context.Context, ev event.Event) error {
	n.screen.mu.Lock()
	defer n.screen.mu.Unlock()
	n.text.Reset()
	n.tree.Add(ev)
	n.noteWaits(ev)
	n.show(ev)
	n.watch(ev)
	_, over := ev.Body.(event.Finished) // then the live area goes, even where nothing is shown
	if _, built := ev.Body.(event.IndexFinished); built {
		over = true
	}
	if over || n.text.Len() > 0 {
		n.screen.show(n.text.String())
	}
	return nil
}

// show gathers the lines for ev in n.text and keeps the screen's tasks. Warnings are shown
// at any depth.
func (n *Narrator) show(ev event.Event) {
	switch body := ev.Body.(type) {
	case event.Delta:
		if ev.AgentID == "" && ev.Node == "" { // the answer begins
			n.settle(ev, nil)
		}
	case event.Reasoning: // never shown
	case event.Warning:
		n.warn(n.origin(ev) + oneLine(body.Text, warningLimit))
	case event.NodeFinished:
		if ev.AgentID == "" {
			n.settle(ev, func(m *Member) bool { return m.Node == ev.Node })
		}
		n.nodeFinished(ev, body)
	case event.ToolResult:
		n.toolResult(ev, body)
	case event.ToolOutput: // what the user's own tools have to say is never left out
		name := ""
		if ev.AgentID != "" {
			name = n.tree.name(ev.Source) + ": "
		}
		for line := range strings.Lines(strings.TrimSuffix(text.PrintableColored(body.Text), "\n") + "\n") {
			n.text.WriteString(name + line)
		}
	default:
		if n.o.Quiet {
			return
		}
		if n.ofAgents(ev) || !n.narrates(ev) {
			return
		}
		n.narrate(ev)
	}
}

// narrates reports whether ev is shown if it is not a warning. Of a child agent, what it asks
// the user is.
func (n *Narrator) narrates(ev event.Event) bool {
	switch ev.Body.(type) {
	case event.Question, event.Answer:
		return !n.o.Quiet
	}
	return !n.o.Quiet && (ev.AgentID == "" || n.o.Verbose > 0)
}

func (n *Narrator) narrate(ev event.Event) {
	switch body := ev.Body.(type) {
	case event.Started:
		n.start(ev, body)
	case event.StepStarted:
		n.wide = ev.AgentID == "" && len(body.Nodes) >= manyNames
		n.say(dim, n.clock(ev)+"super-step start: "+joinComma(body.Nodes))
	case event.StepFinished:
		n.wide = n.wide && ev.AgentID != "" // that of the outermost run has ended
		n.say(dim, n.clock(ev)+"super-step end"+arrow(body.Next))
	case event.NodeStarted:
		n.nodeStarted(ev, body)
	case event.MapProgress:
		n.mapProgress(ev, body)
	case event.Limited:
		n.showLimited(ev, body)
	case event.Retry:
		if ev.AgentID == "" && ev.Node == "" {
			n.screen.endText()
		}
		n.retry(ev, body)
	case event.Question:
		n.question(ev, body)
	case event.Waiting:
		n.showWaiting(ev, body)
	case event.Undoing:
		n.say(yellow, n.clock(ev)+"undoing "+joinComma(body.Nodes)+" -- "+oneLine(strings.ReplaceAll(body.Error, "context canceled", "canceled"), failureLimit))
	case event.Signal:
		n.signal(ev, body)
	case event.Answer:
		n.answer(ev, body)
	case event.Reply:
		n.reply(ev, body)
	case event.ToolCall:
		n.toolCall(ev, body)
	case event.StateUpdated:
		n.stateUpdated(ev, body)
	case event.Request:
		n.request(ev, body)
	case event.CompressionFinished:
		n.compression(ev, body)
	case event.SessionNamed:
		n.say(dim, "session named "+oneLine(body.Title, nameLimit)+usedFor(body.Usage))
	case event.ServersStarted:
		if n.o.Verbose > 0 && len(body.Servers) > 0 {
			n.say(dim, "MCP servers started: "+joinComma(body.Servers))
		}
	case event.IndexStarted:
		n.indexStarted(body)
	case event.IndexProgress:
		n.indexProgress(body)
	case event.IndexFinished:
		n.indexFinished(body)
	case event.Retrieved:
		n.showRetrieved(ev, body)
	case event.Finished:
		n.finish(ev, body)
	}
}

// say adds a line.
func (n *Narrator) say(st style, line string) {
	n.text.WriteString(colors(n.screen.o.Color).paintLines(st, text.WrapWords("▸ "+line, n.screen.columns())))
	n.text.WriteByte('\n')
}

// warn adds a warning.
func (n *Narrator) warn(text string) {
	n.text.WriteString(Warning(text, n.screen.o.Color, n.screen.columns()))
	n.text.WriteByte('\n')
}

// origin returns where a warning comes from, to begin it with, if that is known.
func (n *Narrator) origin(ev event.Event) string {
	if where := n.place(ev.Source); where != "" {
		return where + ": "
	}
	return ""
}

// clock begins a line with the time of ev, and an indent for nested runs.
func (n *Narrator) clock(ev event.Event) string {
	return ev.Time.In(n.o.Location).Format(time.TimeOnly) + " " + strings.Repeat("  ", ev.Depth)
}

// subject begins a line about ev's node: the time, the node and, if it is known, its
// type. Members of a super-step of several are set off.
func (n *Narrator) subject(ev event.Event) string {
	text := n.clock(ev)
	t := n.task(ev)
	if t != nil {
		text += t.indent
	}
	if where := n.place(ev.Source); where != "" {
		text += where + " "
	}
	if t != nil {
		text += "(" + t.kind + ") "
	}
	return text
}

// place names the node of src, with the map item it works on: draft, each[3],
// child/draft. It is empty where src has no node.
func (n *Narrator) place(src event.Source) string {
	if src.Node == "" {
		if src.AgentID != "" {
			return n.tree.name(src)
		}
		return ""
	}
	where := oneLine(n.keyOf(src).path(), nameLimit)
	if src.Item != nil {
		where += "[" + Thousands(*src.Item) + "]"
	}
	return where
}

func (n *Narrator) keyOf(src event.Source) taskKey {
	return taskKey{run: src.Run, agentID: src.AgentID, agent: n.tree.name(src), node: src.Node}
}

// task returns the task of ev's node, nil if it does not run. Items of a map belong to
// the map.
func (n *Narrator) task(ev event.Event) *task {
	if ev.Node == "" {
		return nil
	}
	return n.screen.task(n.keyOf(ev.Source))
}

// note sets what the live line of ev's node says it is doing.
func (n *Narrator) note(ev event.Event, text string) {
	if t := n.task(ev); t != nil {
		t.note = text
	}
}

// arrow writes where a run continues; it is empty for no targets.
func arrow(targets []string) string {
	if len(targets) == 0 {
		return ""
	}
	return " -> " + joinComma(targets)
}
