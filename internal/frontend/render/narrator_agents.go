package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Numbers of children that are over together from which on not each has a line: of all of them,
// and of the canceled ones, as with the run.
const (
	manyChildren = 40
	fewCanceled  = 4
)

// ofAgents shows an event about child agents or a todo list, and reports whether it was one.
// Child agents are rows of the live area on a terminal; what changes there has no lines.
func (n *Narrator) ofAgents(ev event.Event) bool {
	lines := !n.screen.o.Terminal || n.o.Verbose > 0 // instead of rows, or beside them
	child := ev.AgentID != ""
	switch b := ev.Body.(type) {
	case event.Started:
		if !child {
			n.tree = new(Tree)
			n.tree.Add(ev)
			n.screen.tree = n.tree
			return false
		}
		n.animate()
		if lines {
			n.childStarted(ev, b)
		}
	case event.Finished:
		if !child {
			return false
		}
		n.screen.tasks = slices.DeleteFunc(n.screen.tasks, func(t *task) bool { return t.key.agentID == ev.AgentID })
		if m := n.tree.byID[ev.AgentID]; m != nil && lines && !m.settled {
			n.writeEnded(m, n.clock(ev))
		}
	case event.AgentWaits:
		text := ""
		if len(b.On) > 0 {
			text = "waits for " + n.tree.list(b.On)
		}
		n.note(ev, text)
		if lines && text != "" {
			n.say(dim, n.who(ev)+" "+text)
		}
	case event.TodoUpdated:
		n.animate()
		if m := n.tree.member(ev); m != nil {
			n.todoUpdated(ev, m.before, b)
		}
	case event.AutoContinue:
		n.autoContinue(ev, b)
	case event.Instructions:
		if b.Changed {
			n.say(dim, n.who(ev)+" instructions of the workspace changed: "+instructionFiles(b))
		}
	case event.Plan:
		if b.State != "proposed" {
			n.say(dim, n.who(ev)+" plan "+b.State+": "+oneLine(b.Title, shortLimit)+modeAfter(b))
		}
	case event.Memory:
		if b.Action != "recalled" || n.o.Verbose > 0 {
			n.say(dim, n.who(ev)+" "+memoryText(b))
		}
	case event.JobStarted:
		n.say(dim, n.who(ev)+" runs "+b.ID+": "+oneLine(b.Command, shortLimit)+reachedAt(b.Ports))
	case event.JobEnded:
		n.say(dim, n.clock(ev)+b.String())
	case event.Escalation:
		if lines {
			n.say(yellow, n.who(ev)+" asks the agents above: "+questionText(b.Text)+options(b.Options))
		}
	case event.EscalationAnswered:
		switch {
		case !lines:
		case b.TimedOut:
			n.say(yellow, n.who(ev)+" was not answered in time")
		default:
			n.say(dim, n.who(ev)+" was answered: "+oneLine(b.Text, shortLimit))
		}
	case event.Steered:
		n.say(dim, "» "+oneLine(b.Text, n.valueLimit()))
	case event.MessageSent:
		if n.o.Verbose > 0 {
			n.say(dim, n.who(ev)+" writes to "+n.tree.names([]string{b.To})+": "+oneLine(b.Text, n.valueLimit()))
		}
	case event.TaskUpdated:
		if n.o.Verbose > 0 {
			text := n.who(ev) + ": task " + oneLine(b.ID, nameLimit) + " is " + outcomeWords(b.Status) + ": " + oneLine(b.Subject, shortLimit)
			if b.Owner != "" {
				text += " (" + oneLine(b.Owner, nameLimit) + ")"
			}
			n.say(dim, text)
		}
	default:
		return false
	}
	return true
}

// hasEvents reports whether calls of a tool need no line of their own, because events say what
// they did.
func hasEvents(tool string) bool {
	return strings.HasPrefix(tool, "todo__") || strings.HasPrefix(tool, "agent__") || strings.HasPrefix(tool, "worktree__")
}

// animate has the tree drawn as time goes by, if there is something to see.
func (n *Narrator) animate() {
	if n.tree.working() {
		n.screen.animate()
	}
}

// who begins a line about the agent of ev, or the node of its graph.
func (n *Narrator) who(ev event.Event) string {
	name := n.place(ev.Source)
	if name == "" {
		name = oneLine(n.tree.root.Name, nameLimit)
	}
	return n.clock(ev) + name
}

func (n *Narrator) childStarted(ev event.Event, b event.Started) {
	text := n.who(ev) + " started"
	if b.Resumed {
		text = n.who(ev) + " resumes"
	}
	if n.o.Verbose > 0 {
		text += " (" + oneLine(ev.AgentID, nameLimit) + ")"
	}
	if b.Prompt != "" {
		text += ": " + oneLine(b.Prompt, shortLimit)
	}
	n.say(dim, text)
}

// writeEnded adds the line of a child that is over, which begins with the clock time.
func (n *Narrator) writeEnded(m *Member, clock string) {
	m.settled = true
	text := clock + oneLine(m.Name, shortLimit)
	st := dim
	switch m.Outcome {
	case doneOutcome:
		text += " done in "
	case failedOutcome:
		text += " FAILED after "
		st = red
	case canceledOutcome, suspendedOutcome:
		text += " " + m.Outcome + " after "
	default:
		text += " " + outcomeWords(m.Outcome) + " after "
		st = red
	}
	text += took(m.Duration)
	if n := m.Calls(); n > 0 {
		text += ", " + count(n, "call")
	}
	text += usageText(m.Own)
	if m.Failures > 0 {
		text += ", " + count(m.Failures, "failure")
	}
	if m.Error != "" && m.Outcome != canceledOutcome {
		text += " -- " + oneLine(m.Error, failureLimit)
	}
	n.say(st, text)
}

// took writes how long an agent worked: 250ms, 8.2s, 1m05s.
func took(d time.Duration) string {
	if d < time.Second {
		return duration(d)
	}
	return elapsedText(d)
}

// usageText writes what an agent used, to be added to a line.
func usageText(u chat.Usage) string {
	text := ""
	if total := u.Total(); total > 0 {
		text = ", " + count(total, "token")
	}
	if cost := Dollars(u); cost != "" {
		text += ", " + cost
	}
	return text
}

// settle adds a line for each finished child that has none, if no other child works: the root's
// children that which selects, nil for all, and their children.
func (n *Narrator) settle(ev event.Event, which func(*Member) bool) {
	if n.o.Quiet || n.tree.root == nil {
		return
	}
	var over []*Member
	for _, child := range n.tree.root.Children {
		if which != nil && !which(child) {
			continue
		}
		for m := range child.all() {
			if m.Outcome == "" {
				return
			}
			if !m.settled {
				over = append(over, m)
			}
		}
	}
	canceled := 0
	for _, m := range over {
		if m.Outcome == canceledOutcome {
			canceled++
		}
	}
	rest, sums := make(map[string]int), make(map[string]chat.Usage) // of children without a line, by outcome
	for i, m := range over {
		if canceled >= fewCanceled && m.Outcome == canceledOutcome || len(over) >= manyChildren && i >= manyChildren/2 && m.Outcome == doneOutcome {
			m.settled = true
			rest[m.Outcome]++
			sums[m.Outcome] = sums[m.Outcome].Add(m.Own)
			continue
		}
		clock := strings.Repeat("  ", m.Depth-1)
		if n.graph {
			ev.Depth = m.Depth
			clock = n.clock(ev)
		}
		n.writeEnded(m, clock)
	}
	for _, outcome := range []string{doneOutcome, canceledOutcome} {
		if rest[outcome] > 0 {
			n.say(dim, count(rest[outcome], "agent")+" "+outcome+usageText(sums[outcome]))
		}
	}
}

// todoUpdated shows how a todo list has changed, unless it is in the live area. Those of
// child agents are for users who want to know more.
func (n *Narrator) todoUpdated(ev event.Event, before, b event.TodoUpdated) {
	if n.o.Verbose == 0 && (n.screen.o.Terminal || ev.AgentID != "") {
		return
	}
	who := ""
	if ev.AgentID != "" {
		who = n.who(ev) + ": "
	}
	if b.Goal != before.Goal && b.Goal != "" {
		n.say(dim, who+"todo: "+oneLine(b.Goal, shortLimit))
	}
	if len(b.Todos) == 0 && len(before.Todos) > 0 {
		n.say(dim, who+"todo: the list is empty")
	}
	for _, todo := range b.Todos {
		if !slices.Contains(before.Todos, todo) {
			mark, text := todoItem(todo)
			n.say(dim, who+todoHead(b)+": "+mark+" "+text)
		}
	}
}

// endTodo leaves the todo list behind that was in the live area, or one line if all is done.
func (n *Narrator) endTodo() {
	todo := n.tree.root.todo
	if len(todo.Todos) == 0 || !n.screen.o.Terminal || n.o.Verbose > 0 {
		return
	}
	room := 1
	if todo.DoneCount() < len(todo.Todos) {
		room += len(todo.Todos)
	}
	for _, line := range todoLines(colors(n.screen.o.Color), todo, 1<<16, room) {
		n.text.WriteString(line.text + "\n")
	}
}

// autoContinue shows that an agent continues because of its todo list.
func (n *Narrator) autoContinue(ev event.Event, b event.AutoContinue) {
	name := ""
	if ev.AgentID != "" {
		if n.o.Verbose == 0 {
			return
		}
		name = n.tree.name(ev.Source) + ": "
	}
	text := fmt.Sprintf("%s📋 Auto-continuing (%d/%d): %d incomplete todo(s) remain", name, b.Count, b.Max, b.Open)
	if b.Compressed {
		text += " after compression"
	}
	n.text.WriteString(colors(n.screen.o.Color).paint(dim, text) + "\n")
}

// instructionFiles names the files that instruct the model.
func instructionFiles(b event.Instructions) string {
	var names, changed []string
	for _, f := range b.Files {
		if f.State == "used" || f.State == "cut" {
			name := oneLine(f.Path, shortLimit)
			if names = append(names, name); f.Changed {
				changed = append(changed, name)
			}
		}
	}
	switch {
	case len(names) == 0:
		return "none is left"
	case len(changed) == 0: // one is gone, or is not used any more
		return "what is left is " + strings.Join(names, ", ")
	}
	return strings.Join(changed, ", ")
}

// modeAfter says in which mode the work continues after a plan.
func modeAfter(b event.Plan) string {
	if b.Mode == "" {
		return ""
	}
	return "; the mode is " + b.Mode
}

// memoryText says what happened to facts of the memory.
func memoryText(b event.Memory) string {
	titles := make([]string, len(b.Facts))
	for i, f := range b.Facts {
		titles[i] = oneLine(f.Title, shortLimit) + " (" + f.ID + ")"
	}
	list := strings.Join(titles, ", ")
	switch b.Action {
	case "recalled":
		return "was reminded of: " + list
	case "proposed":
		return fmt.Sprintf("proposes %s for the memory: %s; see --memory or .memory", count(len(titles), "change"), list)
	}
	return b.Action + " in the memory: " + list
}

// reachedAt says at which ports a job is reached.
func reachedAt(ports []int) string {
	var at []string
	for _, port := range ports {
		at = append(at, "127.0.0.1:"+strconv.Itoa(port))
	}
	if at == nil {
		return ""
	}
	return " at " + strings.Join(at, ", ")
}

// options writes the answers to choose from, to be added to a line.
func options(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " [" + oneLine(strings.Join(list, " | "), shortLimit) + "]"
}
