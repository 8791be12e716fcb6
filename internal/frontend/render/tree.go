package render

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Tree gathers what the agents of a run do from its events: at the root what the user
// started, and below it the child agents. The zero Tree has seen no event. It is used by one
// goroutine at a time.
type Tree struct {
	root  *Member
	byID  map[string]*Member
	named map[string]int // children by the name of their agent, with the element of a map
}

// Member is one agent of a [Tree].
type Member struct {
	ID       string // agent_id, empty for the root
	Agent    string
	Name     string // Agent, with the element of a map: critic[3]; with a number where others of it began before: critic-2
	Depth    int
	Parent   *Member // nil for the root
	Node     string  // of the parent's graph that it works for, empty for none
	Item     *int    // and its element of a map, nil for none
	Children []*Member
	Prompt   string

	Start    time.Time
	Duration time.Duration // once it is over
	Outcome  string        // as that of [event.Finished]; empty while it works
	Error    string
	Failures int           // nodes of its graph that failed and were tolerated
	Tools    []api.ToolUse // in the order of their first calls
	Own      chat.Usage    // without its children's

	graph    bool
	total    chat.Usage       // as Finished reported it
	counted  map[callKey]bool // calls, true if it failed: a resumed run does not count one twice
	open     []openCall       // in order
	asks     []openCall       // questions to users and to agents, in order
	waits    []string         // ids of children
	nodes    []string         // at work
	state    string           // what it does if nothing else is known
	attempts string           // a failed attempt, as long as the next one is not over
	todo     event.TodoUpdated
	before   event.TodoUpdated // the list before the last change
	settled  bool              // its end was shown
}

// Summary returns the agents, as [Tree.All] yields them. It is nil for a run without children.
func (t *Tree) Summary() []api.RunAgent {
	if len(t.byID) == 0 {
		return nil
	}
	var list []api.RunAgent
	for m := range t.All() {
		a := api.RunAgent{
			Agent: m.Agent, AgentID: m.ID, Depth: m.Depth, ParentNode: m.Node, ParentItem: m.Item, Status: cmp.Or(m.Outcome, "running"), Error: m.Error, Prompt: m.Prompt,
			Seconds: seconds(m.Duration), Tools: append([]api.ToolUse{}, m.Tools...), Usage: m.Own, Total: m.Total(), Name: m.Name,
		}
		if m.Parent != nil {
			a.Parent = m.Parent.ID
		}
		list = append(list, a)
	}
	return list
}

// callKey tells calls of the nodes and map items of one agent apart.
type callKey struct {
	node, id   string
	step, item int
}

// openCall is a call or a question that is not over.
type openCall struct {
	key  callKey
	text string
}

// Outcomes of members; those of children come from event.Finished.
const (
	doneOutcome      = "done"
	failedOutcome    = "failed"
	canceledOutcome  = "canceled"
	suspendedOutcome = "suspended"
)

// Add takes note of ev.
func (t *Tree) Add(ev event.Event) {
	m := t.member(ev)
	if m == nil {
		return
	}
	key := callKey{node: ev.Node, step: ev.Step, item: -1}
	if ev.Item != nil {
		key.item = *ev.Item
	}
	switch b := ev.Body.(type) {
	case event.Started:
		m.start(ev, b)
	case event.Finished:
		m.finish(b)
	case event.NodeStarted:
		if ev.Item == nil {
			m.nodes = append(m.nodes, ev.Node)
		}
	case event.NodeFinished:
		if ev.Item == nil {
			m.nodes = slices.DeleteFunc(m.nodes, func(node string) bool { return node == ev.Node })
		}
	case event.ModelCall, event.Reasoning:
		m.state = "thinking"
	case event.Delta:
		m.state = "writing"
	case event.Reply:
		m.Own, m.attempts, m.state = m.Own.Add(b.Usage), "", ""
	case event.Retry:
		m.attempts = "attempt " + strconv.Itoa(b.Attempt+1) + " after: " + b.Error
	case event.ToolCall:
		key.id = b.ID
		m.countCall(key, b.Name)
		m.open = append(m.open, openCall{key, oneLine(b.Name, nameLimit) + " " + arguments(b.Arguments)})
	case event.ToolResult:
		key.id, m.state = b.ID, ""
		m.open = without(m.open, key)
		if failed, called := m.counted[key]; b.Failed && called && !failed {
			m.counted[key] = true
			m.use(b.Name).Failed++
		}
	case event.Question:
		key.id = b.ID
		m.asks = append(m.asks, openCall{key, "waits for an answer"})
	case event.Answer:
		key.id = b.ID
		m.asks = without(m.asks, key)
	case event.Escalation:
		key.id = b.ID
		m.asks = append(m.asks, openCall{key, "asks: " + questionText(b.Text)})
	case event.EscalationAnswered:
		key.id = b.ID
		m.asks = without(m.asks, key)
	case event.AgentWaits:
		m.waits = b.On
	case event.TodoUpdated:
		m.before, m.todo = m.todo, b
	}
}

// countCall counts a call.
func (m *Member) countCall(key callKey, tool string) {
	if m.counted == nil {
		m.counted = make(map[callKey]bool)
	}
	if _, again := m.counted[key]; !again {
		m.counted[key] = false
		m.use(tool).Calls++
	}
}

// use returns the counts of a tool.
func (m *Member) use(tool string) *api.ToolUse {
	i := slices.IndexFunc(m.Tools, func(use api.ToolUse) bool { return use.Name == tool })
	if i < 0 {
		i, m.Tools = len(m.Tools), append(m.Tools, api.ToolUse{Name: tool})
	}
	return &m.Tools[i]
}

// Calls returns how many tool calls m made.
func (m *Member) Calls() int {
	n := 0
	for _, use := range m.Tools {
		n += use.Calls
	}
	return n
}

func without(calls []openCall, key callKey) []openCall {
	return slices.DeleteFunc(calls, func(c openCall) bool { return c.key == key })
}

// member returns the agent that ev comes from. It is nil for a child of which the tree has
// not seen the start.
func (t *Tree) member(ev event.Event) *Member {
	if ev.AgentID == "" {
		if t.root == nil {
			t.root = &Member{Agent: cmp.Or(ev.Agent, "loki")}
			t.root.Name = t.root.Agent
		}
		return t.root
	}
	b, begins := ev.Body.(event.Started)
	if m := t.byID[ev.AgentID]; m != nil || !begins {
		return m
	}
	if t.byID == nil {
		t.byID, t.named = make(map[string]*Member), make(map[string]int)
	}
	parent := t.byID[b.Parent]
	if parent == nil {
		parent = t.member(event.Event{Body: event.Started{}})
	}
	m := &Member{ID: ev.AgentID, Agent: ev.Agent, Name: ev.Agent, Depth: ev.Depth, Parent: parent, Node: b.ParentNode, Item: b.ParentItem}
	if m.Item != nil {
		m.Name += "[" + strconv.Itoa(*m.Item) + "]"
	}
	name := m.Name
	if t.named[name]++; t.named[name] > 1 {
		m.Name += "-" + strconv.Itoa(t.named[name])
	}
	parent.adopt(m)
	t.byID[m.ID] = m
	return m
}

// adopt adds a child, in the order of the elements among those of the same map.
func (m *Member) adopt(child *Member) {
	at := len(m.Children)
	for i, other := range slices.Backward(m.Children) {
		if child.Item == nil {
			break
		}
		if other.Item == nil || other.Node != child.Node {
			continue
		}
		if *other.Item < *child.Item { // they are in order, and come nearly so
			break
		}
		at = i
	}
	m.Children = slices.Insert(m.Children, at, child)
}

// start begins the work of m, perhaps again: then its usage includes the earlier one.
func (m *Member) start(ev event.Event, b event.Started) {
	if m.ID == "" && ev.Agent != "" {
		m.Agent, m.Name = ev.Agent, ev.Agent
	}
	m.graph, m.Prompt, m.Start = b.Graph != "", b.Prompt, ev.Time
	m.Outcome, m.Error, m.Duration = "", "", 0
	m.rest()
}

// rest forgets what m was doing.
func (m *Member) rest() {
	m.open, m.asks, m.waits, m.nodes, m.state, m.attempts, m.settled = nil, nil, nil, nil, "", "", false
}

func (m *Member) finish(b event.Finished) {
	m.rest()
	m.Duration, m.Error, m.Outcome, m.Failures, m.total = b.Duration, b.Error, b.Outcome, b.Failures, b.Usage
	if b.Own != (chat.Usage{}) {
		m.Own = b.Own
	}
	m.Outcome = cmp.Or(m.Outcome, b.Status())
}

// All yields the agents, each one before its children, and these in the order in which they
// began or, for a map, in that of its elements.
func (t *Tree) All() iter.Seq[*Member] {
	return func(yield func(*Member) bool) {
		if t.root != nil {
			t.root.each(yield)
		}
	}
}

// all yields m and what is below it.
func (m *Member) all() iter.Seq[*Member] {
	return func(yield func(*Member) bool) { m.each(yield) }
}

func (m *Member) each(yield func(*Member) bool) bool {
	if !yield(m) {
		return false
	}
	for _, child := range m.Children {
		if !child.each(yield) {
			return false
		}
	}
	return true
}

// Total returns what m and its children used.
func (m *Member) Total() chat.Usage {
	if m.Outcome != "" && m.total != (chat.Usage{}) {
		return m.total
	}
	sum := m.Own
	for _, child := range m.Children {
		sum = sum.Add(child.Total())
	}
	return sum
}

// name returns how the source of an event is called.
func (t *Tree) name(src event.Source) string {
	if m := t.byID[src.AgentID]; m != nil {
		return oneLine(m.Name, nameLimit)
	}
	return oneLine(src.Agent, nameLimit)
}

// names returns how the agents with some ids are called.
func (t *Tree) names(ids []string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		switch m := t.byID[id]; {
		case m != nil:
			names[i] = m.Name
		case id == "" && t.root != nil:
			names[i] = t.root.Name
		default: // it has not begun
			names[i] = agentOf(id)
		}
	}
	return joinComma(names)
}

// agentOf returns the name of the agent in the id of a child: critic of agent_critic_9f3c21aa.
func agentOf(id string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(id, "graph_"), "agent_")
	if i := strings.LastIndexByte(name, '_'); i > 0 {
		name = name[:i]
	}
	return name
}

// list is names for a line: it begins with how many there are if they are many.
func (t *Tree) list(ids []string) string {
	if len(ids) > 3 {
		return Thousands(len(ids)) + " agents: " + t.names(ids)
	}
	return t.names(ids)
}

// activity returns what m, which works, is doing now. Brief leaves out what it was asked.
func (m *Member) activity(t *Tree, brief bool) string {
	switch {
	case len(m.asks) > 0:
		return m.asks[0].text
	case len(m.waits) > 0:
		return "waits for " + t.list(m.waits)
	case len(m.open) > 0:
		more := ""
		if n := len(m.open) - 1; n > 0 {
			more = "+" + strconv.Itoa(n) + " "
		}
		return more + m.open[len(m.open)-1].text
	case m.attempts != "":
		return oneLine(m.attempts, failureLimit)
	case m.graph && len(m.nodes) > 0 && m.ID != "":
		return "at " + joinComma(m.nodes)
	case m.state != "" && m.Prompt != "" && !brief:
		return m.state + ": " + oneLine(m.Prompt, shortLimit)
	}
	return cmp.Or(m.state, oneLine(m.Prompt, shortLimit))
}

// questionText returns the question of an agent without its kind, as in "[ask] Which one?".
func questionText(text string) string {
	if kind, rest, ok := strings.Cut(text, "] "); ok && strings.HasPrefix(kind, "[") && len(kind) < 12 {
		text = rest
	}
	return oneLine(text, shortLimit)
}

// arguments returns the arguments of a call as people read them: those of an object
// one after the other, without their names.
func arguments(text string) string {
	v, err := value.ParseJSON([]byte(text))
	if err != nil || v.AsObject() == nil {
		return oneLine(text, shortLimit)
	}
	var parts []string
	for _, member := range v.AsObject().All() {
		parts = append(parts, member.Text())
	}
	return oneLine(strings.Join(parts, ", "), shortLimit)
}
