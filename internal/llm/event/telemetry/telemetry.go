// Package telemetry sends OpenTelemetry traces and metrics of graph runs and answers.
//
// A trace is a tree of spans, each a piece of work with a begin and an end. Loki's
// trees are made of its events: a run, its super-steps of several nodes, the nodes, the
// items of maps, and the calls of models and tools, named by the semantic conventions
// for generative AI. A [Tracer] is configured by the standard OTEL_* variables alone
// and sends spans in batches as OTLP over HTTP, in the protobuf encoding. A [Meter] sends
// what its families have counted in the same way.
//
// The encoding and the sender are written here: the part of OTLP that these need is
// small and stable, and the SDK would make the program 8 MB larger and every start
// slower, traced or not. https://opentelemetry.io/docs/specs/otlp/
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"slices"
	"sync"
	"time"

	"loki/internal/llm/event"
)

// Tracer makes and sends spans. The nil Tracer does nothing, at no cost. Its methods
// may be called from several goroutines.
type Tracer struct {
	s        settings
	exporter *exporter
	random   io.Reader

	mu   sync.Mutex
	open map[*openRun]struct{} // runs of all emitters
	seq  int                   // runs begun
	over bool
}

// Start returns the tracer that the OTEL_* variables ask for, or nil if they ask for
// none: traces are on when an OTLP endpoint is set or OTEL_TRACES_EXPORTER is otlp, and
// OTEL_SDK_DISABLED is not true. version is that of the program.
//
// The error, with code Config, is about a variable that cannot be honoured. The tracer is
// nil then: a program that is only watched badly should still work, so warn and continue.
//
// Values of ctx are used by the tracer's requests, its cancellation is not: end the
// tracer with [Tracer.Shutdown].
func Start(ctx context.Context, getenv func(string) string, version string) (*Tracer, error) {
	x, s, err := export(ctx, getenv, traces, version)
	if x == nil {
		return nil, err
	}
	return &Tracer{s: s, exporter: x, random: rand.Reader, open: make(map[*openRun]struct{})}, nil
}

// Emitter returns an emitter that traces what the user started, one thing after another,
// with all that is nested in it. Work that runs side by side with equal sources, such as
// the requests of a server, needs an emitter each. It is nil for a nil tracer. Emit never
// fails; it waits only if spans are made faster than a working collector takes them.
func (t *Tracer) Emitter() event.Emitter {
	if t == nil {
		return nil
	}
	return &emitter{tracer: t, runs: make(map[event.Run]*openRun)}
}

// shutdownTimeout bounds Shutdown; failingTimeout does when the last request failed.
const (
	shutdownTimeout = 5 * time.Second
	failingTimeout  = time.Second
)

// Shutdown ends the spans that are open, sends what was not sent yet and stops the
// tracer. It takes at most 5 s, and 1 s if the collector did not answer before. The
// error says how many spans were lost since Start, and why; it is meant as a warning.
// Spans made later are dropped.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	runs := make([]*openRun, 0, len(t.open))
	for r := range t.open {
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b *openRun) int { return cmp.Compare(b.seq, a.seq) }) // children first
	for _, r := range runs {
		t.finishRun(r, r.last, outcome{})
	}
	t.over = true
	t.mu.Unlock()
	return t.exporter.shutdown(ctx)
}

// finish hands an ended span to the exporter.
func (t *Tracer) finish(s *span, end time.Time) {
	if !s.sampled {
		return
	}
	s.end = end
	if end.Before(s.start) {
		s.end = s.start
	}
	t.exporter.put(s.append(nil))
}

// newSpan begins a span under parent.
func (t *Tracer) newSpan(parent *span, name string, kind spanKind, start time.Time) *span {
	s := &span{
		trace: parent.trace, parent: parent.id, state: parent.state, sampled: parent.sampled,
		remoteParent: parent.remote, name: name, kind: kind, start: start,
	}
	t.fill(s.id[:])
	return s
}

// rootSpan begins the span of what the user started: below TRACEPARENT, or as the first
// of a trace of its own.
func (t *Tracer) rootSpan(name string, start time.Time) *span {
	parent := span{}
	if t.s.parent != nil {
		parent = *t.s.parent
	} else {
		t.fill(parent.trace[:])
	}
	parent.sampled = t.s.sampler.sample(parent.trace, t.s.parent)
	return t.newSpan(&parent, name, kindInternal, start)
}

// fill makes an id. All zeros would mean no id.
func (t *Tracer) fill(id []byte) {
	if _, err := io.ReadFull(t.random, id); err != nil || len(id) > 0 && !slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
		id[len(id)-1] = 1
	}
}
