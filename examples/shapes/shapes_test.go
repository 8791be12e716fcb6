// Package shapes is tested here: each graph below this directory shows one shape of control flow, and does what its
// expect.yaml says, undisturbed as well as interrupted and resumed.
package shapes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"loki/internal/workflow/graph"
)

var update = flag.Bool("update", false, "write the traces and drawings that came")

// shape is a graph with what is expected of it.
type shape struct {
	name string // of its directory
	expectation
}

// expectation is the content of an expect.yaml. What users and the outside do comes first.
type expectation struct {
	Prompt  string            `yaml:"prompt"`
	Rules   string            `yaml:"rules"`   // file with the replies of the models; empty for those of the graph
	Answers map[string]string `yaml:"answers"` // by question
	Signals []signal          `yaml:"signals"` // in the order in which they come, at its time or once a node waits for it

	Output string         `yaml:"output"`
	Error  string         `yaml:"error"` // a part of that of a run that fails
	State  map[string]any `yaml:"state"` // values of some keys at the end

	// Trace has a line for each super-step with its nodes and where they lead: "a -> b | c(2) -> b" for the first visit
	// of a and the second of c. A failed visit has a "!", a canceled one says so, and a map the numbers of its items that are done: "each[0 1]". Nodes of subgraphs are
	// in braces: "each[0] {#0/s1/draft #0/s2/end}".
	// A race may have several.
	Trace  string   `yaml:"trace"`
	Traces []string `yaml:"traces"`
}

type signal struct {
	Name  string        `yaml:"name"`
	Value any           `yaml:"value"`
	At    time.Duration `yaml:"at"` // since the run began; 0 for when a node waits for it
}

// shapes returns all shapes.
func shapes(t testing.TB) []shape {
	t.Helper()
	files, err := filepath.Glob("*/" + graph.FileName)
	if err != nil || len(files) == 0 {
		t.Fatalf("no shapes: %v", err)
	}
	list := make([]shape, len(files))
	for i, file := range files {
		list[i].name = filepath.Dir(file)
		path := filepath.Join(list[i].name, "expect.yaml")
		src, err := os.ReadFile(path)
		if err == nil {
			err = yaml.UnmarshalWithOptions(src, &list[i].expectation, yaml.Strict())
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return list
}

// scheduling is a way to run all shapes.
type scheduling struct {
	name     string
	settings string // that a graph needs for it; empty for none
	ordered  bool   // runs advance in super-steps, which are a part of the trace
}

// schedulings returns those that there are.
func schedulings() []scheduling {
	list := []scheduling{{name: "steps", ordered: true}}
	const dataflow = "scheduling: dataflow"
	_, findings, err := graph.Parse("graph.yaml", []byte("name: x\nstart: x\nsettings: {"+dataflow+"}\nnodes: {x: {type: end}}\n"))
	if err == nil && len(findings) == 0 {
		list = append(list, scheduling{name: "dataflow", settings: dataflow})
	}
	return list
}

// each runs a test of each shape in each scheduling.
func each(t *testing.T, test func(t *testing.T, s shape, how scheduling)) {
	t.Helper()
	for _, s := range shapes(t) {
		for _, how := range schedulings() {
			t.Run(s.name+"/"+how.name, func(t *testing.T) { test(t, s, how) })
		}
	}
}

// TestRun runs each shape undisturbed.
func TestRun(t *testing.T) {
	each(t, func(t *testing.T, s shape, how scheduling) {
		var got outcome
		play(t, s, how, func(w *world) {
			w.validate()
			for !w.over() {
				w.next(0)
			}
			got = w.outcome()
		})
		s.check(t, how, got)
	})
}

// check compares what came with what is expected.
func (s shape) check(t *testing.T, how scheduling, got outcome) {
	t.Helper()
	if got.Output != s.Output {
		t.Errorf("output %q, want %q", got.Output, s.Output)
	}
	if s.Error == "" && got.Error != "" || !strings.Contains(got.Error, s.Error) {
		t.Errorf("error %q, want %q", got.Error, s.Error)
	}
	var state map[string]any
	if err := json.Unmarshal([]byte(got.State), &state); err != nil {
		t.Fatal(err)
	}
	for key, want := range s.State {
		if v := state[key]; !reflect.DeepEqual(v, plain(t, want)) {
			t.Errorf("state: %s is %v, want %v", key, v, want)
		}
	}
	if *update && how.ordered && s.Traces == nil {
		s.write(t, got.trace())
		return
	}
	allowed := append(slices.Clone(s.Traces), s.Trace)
	if !slices.ContainsFunc(allowed, func(want string) bool { return want != "" && how.form(want) == how.form(got.trace()) }) {
		t.Errorf("trace:\n%s\nwant:\n%s", got.trace(), strings.Join(allowed, "or:\n"))
	}
}

// form returns a trace as it is compared: without the super-steps if the scheduling has none.
func (how scheduling) form(trace string) string {
	trace = strings.TrimSpace(trace)
	if how.ordered {
		return trace
	}
	visits := strings.Split(strings.ReplaceAll(trace, "\n", " | "), " | ")
	slices.Sort(visits)
	return strings.Join(visits, "\n")
}

// plain returns a value as package json reads it.
func plain(t *testing.T, v any) (read any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// write puts the trace that came at the end of an expect.yaml.
func (s shape) write(t *testing.T, trace string) {
	t.Helper()
	path := filepath.Join(s.name, "expect.yaml")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(src), "\ntrace:")
	text = strings.TrimRight(text, "\n") + "\ntrace: |\n  " + strings.ReplaceAll(trace, "\n", "\n  ") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// outcome is what a run left behind.
type outcome struct {
	Output, Error string
	State         string // JSON, with sorted keys
	Visits        []string
	steps         []int // super-steps of Visits
}

func (o outcome) trace() string {
	var b strings.Builder
	for i, v := range o.Visits {
		switch {
		case i == 0:
		case o.steps[i] == o.steps[i-1]:
			b.WriteString(" | ")
		default:
			b.WriteByte('\n')
		}
		b.WriteString(v)
	}
	return b.String()
}

func (o outcome) String() string {
	return fmt.Sprintf("output %q, error %q, state %s, trace:\n%s", o.Output, o.Error, o.State, o.trace())
}
