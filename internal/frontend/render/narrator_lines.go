package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Limits of texts within a line, in characters.
const (
	failureLimit = 120
	shortLimit   = 80
	warningLimit = 1000
	nameLimit    = 200
)

func (n *Narrator) start(ev event.Event, b event.Started) {
	n.graph, n.nodes, n.wide = b.Graph != "", 0, false
	if b.Resumed && ev.AgentID == "" {
		n.screen.tasks = nil // what the process at work before this one left behind
	}
	switch {
	case b.Graph == "" && b.Resumed:
		n.say(dim, "run "+ev.Run+" resumes")
	case b.Graph == "":
	case b.Resumed:
		n.say(dim, "graph: "+oneLine(b.Graph, nameLimit)+" (run "+ev.Run+" resumes)")
	case len(b.Next) > 0:
		n.say(dim, "graph: "+oneLine(b.Graph, nameLimit)+" (begins at "+joinComma(b.Next)+")")
	default:
		n.say(dim, "graph: "+oneLine(b.Graph, nameLimit)+" (start: "+oneLine(b.Node, nameLimit)+")")
	}
}

func (n *Narrator) nodeStarted(ev event.Event, b event.NodeStarted) {
	if ev.Item != nil {
		return // the map is shown, not its items
	}
	t := &task{key: n.keyOf(ev.Source), kind: b.NodeType, since: n.screen.o.Now()}
	if b.Parallel {
		t.indent = "  "
	}
	n.screen.begin(t)
	if n.wide && b.Parallel && n.o.Verbose == 0 {
		return
	}
	text := n.subject(ev) + "start"
	if b.Undoes != "" {
		text = n.subject(ev) + "undoes " + b.Undoes
	}
	if b.Visit > 1 && n.o.Verbose > 0 {
		text += fmt.Sprintf(", visit %d", b.Visit)
	}
	n.say(dim, text)
}

func (n *Narrator) nodeFinished(ev event.Event, b event.NodeFinished) {
	if ev.Item != nil {
		return
	}
	if n.narrates(ev) {
		n.nodeLine(ev, b)
	}
	if b.Error != "" && len(b.Targets) > 0 { // tolerated: without targets the run fails
		n.warn(n.place(ev.Source) + " failed, continuing with " + joinComma(b.Targets) + ": " + oneLine(b.Error, warningLimit))
	}
}

func (n *Narrator) nodeLine(ev event.Event, b event.NodeFinished) {
	if ev.AgentID == "" {
		n.nodes++
	}
	text := n.clock(ev)
	if b.Parallel {
		text += "  "
	}
	text += n.place(ev.Source) + " (" + b.NodeType + ") "
	if t := n.task(ev); t != nil {
		n.screen.end(t)
	}
	switch {
	case b.Waiting && b.NodeType == "wait": // it has said what for
	case b.Waiting:
		n.say(dim, text+n.waitsOf(ev))
	case b.Canceled:
		n.say(dim, text+"canceled after "+duration(b.Duration)+": others were faster")
	case b.Error == event.Interrupted:
		n.say(dim, text+"canceled after "+duration(b.Duration))
	case b.Error != "":
		n.say(red, text+"FAILED in "+duration(b.Duration)+" -- "+oneLine(b.Error, failureLimit))
	case b.End:
		n.say(dim, text+"done in "+duration(b.Duration)+" -> END")
	default:
		n.say(dim, text+"done in "+duration(b.Duration)+arrow(b.Targets))
	}
}

func (n *Narrator) mapProgress(ev event.Event, b event.MapProgress) {
	t := n.task(ev)
	if t == nil || b.Total <= 0 {
		return
	}
	t.done, t.total, t.failed = b.Done, b.Total, failedItems(b)
	t.pace.add(n.screen.o.Now(), b.Done)
	tenth := 10 * b.Done / b.Total
	if n.screen.o.Terminal || tenth <= t.tenths || b.Done >= b.Total {
		return
	}
	t.tenths = tenth
	n.say(dim, n.subject(ev)+Thousands(b.Done)+"/"+Thousands(b.Total)+t.failed+t.estimate(n.screen.o.Now()))
}

// failedItems returns how many items of a map failed, and the first of them, "" for none.
func failedItems(b event.MapProgress) string {
	if b.Failed == 0 {
		return ""
	}
	text := ", " + Thousands(b.Failed) + " failed"
	if len(b.FailedItems) > 0 {
		text += ": " + joinComma(b.FailedItems)
	}
	if b.Failed > len(b.FailedItems) && len(b.FailedItems) > 0 {
		text += ", …"
	}
	return text
}

func (n *Narrator) retry(ev event.Event, b event.Retry) {
	if t := n.task(ev); t != nil && ev.Item == nil {
		t.attempt = b.Attempt + 1
	}
	text := fmt.Sprintf("attempt %d failed, trying again", b.Attempt)
	if b.Wait > 0 {
		text += " in " + duration(b.Wait)
	}
	n.say(yellow, n.subject(ev)+text+" -- "+oneLine(b.Error, failureLimit))
}

func (n *Narrator) question(ev event.Event, b event.Question) {
	n.note(ev, "waits for an answer")
	if n.o.HideQuestions {
		return
	}
	n.say(dim, n.subject(ev)+"asks: "+oneLine(b.Text, shortLimit)+options(b.Options))
}

func (n *Narrator) showWaiting(ev event.Event, b event.Waiting) {
	n.say(dim, n.subject(ev)+"waits "+waitsFor(b))
}

func (n *Narrator) answer(ev event.Event, b event.Answer) {
	n.note(ev, "")
	switch {
	case b.TimedOut: // which the asker does not show
		n.say(dim, n.subject(ev)+"continues with its default, because no answer came in time: "+cmp.Or(oneLine(b.Text, shortLimit), `""`))
	case !n.o.HideQuestions || !b.Here: // the terminal does not show the answer
		n.say(dim, n.subject(ev)+"answered"+from(b)+": "+oneLine(b.Text, shortLimit))
	}
}

// from says how an answer came that was not given here, and from whom.
func from(b event.Answer) (text string) {
	switch b.Via {
	case event.ViaPage:
		text = " on the page"
	case event.ViaREST:
		text = " over REST"
	case event.ViaOpenAI:
		text = " over the OpenAI-compatible API"
	case event.ViaLink:
		text = " with a link"
	case event.ViaACP:
		text = " in an editor"
	case event.ViaMCP:
		text = " over MCP"
	}
	if b.By != "" {
		text += " by " + oneLine(b.By, shortLimit)
	}
	return text
}

func (n *Narrator) signal(ev event.Event, b event.Signal) {
	text := "got signal " + oneLine(b.Name, shortLimit)
	if b.TimedOut {
		text = "continues with its default, because no signal " + oneLine(b.Name, shortLimit) + " came in time"
	}
	n.say(dim, n.subject(ev)+text+": "+oneLine(b.Value.String(), shortLimit))
}

func (n *Narrator) reply(ev event.Event, b event.Reply) {
	if n.o.Verbose == 0 {
		return
	}
	text := oneLine(b.Model, nameLimit) + ": " + tokens(b.Usage)
	if b.Stop != chat.StopEnd && b.Stop != chat.StopToolCalls {
		text += ", stopped by " + string(b.Stop)
	}
	n.say(dim, n.subject(ev)+text)
}

// tokens writes what one or more model calls used.
func tokens(u chat.Usage) string {
	text := Thousands(u.InputTokens) + " tokens in"
	if u.CachedInputTokens > 0 {
		text += " (" + Thousands(u.CachedInputTokens) + " cached)"
	}
	text += ", " + Thousands(u.OutputTokens) + " out"
	if u.ReasoningTokens > 0 {
		text += " (" + Thousands(u.ReasoningTokens) + " reasoning)"
	}
	if u.Estimated {
		text += ", estimated"
	}
	if cost := Dollars(u); cost != "" {
		text += ", " + cost
	}
	return text
}

// request shows what a dry run would send except for the messages, which are its answer.
func (n *Narrator) request(ev event.Event, b event.Request) {
	settings := []string{oneLine(b.Model, nameLimit)}
	for name, v := range map[string]*float64{"temperature": b.Temperature, "top_p": b.TopP} {
		if v != nil {
			settings = append(settings, name+" "+strconv.FormatFloat(*v, 'f', -1, 64))
		}
	}
	slices.Sort(settings[1:])
	if b.Effort != "" {
		settings = append(settings, "reasoning_effort "+string(b.Effort))
	}
	if b.MaxOutputTokens > 0 {
		settings = append(settings, "at most "+count(b.MaxOutputTokens, "token")+" of output")
	}
	if !b.Stream {
		settings = append(settings, "in one piece")
	}
	n.say(dim, n.subject(ev)+"would be sent to "+strings.Join(settings, ", "))
	if b.Schema != nil {
		n.say(dim, n.subject(ev)+"for an answer by the schema "+oneLine(string(b.Schema), n.valueLimit()))
	}
	if len(b.Tools) == 0 {
		return
	}
	names := make([]string, len(b.Tools))
	for i, t := range b.Tools {
		names[i] = oneLine(t.Name, nameLimit)
	}
	n.say(dim, n.subject(ev)+"with "+count(len(names), "tool")+": "+strings.Join(names, ", "))
	if n.o.Verbose == 0 {
		return
	}
	for i, t := range b.Tools {
		n.say(dim, "  "+names[i]+": "+oneLine(t.Description, shortLimit)+" "+oneLine(string(t.Parameters), warningLimit))
	}
}

// usedFor returns a usage to be added to a line, "" for none.
func usedFor(u chat.Usage) string {
	if u == (chat.Usage{}) {
		return ""
	}
	return " (" + tokens(u) + ")"
}

// compression shows that a recap has made a session shorter. Why one is not is a
// warning.
func (n *Narrator) compression(ev event.Event, b event.CompressionFinished) {
	if b.Error != "" {
		return
	}
	n.say(dim, n.subject(ev)+fmt.Sprintf("session compressed: a recap replaces %s, %s became %s (%s)",
		count(b.Messages, "message"), count(b.Before, "token"), Thousands(b.After), tokens(b.Usage)))
	if n.o.Verbose > 0 {
		for line := range strings.Lines(strings.TrimSpace(safe(b.Recap))) {
			n.say(dim, "  "+strings.TrimRight(line, "\n"))
		}
	}
}

func (n *Narrator) toolCall(ev event.Event, b event.ToolCall) {
	n.note(ev, confinedName(b.Name, b.Sandbox))
	call := "Call " + confinedName(b.Name, b.Sandbox) + " " + oneLine(b.Arguments, n.valueLimit())
	switch {
	case n.o.Verbose > 0:
		n.say(dim, n.subject(ev)+call)
	case ev.Node == "" && n.screen.o.Terminal && !hasEvents(b.Name): // of a single answer
		n.say(dim, call)
	}
}

func (n *Narrator) toolResult(ev event.Event, b event.ToolResult) {
	n.note(ev, "")
	switch {
	case b.Failed && (ev.AgentID == "" || n.o.Verbose > 0):
		n.warn(n.origin(ev) + failedCall(oneLine(b.Name, nameLimit), b.Text))
	case !b.Failed && n.o.Verbose > 1:
		n.say(dim, n.subject(ev)+confinedName(b.Name, b.Sandbox)+" returned "+oneLine(b.Text, n.valueLimit()))
	case !b.Failed && !n.o.Quiet && ev.Node == "" && ev.AgentID == "" && n.screen.o.Terminal && (n.o.Verbose > 0 || !hasEvents(b.Name)): // of a single answer
		n.result(confinedName(b.Name, b.Sandbox), b.Text, n.o.Verbose > 0)
	}
	var wrapped struct {
		Notice string `json:"notice"`
	}
	if b.Sandbox != "" && json.Unmarshal([]byte(b.Text), &wrapped) == nil && wrapped.Notice != "" {
		n.warn(n.origin(ev) + oneLine(b.Name, nameLimit) + ": " + oneLine(wrapped.Notice, 4*warningLimit)) // it has commands to copy
	}
}

// confinedName returns the name of a tool with the level of the sandbox in which its program runs.
func confinedName(name, level string) string {
	if name = oneLine(name, nameLimit); level != "" {
		name += " (" + level + ")"
	}
	return name
}

// failedCall returns what is shown of a failed call: its result, which names the tool as a rule.
func failedCall(name, text string) string {
	var wrapped struct {
		Error  string `json:"tool_call_error"`
		Stderr string `json:"stderr"`
		Loop   struct {
			Error string `json:"error"`
		} `json:"tool_call_loop_alert"`
	}
	if json.Unmarshal([]byte(text), &wrapped) == nil && cmp.Or(wrapped.Error, wrapped.Loop.Error) != "" {
		text = cmp.Or(wrapped.Error, wrapped.Loop.Error)
		if wrapped.Stderr != "" {
			text += ": " + wrapped.Stderr
		}
	}
	if text = oneLine(text, warningLimit); strings.Contains(text, name) {
		return text
	}
	return "tool " + name + " failed: " + text
}

func (n *Narrator) stateUpdated(ev event.Event, b event.StateUpdated) {
	if n.o.Verbose == 0 && !b.Set || len(b.Values) == 0 {
		return
	}
	text := n.clock(ev) + "state:"
	if b.Set {
		text = n.clock(ev) + "you set in the state:"
	}
	for i, m := range b.Values {
		if i > 0 {
			text += ","
		}
		text += " " + oneLine(m.Name, nameLimit) + "=" + short(m.Value, n.valueLimit())
	}
	n.say(dim, text)
}

// valueLimit is how much of a value is shown, in characters.
func (n *Narrator) valueLimit() int {
	if n.o.Verbose > 1 {
		return 400
	}
	return 40
}

// short writes v as JSON, cut to limit characters.
func short(v value.Value, limit int) string {
	if s, ok := v.AsString(); ok {
		v = value.Of(text.Cut(s, 4*(limit+1))) // of a long text only the beginning is needed
	}
	return oneLine(string(v.AppendJSON(nil)), limit)
}

func (n *Narrator) finish(ev event.Event, b event.Finished) {
	n.settle(ev, nil)
	n.endTodo()
	n.screen.tasks = nil // what a canceled run left behind
	if !n.graph || b.Error != "" && n.o.Verbose == 0 {
		return // the caller of the run prints the error
	}
	text := "graph " + outcome(b) + inSeconds(b.Duration) + ", " + count(n.nodes, "node")
	if total := b.Usage.Total(); total > 0 {
		text += ", "
		if b.Usage.Estimated {
			text += "about "
		}
		text += count(total, "token")
		if cost := Dollars(b.Usage); cost != "" {
			text += ", " + cost
		}
	}
	if b.Failures > 0 && b.Error == "" {
		text += fmt.Sprintf(", completed with failures (%d)", b.Failures)
	}
	n.say(dim, text)
}

// outcome returns how a graph run ended, up to the time it took.
func outcome(b event.Finished) string {
	if status := b.Status(); status != event.Done {
		return status + " after "
	}
	return "done in "
}
