// Package metrics counts what a server does, and writes the figures in the text format of Prometheus.
//
// A [Registry] has families, a [Family] has series: one for each combination of the values of its labels. What a label
// may be is up to the caller. Values that users choose, such as names of agents, go through [Names], which bounds
// how many there are. [Events] fills the families that concern runs, models and tools from events.
package metrics

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Registry has the families of a program. They are added before it is used. From then on it may be used from several
// goroutines. The zero Registry is empty.
type Registry struct{ families []*Family }

// kind is the type of a family, as the text format spells it.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// Family is all series of one name. Its methods may be called from several goroutines; values are those of the labels, in
// their order.
type Family struct {
	name, help string
	unit       string // as OTLP has it; the name of a family for Prometheus says it
	kind       kind
	labels     []string
	bounds     []float64 // of the buckets of a histogram, ascending

	mu     sync.Mutex
	series map[string]*series // by the values of the labels, joined
}

// series is one line, or those of one histogram.
type series struct {
	labels  string   // as they are written, without braces
	values  []string // of the labels
	value   float64
	buckets []uint64 // observations up to each bound, and above the one before
	count   uint64
}

// Counter adds a family of numbers that only grow. Its name ends with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Family {
	return r.add(&Family{name: name, help: help, kind: counter, labels: labels})
}

// Gauge adds a family of numbers that grow and shrink.
func (r *Registry) Gauge(name, help string, labels ...string) *Family {
	return r.add(&Family{name: name, help: help, kind: gauge, labels: labels})
}

// Seconds are bounds for what takes from milliseconds to minutes.
func Seconds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// Histogram adds a family of distributions. The bounds of the buckets are ascending.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Family {
	return r.add(&Family{name: name, help: help, kind: histogram, bounds: bounds, labels: labels})
}

func (r *Registry) add(f *Family) *Family {
	f.series = make(map[string]*series)
	if len(f.labels) == 0 { // it is there before something happens
		f.of(nil)
	}
	r.families = append(r.families, f)
	return f
}

// Add adds to a counter or a gauge.
func (f *Family) Add(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).value += n
}

// Set sets a gauge, or a counter that is kept elsewhere.
func (f *Family) Set(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).value = n
}

// Observe adds an observation to a histogram.
func (f *Family) Observe(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.value += n
	s.count++
	if i, _ := slices.BinarySearch(f.bounds, n); i < len(f.bounds) {
		s.buckets[i]++
	}
}

// of returns the series with these values. The caller holds f.mu.
func (f *Family) of(values []string) *series {
	var buffer [128]byte
	key := buffer[:0]
	for _, v := range values {
		key = append(append(key, v...), 0xff) // which is in no text of UTF-8
	}
	if s, ok := f.series[string(key)]; ok {
		return s
	}
	s := &series{values: slices.Clone(values), buckets: make([]uint64, len(f.bounds))}
	for i, v := range values {
		s.labels += "," + f.labels[i] + `="` + labelEscaper.Replace(strings.ToValidUTF8(v, "�")) + `"`
	}
	s.labels = strings.TrimPrefix(s.labels, ",")
	f.series[string(key)] = s
	return s
}

var (
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// In sets the unit.
func (f *Family) In(unit string) *Family {
	f.unit = unit
	return f
}

// Reading is a family at an instant.
type Reading struct {
	Name, Help, Unit string
	Labels           []string
	Histogram        bool
	Bounds           []float64 // of the buckets
	Points           []Point
}

// Point is a series of a reading.
type Point struct {
	Values  []string // of the labels
	Value   float64  // of a histogram, the sum
	Buckets []uint64 // observations in each, without those above the last bound
	Count   uint64
}

// Read returns the families that have series, which are in no order.
func (r *Registry) Read() (all []Reading) {
	for _, f := range r.families {
		f.mu.Lock()
		now := Reading{Name: f.name, Help: f.help, Unit: f.unit, Labels: f.labels, Histogram: f.kind == histogram, Bounds: f.bounds}
		for _, s := range f.series {
			now.Points = append(now.Points, Point{Values: s.values, Value: s.value, Buckets: slices.Clone(s.buckets), Count: s.count})
		}
		f.mu.Unlock()
		if len(now.Points) > 0 {
			all = append(all, now)
		}
	}
	return all
}

// ContentType is the media type of what [Registry.Text] returns.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text returns all series in the text format, families in the order in which they were added, series by their labels. A
// family without series is left out.
//
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
func (r *Registry) Text() []byte {
	var b bytes.Buffer
	for _, f := range r.families {
		f.write(&b)
	}
	return b.Bytes()
}

func (f *Family) write(b *bytes.Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	b.WriteString("# HELP " + f.name + " " + helpEscaper.Replace(f.help) + "\n# TYPE " + f.name + " " + string(f.kind) + "\n")
	all := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *series) int { return cmp.Compare(a.labels, b.labels) })
	for _, s := range all {
		if f.kind != histogram {
			line(b, f.name, s.labels, s.value)
			continue
		}
		below := uint64(0)
		for i, bound := range f.bounds {
			below += s.buckets[i]
			line(b, f.name+"_bucket", with(s.labels, bound), float64(below))
		}
		line(b, f.name+"_bucket", with(s.labels, math.Inf(1)), float64(s.count))
		line(b, f.name+"_sum", s.labels, s.value)
		line(b, f.name+"_count", s.labels, float64(s.count))
	}
}

// with returns labels with the bound of a bucket.
func with(labels string, bound float64) string {
	if labels != "" {
		labels += ","
	}
	return labels + `le="` + number(bound) + `"`
}

func line(b *bytes.Buffer, name, labels string, value float64) {
	b.WriteString(name)
	if labels != "" {
		b.WriteString("{" + labels + "}")
	}
	b.WriteString(" " + number(value) + "\n")
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) } // infinity is +Inf, as the format has it
