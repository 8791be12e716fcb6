// Package alert tells people of what needs them: a run that failed, waits or makes no progress, a budget that is nearly used up, a
// schedule that missed its time, a delivery that started nothing, a provider that refuses calls.
//
// A [Rule] is an entry of alerts in the configuration. An occurrence is something that a rule may be about. A [Service] looks for
// them and posts each alert once, by a [webhook.Desk], for all servers that share a store.
package alert

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run/webhook"
)

// Kind is what an alert is about.
type Kind string

// The kinds.
const (
	Failed     Kind = "failed"
	Waiting    Kind = "waiting"     // a question waits for so long
	Stuck      Kind = "stuck"       // a run is at work without an event for so long
	Budget     Kind = "budget"      // a run has used so many percent of its budget
	Missed     Kind = "missed"      // a schedule did not run at its time
	DeadLetter Kind = "dead_letter" // a delivery to a trigger started no run
	Limited    Kind = "limited"     // a provider has refused calls for so long
	Test       Kind = "test"        // of --alert-test
)

// simple are the kinds without a number.
var simple = []string{string(Failed), string(Missed), string(DeadLetter)}

// Rule is an entry of alerts in the configuration.
type Rule struct {
	Name    string
	On      []Condition
	Where   *expr.Expr // over a run; nil for all
	Every   time.Duration
	To      []webhook.Hook // trusted
	Message graph.Template // of the text
}

// Condition is a kind with its number.
type Condition struct {
	Kind    Kind
	After   time.Duration // of Waiting, Stuck and Limited
	Percent int           // of Budget
}

// The forms of addresses, beside "webhook".
const (
	Slack   = "slack"
	Discord = "discord"
	Teams   = "teams"
	Ntfy    = "ntfy"
	Mail    = "mail"
	Command = "command"
)

// fields are what where may name.
var fields = []string{"id", "agent", "kind", "status", "code", "age", "cost", "tokens", "failures", "model", "subject", "schedule", "trigger"}

// words are what a template may name.
var words = []string{"rule", "kind", "agent", "run", "thing", "reason", "link", "count", "text"}

// Read reads the value of alerts. Every mistake is reported to the document as an error.
func Read(n *yamldoc.Node) (rules []*Rule) {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	items, _ := n.List()
	for _, item := range items {
		m := item.Map()
		if m == nil {
			continue
		}
		r := &Rule{Every: time.Hour}
		m.Only("name", "on", "where", "every", "to", "template")
		m.Require("name", "on", "to")
		if m.Str("name", &r.Name); slices.ContainsFunc(rules, func(o *Rule) bool { return o.Name == r.Name }) {
			m.Get("name").Errorf("is the name of another alert, too")
		}
		for _, on := range m.List("on") {
			r.On = append(r.On, readCondition(on))
		}
		r.readWhere(m.Get("where"))
		if m.Span("every", &r.Every) && r.Every < time.Minute {
			m.Get("every").Errorf("a span of at least 1m is expected")
		}
		for _, to := range m.List("to") {
			r.To = append(r.To, readTarget(to))
		}
		text := "{{text}}"
		m.Str("template", &text)
		r.Message = graph.ParseTemplate(text)
		for _, root := range r.Message.Roots() {
			if !slices.Contains(words, root) {
				m.Get("template").Errorf("an alert has no {{%s}}", root).Hint = yamldoc.OneOf(root, words)
			}
		}
		rules = append(rules, r)
	}
	return rules
}

func readCondition(n *yamldoc.Node) (c Condition) {
	if n.Kind() != yamldoc.Mapping {
		text, ok := n.Str()
		if c.Kind = Kind(text); ok && !slices.Contains(simple, text) {
			n.Errorf("unknown condition %q", text).Hint = yamldoc.OneOf(text, simple) + ", or {waiting: 2h}, {stuck: 15m}, {budget: 80}, {limited: 10m}"
		}
		return c
	}
	m := n.Map()
	m.Only("waiting", "stuck", "budget", "limited")
	for e := range m.All() {
		if c.Kind = Kind(e.Key); c.Kind != Budget {
			if m.Span(e.Key, &c.After) && c.After < time.Minute {
				e.Node.Errorf("a time is at least 1m")
			}
			continue
		}
		m.Int(e.Key, &c.Percent, 1, 100)
	}
	if m.Len() != 1 {
		n.Errorf("a condition has one key").Hint = "write a list of conditions, such as [failed, {waiting: 2h}]"
	}
	return c
}

func (r *Rule) readWhere(n *yamldoc.Node) {
	if n == nil {
		return
	}
	source, ok := n.Text()
	if !ok {
		return
	}
	e, err := expr.Parse(source)
	if syntax, ok := errors.AsType[*expr.SyntaxError](err); ok {
		n.ErrorAt(syntax.Offset, "not an expression: %s", syntax.Msg).Hint = syntax.Hint
		return
	}
	r.Where = e
	for _, p := range e.Check(func(key string) (expr.Type, bool) { return expr.Type{}, slices.Contains(fields, key) }, expr.Bool) {
		if p.Undefined != "" {
			n.ErrorAt(p.Offset, "there is no %q", p.Undefined).Hint = yamldoc.OneOf(p.Undefined, fields)
			continue
		}
		n.ErrorAt(p.Offset, "%s", p.Msg).Hint = p.Hint
	}
}

func readTarget(n *yamldoc.Node) (h webhook.Hook) {
	h.Trusted = true
	m := n.Map()
	if m == nil {
		return h
	}
	forms := []string{"webhook", Slack, Discord, Teams, Ntfy, Mail, Command}
	m.Only(append(forms, "secret")...)
	m.Str("secret", &h.Secret)
	given := 0
	for _, form := range forms {
		if !m.Str(form, &h.URL) {
			continue
		}
		given++
		if h.Form = form; form == "webhook" {
			h.Form = ""
		}
		if problem := checkTarget(form, h.URL); problem != "" {
			m.Get(form).Errorf("%s", problem)
		}
	}
	if given != 1 {
		n.Errorf("a target has one address").Hint = "write one of " + strings.Join(forms, ", ") + `, such as {slack: "{{SLACK_URL}}"}`
	}
	return h
}

func checkTarget(form, text string) string {
	switch form {
	case Mail:
		if _, err := mail.ParseAddressList(text); err != nil && !strings.Contains(text, "{{") {
			return "not a mail address"
		}
	case Command:
		if strings.TrimSpace(text) == "" {
			return "the command is empty"
		}
	default:
		u, err := url.Parse(text)
		if !strings.Contains(text, "{{") && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			return "not an address that begins with https:// or http://"
		}
	}
	return ""
}

// Alert is the data of a notice.
type Alert struct {
	Rule   string `json:"rule"`
	Kind   Kind   `json:"kind"`
	Agent  string `json:"agent,omitempty"`
	Run    string `json:"run_id,omitempty"`
	Thing  string `json:"thing,omitempty"` // what it is about beside runs: a schedule, a trigger, a model
	Reason string `json:"reason"`
	Link   string `json:"link,omitempty"`
	Count  int    `json:"count"` // how often it happened since the last alert
	Text   string `json:"text"`
}

// notice returns the notice of an alert.
func (r *Rule) notice(a Alert, at time.Time) webhook.Notice {
	who := a.Thing
	if a.Agent != "" {
		who = "agent " + a.Agent
	}
	a.Text = strings.TrimSpace(who + ": " + a.Reason)
	if a.Run != "" {
		a.Text += " (run " + a.Run + ")"
	}
	if a.Count > 1 {
		a.Text += fmt.Sprintf(", %d times", a.Count)
	}
	if a.Link != "" {
		a.Text += " " + a.Link
	}
	a.Text = r.Message.Lenient(lookup{
		"rule": value.Of(a.Rule), "kind": value.Of(string(a.Kind)), "agent": value.Of(a.Agent), "run": value.Of(a.Run), "thing": value.Of(a.Thing),
		"reason": value.Of(a.Reason), "link": value.Of(a.Link), "count": value.Of(a.Count), "text": value.Of(a.Text),
	})
	return webhook.Notice{Key: "alert", Type: "alert." + string(a.Kind), At: at, Data: a}
}

// TestNotice returns the notice of a rule that --alert-test sends.
func (r *Rule) TestNotice(now time.Time) webhook.Notice {
	return r.notice(Alert{Rule: r.Name, Kind: Test, Thing: "test", Reason: "the alert " + r.Name + " reaches you", Count: 1}, now)
}

// lookup is what expressions and templates see.
type lookup map[string]value.Value

// Get implements [graph.Lookup].
func (l lookup) Get(key string) (v value.Value, ok bool) {
	v, ok = l[key]
	return v, ok
}
