package graph

import (
	"fmt"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
)

// Wait puts the run aside until a time, or until a signal comes. Exactly one of For, Until and Signal is set.
type Wait struct {
	For    *time.Duration // since the node was reached
	Until  *Template      // strict; a time as RFC 3339 has it
	Signal string         // name of the signal

	// Of a wait for a signal.
	Default *value.Value // the signal's value when the timeout is over, texts are templates, lenient; nil for none
	Schema  *value.Value // a JSON Schema that signals have to satisfy, nil for none
}

// DefaultIn returns the default as it is with a state. It must not be nil.
func (w *Wait) DefaultIn(s Lookup) value.Value {
	return mapTexts(*w.Default, "", func(_, text string) value.Value { return ParseTemplate(text).Update(s) })
}

// Waits returns the nodes, also of subgraphs, that wait for the signal with a name.
func (g *Graph) Waits(signal string) (nodes []*Node) {
	for n := range g.All() {
		if n.Wait != nil && n.Wait.Signal == signal && signal != "" {
			nodes = append(nodes, n.Node)
		}
	}
	return nodes
}

// Signals returns the names of the signals that nodes wait for, each once, in declaration order.
func (g *Graph) Signals() (names []string) {
	for n := range g.All() {
		if n.Wait != nil && n.Wait.Signal != "" && g.Waits(n.Wait.Signal)[0] == n.Node {
			names = append(names, n.Wait.Signal)
		}
	}
	return names
}

// wait reads the fields of a wait node.
func (p *parser) wait(n *Node, m *yamldoc.Map) {
	w := &Wait{For: optional("for", m.Span), Until: optional("until", templates(m)), Default: optional("default", m.Value), Schema: schemaIn(m, "schema")}
	n.Wait = w
	m.Str("signal", &w.Signal)
	given := 0
	for _, key := range [...]string{"for", "until", "signal"} {
		if m.Has(key) {
			given++
		}
	}
	const hint = "write for: 10m, until: \"{{time}}\" or signal: NAME"
	switch {
	case given == 0:
		m.Node().Errorf("a wait needs one of for, until and signal").Hint = hint
	case given > 1:
		m.Node().Errorf("a wait has only one of for, until and signal").Hint = hint
	case m.Has("signal") && w.Signal == "" && m.Get("signal").Kind() == yamldoc.String:
		m.Get("signal").Errorf("a signal needs a name").Hint = "write signal: NAME"
	}
	if !m.Has("signal") {
		for _, key := range [...]string{"default", "schema"} {
			if of := m.Get(key); of != nil {
				of.Errorf("%s is for a wait with signal", key).Hint = "leave it out"
			}
		}
	}
}

func (l *aspects) wait(w *Wait) {
	if w.For != nil {
		l.span("for", *w.For)
	}
	l.template("until", w.Until)
	l.text("signal", w.Signal)
	l.value("default", w.Default)
	l.value("schema", w.Schema)
}

// templates calls add with each template of the wait.
func (w *Wait) templates(add func(path string, t *Template, strict bool)) {
	add("until", w.Until, true)
	if w.Default != nil {
		mapTexts(*w.Default, "default", func(path, text string) value.Value {
			t := ParseTemplate(text)
			add(path, &t, false)
			return value.Value{}
		})
	}
}

// waits reports a wait that cannot end as it is written.
func (v *validator) waits(n *Node) {
	w := n.Wait
	if w == nil {
		return
	}
	if w.Until != nil && len(w.Until.Roots()) == 0 {
		if _, err := time.Parse(time.RFC3339, w.Until.Source); err != nil {
			v.err(RuleWait, n, "until", "write it as 2026-12-24T18:00:00Z", "until is %q, which is not a time as RFC 3339 has it", w.Until.Source)
		}
	}
	if w.For != nil && n.HasTimeout {
		v.waitTimeout(n)
	}
	if w.Signal == "" {
		return
	}
	if v.g.Settings.Durability == DurabilityOff {
		v.err(RuleWait, n, "signal", "leave out settings.durability: off", "a signal cannot reach a run that is not recorded")
	}
	switch {
	case n.HasTimeout && w.Default == nil && n.Fallback == "":
		v.warn(RuleTimeoutDefault, n, "timeout", "add default: with the value to take then, or fallback:",
			"there is neither default nor fallback, so the node fails without a signal within %s", seconds(n.Timeout))
	case w.Default != nil && !n.HasTimeout:
		v.warn(RuleTimeoutDefault, n, "default", "add timeout: with the seconds to wait for the signal",
			"the default of a wait is for when its timeout is over, and there is none")
	}
	if w.Default != nil && w.Schema != nil {
		v.defaultSignal(n)
	}
}

// waitTimeout reports a timeout beside a span to wait for.
func (v *validator) waitTimeout(n *Node) {
	if n.Timeout < *n.Wait.For {
		v.err(RuleWait, n, "timeout", "raise timeout above for, or leave it out", "the timeout is over before the %s to wait for, so the node always fails", seconds(*n.Wait.For))
		return
	}
	v.warn(RuleWait, n, "timeout", "leave it out", "the timeout has no effect, since the wait is over after %s", seconds(*n.Wait.For))
}

// defaultSignal reports a default without placeholders that a signal could not have.
func (v *validator) defaultSignal(n *Node) {
	constant := true
	n.Wait.templates(func(path string, t *Template, _ bool) {
		constant = constant && (path == "until" || len(t.Roots()) == 0)
	})
	form, err := schema.Compile(*n.Wait.Schema)
	if !constant || err != nil { // reported by the parser
		return
	}
	for _, violation := range form.Validate(*n.Wait.Default) {
		v.err(RuleWait, n, "default"+pathOf(*n.Wait.Default, violation.Path), "", "the default does not match schema: %s", violation)
	}
}

// String returns what w waits for, for people.
func (w *Wait) String() string {
	switch {
	case w.For != nil:
		return "for " + w.For.String()
	case w.Until != nil:
		return "until " + w.Until.Source
	}
	return fmt.Sprintf("for signal %s", w.Signal)
}
