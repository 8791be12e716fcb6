package record

import (
	"encoding/json"
	"fmt"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
)

// about is what a run is created with, as it is stored, less what runs are found by.
type about struct {
	Kind        run.Kind          `json:"kind,omitempty"`
	Question    json.RawMessage   `json:"question,omitempty"`
	AgentDir    string            `json:"agent_dir,omitempty"`
	Graph       string            `json:"graph,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Definition  []byte            `json:"definition,omitempty"`
	Prompt      string            `json:"prompt,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"`
	Model       string            `json:"model,omitempty"`
	Parent      string            `json:"parent,omitempty"`
	ByName      bool              `json:"by_name,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	Served      bool              `json:"served,omitempty"`
	Terms       *run.Terms        `json:"terms,omitempty"`
	EqualWrites bool              `json:"equal_writes,omitempty"`
	Origin      *run.Origin       `json:"origin,omitempty"`
	Priority    string            `json:"priority,omitempty"`
	Gates       []gate.Gate       `json:"gates,omitempty"`
}

// About returns the document of what a run is created with, without its agent, directory and owner.
func (f Sealer) About(info run.Info) (Document, error) {
	return f.Encode(about{
		Kind: info.Kind, Question: info.Question, AgentDir: info.AgentDir, Graph: info.Graph, Fingerprint: info.Fingerprint, Definition: info.Definition, Prompt: info.Prompt,
		Variables: info.Variables, Model: info.Model, Parent: info.Parent, ByName: info.ByName, Files: info.Files, Served: info.Served, Terms: info.Terms, EqualWrites: info.EqualWrites, Origin: info.Origin,
		Priority: info.Priority, Gates: info.Gates,
	})
}

// ending is how a run ended, as it is stored.
type ending struct {
	Output string     `json:"output,omitempty"`
	Error  string     `json:"error,omitempty"`
	Code   fault.Code `json:"code,omitempty"`
	Until  time.Time  `json:"until,omitzero"`

	Breakpoint string      `json:"breakpoint,omitempty"`
	Undone     *run.Undone `json:"undone,omitempty"`
}

// Ending returns the document of how a run ended, without its status.
func (f Sealer) Ending(e run.Ending) (Document, error) {
	return f.Encode(ending{e.Output, e.Error, e.Code, e.Until.UTC(), e.Breakpoint, e.Undone})
}

// Describe sets what the documents of a run say of it: what it was created with, how it ended, nil for a run
// that has not, and its last checkpoint. What was read before an error is set.
func (r Reader) Describe(info *run.Info, created, ended, checkpoint []byte) error {
	var a about
	if err := r.Decode(created, &a); err != nil {
		return err
	}
	info.AgentDir, info.Graph, info.Fingerprint, info.Definition = a.AgentDir, a.Graph, a.Fingerprint, a.Definition
	info.Prompt, info.Variables, info.Model, info.Parent = a.Prompt, a.Variables, a.Model, a.Parent
	info.Served, info.Terms, info.EqualWrites, info.Origin = a.Served, a.Terms, a.EqualWrites, a.Origin
	info.Priority, info.Gates = a.Priority, a.Gates
	info.ByName, info.Files, info.Kind, info.Question = a.ByName, a.Files, a.Kind, a.Question
	if ended != nil {
		var e ending
		if err := r.Decode(ended, &e); err != nil {
			return err
		}
		info.Output, info.Error, info.Code = e.Output, e.Error, e.Code
		info.Until, info.Breakpoint, info.Undone = e.Until, e.Breakpoint, e.Undone
	}
	var p struct {
		Failures int        `json:"failures"`
		Usage    chat.Usage `json:"usage"`
	}
	if err := r.Decode(checkpoint, &p); err != nil {
		return err
	}
	info.Failures, info.Usage = p.Failures, p.Usage
	return nil
}

// AddUsage adds what the result of a model's step used. A result that has no usage, or is damaged, adds
// nothing.
func (r Reader) AddUsage(info *run.Info, result []byte) {
	var used run.Used
	if err := r.Decode(result, &used); err == nil {
		info.Usage = info.Usage.Add(used.Usage)
	}
}

// taskDoc is a finished task as it is stored, without its writes.
type taskDoc struct {
	graph.Result
	Visit *visitDoc `json:"visit"`
}

// Task returns the documents of a finished task: what it is, and the values it writes.
func (f Sealer) Task(t run.TaskRecord) (doc, writes Document, err error) {
	r := t.Result
	doc, err = f.Encode(taskDoc{r, &visitDoc{t.Visit, int64(t.Visit.Duration)}})
	if err != nil {
		return doc, writes, fmt.Errorf("recording the task of node %q: %w", r.Node, err)
	}
	return doc, f.EncodeValue(value.ObjectOf(r.Writes...).Value()), nil
}

// Task returns the finished task of a node in a super-step.
func (r Reader) Task(step int, node string, doc, writes []byte) (run.TaskRecord, error) {
	t := run.TaskRecord{Step: step}
	var d taskDoc
	if err := r.Decode(doc, &d); err != nil {
		return t, err
	}
	t.Visit = d.Visit.visit()
	t.Result = d.Result
	t.Result.Node = node
	written, err := r.Value(writes)
	if err != nil {
		return t, err
	}
	for name, v := range written.AsObject().All() {
		t.Result.Writes = append(t.Result.Writes, value.Member{Name: name, Value: v})
	}
	return t, nil
}

// Visits returns the visits of a super-step.
func (r Reader) Visits(doc []byte) (visits []run.Visit, err error) {
	var docs []visitDoc
	if err := r.Decode(doc, &docs); err != nil {
		return nil, err
	}
	for _, d := range docs {
		visits = append(visits, d.visit())
	}
	return visits, nil
}

func (d *visitDoc) visit() run.Visit {
	d.Visit.Duration = time.Duration(d.Nanoseconds)
	return d.Visit
}

// Pending returns the question that waits for the step with a key.
func (r Reader) Pending(key string, doc []byte) (p run.Pending, err error) {
	err = r.Decode(doc, &p)
	p.Key = key
	return p, err
}

// Gap returns the note about a gap as it is stored: JSON, without secrets.
func (f Sealer) Gap(g run.Gap) ([]byte, error) {
	data, err := json.Marshal(g)
	return f.Bytes(data), err
}

// Gap returns the gap that a note describes, nil for no note.
func (r Reader) Gap(data []byte) *run.Gap {
	if data == nil {
		return nil
	}
	return decodeGap([]byte(r.Text(string(data))))
}

// decodeGap returns the gap that a note describes. Of a note that is not one it returns
// an empty gap.
func decodeGap(data []byte) *run.Gap {
	g := &run.Gap{}
	if json.Unmarshal(data, g) != nil || g.Step < 0 || !(g.Status == "" || g.Status == run.Suspended || g.Status.Over()) {
		*g = run.Gap{}
	}
	return g
}

// AddGap makes info, which has its last super-step, that of a run with a gap, nil for none.
func AddGap(info *run.Info, g *run.Gap) {
	if g == nil {
		return
	}
	g.Step = max(g.Step, info.Steps) // a note on a full disk does not have it
	info.Gap = g
	if g.Status != "" {
		info.Status, info.Error = g.Status, g.Error
	}
}
