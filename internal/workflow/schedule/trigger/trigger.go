// Package trigger starts runs from what comes from outside: a request of a webhook, or files that appear.
//
// A [Trigger] is one entry of triggers in the configuration. A [Delivery] is what came. A trigger decides by [Trigger.Start]
// whether a delivery starts a run, and with which prompt and variables; it does not start it. What came is data: it is put into
// the prompt once, in blocks that [chat.Outside] marks, and is never read as a template.
package trigger

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/graph/gate"
)

// Trigger is an entry of triggers in the configuration. It is not changed once it is read.
type Trigger struct {
	Name, Agent string
	Webhook     *Webhook   // nil for a trigger of files
	Watch       *Watch     // nil for a webhook
	When        *expr.Expr // nil for every delivery
	Prompt      graph.Template
	Variables   map[string]*expr.Expr // of the agent
	Model       string                // "" for that of the agent
	Budget      graph.Budget
	Yes         bool // whatever tools would ask is answered with yes
	MaxQueued   int  // runs that may wait for their turn
	Rules       gate.Rules
}

// Delivery is what came: the keys that expressions and templates of a trigger read.
type Delivery map[string]value.Value

// Get implements [graph.Lookup].
func (d Delivery) Get(key string) (v value.Value, ok bool) {
	v, ok = d[key]
	return v, ok
}

// Keys of deliveries.
const (
	bodyKey    = "body"
	headersKey = "headers"
	queryKey   = "query"
	// FilesKey is also the key of the state of a graph that has the files.
	FilesKey = "files"
)

// keys returns what a delivery of the trigger has.
func (t *Trigger) keys() []string {
	if t.Webhook == nil {
		return []string{FilesKey}
	}
	return []string{bodyKey, headersKey, queryKey}
}

// Read reads the value of triggers. Every mistake is reported to the document as an error, so that no trigger is
// left out. A nil node, or a null, has none.
func Read(n *yamldoc.Node) []*Trigger {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	var all []*Trigger
	for e := range n.Map().All() {
		if !validName(e.Key) {
			e.Node.KeyErrorf("a trigger has a name of up to 64 letters, digits, - and _, since it is a part of an address")
		}
		if m := e.Node.Map(); m != nil {
			t := &Trigger{Name: e.Key, MaxQueued: 1000}
			t.read(m)
			all = append(all, t)
		}
	}
	return all
}

func validName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (t *Trigger) read(m *yamldoc.Map) {
	m.Only(append(gate.Keys(), "agent", "webhook", "watch", "when", "prompt", "variables", "model", "budget", "yes", "max_queued")...)
	m.Require("agent")
	m.Str("agent", &t.Agent)
	if w := m.Map("webhook"); w != nil {
		t.Webhook = readWebhook(w)
	}
	if w := m.Map("watch"); w != nil {
		t.Watch = readWatch(w)
	}
	if m.Has("webhook") == m.Has("watch") {
		m.Node().Errorf("a trigger has either webhook or watch").Hint = "write webhook: {verify: github, secret: \"{{NAME}}\"}, or watch: {paths: [\"in/*.pdf\"]}"
	}
	t.Rules = graph.ReadRules(m, t.keys()...)
	if n := m.Get("when"); n != nil {
		t.When = t.expression(n, expr.Bool)
	}
	text := "{{" + t.keys()[0] + "}}"
	m.Str("prompt", &text)
	t.Prompt = graph.ParseTemplate(text)
	for _, root := range t.Prompt.Roots() {
		if !slices.Contains(t.keys(), root) {
			m.Get("prompt").Errorf("a prompt has no {{%s}}", root).Hint = yamldoc.OneOf(root, t.keys())
		}
	}
	t.Variables = make(map[string]*expr.Expr)
	for e := range m.Map("variables").All() {
		t.Variables[e.Key] = t.expression(e.Node, 0)
	}
	m.Str("model", &t.Model)
	t.Budget = readBudget(m.Map("budget"))
	m.Int("max_queued", &t.MaxQueued, 1, 1_000_000)
	if m.Bool("yes", &t.Yes); t.Yes && t.Webhook != nil && t.Webhook.Verify == None {
		m.Get("yes").Errorf("consents to what anyone on this machine sends").Hint = "choose a verify that checks a signature, or leave yes out"
	}
}

// expression reads an expression over a delivery whose result is of one of the wanted types; 0 for any.
func (t *Trigger) expression(n *yamldoc.Node, want expr.Kinds) *expr.Expr {
	source, ok := n.Text()
	if !ok {
		return nil
	}
	e, err := expr.Parse(source)
	if syntax, ok := errors.AsType[*expr.SyntaxError](err); ok {
		n.ErrorAt(syntax.Offset, "not an expression: %s", syntax.Msg).Hint = syntax.Hint
		return nil
	}
	if want == 0 {
		want = ^want
	}
	known := func(key string) (expr.Type, bool) { return expr.Type{}, slices.Contains(t.keys(), key) }
	for _, p := range e.Check(known, want) {
		if p.Undefined != "" {
			n.ErrorAt(p.Offset, "there is no %q", p.Undefined).Hint = yamldoc.OneOf(p.Undefined, t.keys())
			continue
		}
		n.ErrorAt(p.Offset, "%s", p.Msg).Hint = p.Hint
	}
	return e
}

func readBudget(m *yamldoc.Map) (b graph.Budget) {
	m.Only("usd", "tokens", "duration")
	m.Float("usd", &b.USD)
	m.Uint("tokens", &b.Tokens)
	m.Span("duration", &b.Duration)
	if b.USD < 0 {
		m.Get("usd").Errorf("an amount is 0 or more")
	}
	return b
}

// Start is what a delivery starts.
type Start struct {
	Prompt    string
	Variables map[string]string // of the agent
	State     []value.Member    // of a graph
	Of        Delivery
}

// Start returns what a delivery starts; ok is false if the trigger ignores it. boundary is random, see [chat.Outside]. The
// error says what of the trigger does not fit the delivery.
func (t *Trigger) Start(d Delivery, boundary string, now time.Time) (s Start, ok bool, err error) {
	if t.When != nil {
		if ok, err = t.When.BoolWith(d, expr.Env{Now: now}); err != nil {
			return s, false, fmt.Errorf("when: %w", err)
		}
		if !ok {
			return s, false, nil
		}
	}
	s.Of, s.Variables = d, make(map[string]string, len(t.Variables))
	for _, name := range slices.Sorted(maps.Keys(t.Variables)) {
		v := t.Variables[name].EvalWith(d, expr.Env{Now: now})
		if v.IsNull() {
			return s, false, fmt.Errorf("variables: %s: %s comes to null", name, t.Variables[name].Source)
		}
		s.Variables[name] = printable(v.Text())
	}
	s.Prompt, err = t.Prompt.Display(d, func(text string) string { return chat.Outside(boundary, printable(text)) })
	if err != nil {
		return s, false, fmt.Errorf("prompt: %s: the delivery does not have it", strings.TrimSuffix(err.Error(), " not found in state"))
	}
	if files, ok := d[FilesKey]; ok {
		s.State = []value.Member{{Name: FilesKey, Value: files}}
	}
	return s, true, nil
}

// printable returns a text without characters that neither a database nor the environment of a program can hold.
func printable(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

// Request is what came from a webhook.
type Request struct {
	Header http.Header         `json:"header,omitempty"`
	Query  map[string][]string `json:"query,omitempty"`
	Body   []byte              `json:"body"`
}

// Delivery returns what expressions and templates see of a request. The error says what is wrong with its body.
func (r Request) Delivery(w *Webhook) (Delivery, error) {
	body, err := r.json()
	if err != nil {
		return nil, err
	}
	v, err := value.ParseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("the body is not JSON: %w", err)
	}
	var headers []value.Member
	for name, texts := range w.public(r.Header) {
		headers = append(headers, value.Member{Name: strings.ToLower(name), Value: value.Of(strings.Join(texts, ", "))})
	}
	var query []value.Member
	for name, texts := range r.Query {
		query = append(query, value.Member{Name: name, Value: value.Of(texts[0])})
	}
	return Delivery{bodyKey: v, headersKey: value.ObjectOf(headers...).Value(), queryKey: value.ObjectOf(query...).Value()}, nil
}
