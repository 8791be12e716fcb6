package graph

import (
	"math"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/base/value/yamldoc"
)

// defaultTimeouts are those of the types that have one.
var defaultTimeouts = map[Type]time.Duration{AgentNode: DefaultAgentTimeout, ScriptNode: DefaultScriptTimeout, RAGNode: DefaultRAGTimeout}

// failures reads what every node but an end says of failures: its timeout, when it is tried again, where the run goes then, and what
// undoes the node's effects if the run fails later.
func (p *parser) failures(n *Node, m *yamldoc.Map) {
	n.Timeout = defaultTimeouts[n.Type]
	n.HasTimeout = m.Seconds("timeout", &n.Timeout) || n.Timeout > 0
	p.retry(n, m)
	p.goTo(n, m, "fallback", &n.Fallback)
	m.Str("compensate", &n.Compensate)
}

// retry reads how often and when a node is tried again.
func (p *parser) retry(n *Node, m *yamldoc.Map) {
	r := section(m, "retry", "{attempts: 3}")
	if r == nil {
		return
	}
	n.Retry = &retry.Policy{
		Attempts: DefaultRetryAttempts, Backoff: DefaultRetryBackoff, Factor: DefaultRetryFactor,
		MaxBackoff: DefaultRetryMaxBackoff, Jitter: DefaultRetryJitter,
	}
	if attempts := 0; r.Uint("attempts", &attempts) {
		if attempts > 0 {
			n.Retry.Attempts = attempts
		} else {
			r.Get("attempts").Errorf("must be at least 1, found the number 0").Hint = "attempts counts all tries, the first one included"
		}
	}
	span(r, "backoff", &n.Retry.Backoff)
	span(r, "max_backoff", &n.Retry.MaxBackoff)
	floatBetween(r, "factor", &n.Retry.Factor, 1, math.MaxFloat64)
	floatBetween(r, "jitter", &n.Retry.Jitter, 0, 1)
	p.warnUnread(r, nil)
}

func (p *parser) onUncertain(n *Node, m *yamldoc.Map) {
	yamldoc.Choice(m, "on_uncertain", &n.OnUncertain, UncertainRetry, UncertainSkip, UncertainAsk)
}

// cache reads for how long and under which key a node's result may be used again.
func (p *parser) cache(n *Node, m *yamldoc.Map) {
	c := section(m, "cache", "{ttl: 3600}")
	if c == nil {
		return
	}
	for _, problem := range c.Require("ttl") {
		problem.Hint = "ttl is for how many seconds a result may be used again"
	}
	n.Cache = &Cache{Key: optional("key", templates(c))}
	c.Seconds("ttl", &n.Cache.TTL)
	p.warnUnread(c, nil)
}

// floatBetween reads a number from least to most.
func floatBetween(m *yamldoc.Map, key string, dst *float64, least, most float64) {
	var f float64
	if !m.Float(key, &f) {
		return
	}
	switch n := m.Get(key); {
	case f >= least && f <= most:
		*dst = f
	case most == math.MaxFloat64:
		n.Errorf("must be at least %g, found %s", least, n.Describe())
	default:
		n.Errorf("must be from %g to %g, found %s", least, most, n.Describe())
	}
}

// maxSpan is the longest time that can be given, in seconds: about 31 years.
const maxSpan = 1e9

// span reads a time in seconds, of which fractions may be given.
func span(m *yamldoc.Map, key string, dst *time.Duration) {
	n := m.Get(key)
	if n != nil && n.Kind() == yamldoc.String {
		n.Errorf("expected seconds, found %s", n.Describe()).Hint = "times are numbers of seconds, without a unit: 0.5"
		return
	}
	var seconds float64
	switch {
	case !m.Float(key, &seconds):
	case seconds < 0:
		n.Errorf("must not be negative, found %s", n.Describe())
	case seconds > maxSpan:
		n.Errorf("must be at most %d seconds, found %s", int(maxSpan), n.Describe())
	default:
		*dst = time.Duration(seconds * float64(time.Second))
	}
}
