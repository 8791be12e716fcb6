package telemetry

import "time"

// spanKind is the kind of a span, as OTLP numbers it.
type spanKind int

const (
	kindInternal spanKind = 1
	kindClient   spanKind = 3
)

// span is one piece of work.
type span struct {
	trace   [16]byte
	id      [8]byte
	parent  [8]byte // zero for the first span of a trace
	state   string  // tracestate of the program that called this one
	sampled bool    // it is sent

	remote       bool // it belongs to another program
	remoteParent bool // its parent does

	name       string
	kind       spanKind
	start, end time.Time
	attrs      []attr
	marks      []mark
	failed     bool
	message    string // of the failure
}

// mark is a moment within a span; OTLP calls it a span event.
type mark struct {
	time  time.Time
	name  string
	attrs []attr
}

// attr is an attribute. value is a string, an int, a bool or a []string.
type attr struct {
	key   string
	value any
}

// set adds an attribute, unless its value is empty or zero and says nothing.
func (s *span) set(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int:
		if v == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	}
	s.attrs = append(s.attrs, attr{key, value})
}

// fail marks the span as failed. kind is of few values, message may be empty.
func (s *span) fail(kind, message string) {
	s.failed, s.message = true, message
	s.set("error.type", kind)
}
