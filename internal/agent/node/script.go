package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Scripts says where scripts are and what they get.
type Scripts struct {
	AgentDir string        // directory that relative script paths start from
	Child    environ.Child // their environment, without the state
	// Parent returns an entry for the environment of each script, or nothing; nil is none.
	Parent func() string
	// Sandbox returns what confines scripts; nil confines none. Bounds returns, when the script at path is started, what it
	// may do with what its node declares; nil means the zero Bounds.
	Sandbox func() (*sandbox.Sandbox, error)
	Bounds  func(path string) sandbox.Bounds
	// Reads are places that scripts read beside the workspace and AgentDir.
	Reads []string
	// Apart returns the environment of a script that is not confined, without what leads it to code in the working directory; nil
	// changes nothing.
	Apart func(environ []string) []string
	// Dir is where scripts run; empty for the working directory.
	Dir string
	// Consent is called before the script at path is started, whose error is then the script's; nil consents to all.
	Consent func(ctx context.Context, path string) error
}

// confine puts the command of the script at path into a box. It returns the box, nil for a command that is not confined, and
// what the command may do. stateFile is empty for a state in the environment.
func (s Scripts) confine(c *process.Command, d sandbox.Declaration, path, stateFile string) (box *sandbox.Box, held sandbox.Declaration, err error) {
	if s.Sandbox == nil {
		return nil, held, nil
	}
	boxes, err := s.Sandbox()
	if err != nil {
		return nil, held, err
	}
	var bounds sandbox.Bounds
	if s.Bounds != nil {
		bounds = s.Bounds(path)
	}
	if held = bounds.Of(d); held.Level == sandbox.Full {
		return nil, held, nil
	}
	if real, err := filepath.EvalSymlinks(path); bounds.Untrusted && err == nil {
		workspace, err := os.Getwd()
		if s.Dir != "" {
			workspace = s.Dir
		}
		if err != nil || !environ.Inside(s.AgentDir, nil)(real) && !environ.Inside(workspace, nil)(real) {
			return nil, held, fmt.Errorf("%s leads to a file outside of the agent's directory and of the working directory, which an agent that is not trusted does not read: loki --trust %s", path, s.AgentDir)
		}
	}
	reads := append([]string{s.AgentDir, path, stateFile}, s.Reads...)
	box = boxes.Box(held, sandbox.Needs{Read: slices.DeleteFunc(reads, func(place string) bool {
		_, err := os.Stat(place)
		return place == "" || err != nil
	})})
	c.Env, c.Confinement = append(c.Env, "PYTHONDONTWRITEBYTECODE=1"), box
	return box, held, nil
}

// refusals returns the note about what the box of a failed script stopped.
func (s Scripts) refusals(box *sandbox.Box, held sandbox.Declaration, path, stderr string, code []byte) string {
	if box == nil {
		return ""
	}
	note := held.Note(box.Refusals(stderr, true), func(needed sandbox.Declaration) string {
		if s.Bounds != nil {
			if b := s.Bounds(path); b.Untrusted && !b.Most.Level.Covers(needed.Level) {
				return fmt.Sprintf("the agent is not trusted, and its scripts run at level %s at most: loki --trust %s", b.Most.Level, s.AgentDir)
			}
		}
		return fmt.Sprintf("declare what it needs at the node in graph.yaml: sandbox: %s", needed.YAML())
	})
	if note == "" && sandbox.StartsProgram(code) {
		note = sandbox.NeedsFull + "; declare it at the node in graph.yaml: sandbox: full"
	}
	return note
}

// inlineState is the largest state, in bytes of JSON, that is passed to a script in
// an environment variable; a larger one is passed in a file.
const inlineState = 32 << 10

// nextKey is the member of a script's output that names the node to go to.
const nextKey = "_next"

// script runs a program that prints a JSON object, merges the object into the state
// and follows its _next, or else the node's next.
func (r *Runner) script(ctx context.Context, t *run.Task) (product, error) {
	next, err := r.scriptBody(ctx, t)
	switch {
	case err != nil:
		return r.fail(ctx, t, err)
	case next != nil:
		return product{targets: []string{*next}}, nil
	case len(t.Node.Next) > 0 || t.Node.Defer || t.Undoes != nil:
		return r.exit(ctx, t, product{})
	}
	return product{}, fmt.Errorf("script %s gave no %s and the node has no next", t.Node.Script.Script, nextKey)
}

// scriptBody runs a script and makes its state_updates. next is its _next, nil for none.
func (r *Runner) scriptBody(ctx context.Context, t *run.Task) (next *string, err error) {
	next, err = tryNode(ctx, r, t, func(ctx context.Context) (*string, error) { return r.scriptOutput(ctx, t) })
	if err != nil {
		return nil, fault.Wrap(scriptCode(err), err, "script %s", t.Node.Script.Script)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "", value.Value{}, "")
	return next, nil
}

func scriptCode(err error) fault.Code {
	if code := fault.CodeOf(err); is[*unfitError](err) || code != fault.Failure {
		return code
	}
	return fault.Tool
}

// scriptOutput runs the script and merges what it printed into the draft. next is
// its _next, nil for none.
func (r *Runner) scriptOutput(ctx context.Context, t *run.Task) (next *string, err error) {
	path := t.Node.Script.Path(r.Scripts.AgentDir)
	state := t.Draft.State()
	material := func() []string {
		code, _ := os.ReadFile(path) // a missing script is reported when it is run
		return []string{path, string(code), string(state.AppendJSON(nil)), strings.Join(r.Scripts.Child.Environ, "\n")}
	}
	printed, err := withCache(ctx, r, t, material, func(ctx context.Context) (value.Value, error) {
		step := steps.Step{Kind: steps.Script, Key: "script", Name: t.Node.Script.Script, Effect: true, Uncertain: r.decideUncertain(t)}
		if t.Steps.Recording() {
			step.Request = func() any { return state.Object().Value() }
		}
		return steps.Do(ctx, t.Steps, step, func(ctx context.Context) (value.Value, error) {
			return r.runScript(ctx, t, path, state)
		})
	})
	if errors.Is(err, steps.ErrSkipped) { // not a result that a cache may keep
		printed, err = value.ObjectOf().Value(), t.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("script %s was %v", t.Node.Script.Script, err)})
	}
	if err != nil {
		return nil, err
	}
	output := printed.AsObject()
	v, _ := output.Get(nextKey)
	if target, ok := v.AsString(); ok {
		next = &target
	}
	t.Draft.Merge(output.Without(nextKey), r.Plan.Graph().Reducers)
	return next, nil
}

// environ returns the environment of a script that is started now.
func (s Scripts) environ() []string {
	if s.Parent == nil {
		return s.Child.Environ
	}
	return append(s.Child.Environ[:len(s.Child.Environ):len(s.Child.Environ)], s.Parent())
}

// remedy returns how a script of a graph gets a variable.
const remedy = "list what it needs under environment: in graph.yaml"

// runScript runs the program at path and returns the JSON object it printed.
func (r *Runner) runScript(ctx context.Context, t *run.Task, path string, state graph.State) (value.Value, error) {
	if _, err := os.Stat(path); err != nil {
		return value.Value{}, &unfitError{fault.Config, fmt.Errorf("no script at %s", path)}
	}
	if r.Scripts.Consent != nil {
		if err := r.Scripts.Consent(ctx, path); err != nil {
			return value.Value{}, &unfitError{fault.CodeOf(err), err}
		}
	}
	argv, err := process.Interpreter(process.Ext(path), filepath.Dir(path), nil)
	if err != nil {
		return value.Value{}, err
	}
	env, stateFile, err := stateEnv(environ.Merge(r.Scripts.environ(), map[string]string{
		"LOKI_RUN_ID":          t.Events.Run,
		"LOKI_IDEMPOTENCY_KEY": t.Events.Run + "/" + r.effectKey(t),
	}), state)
	if err != nil {
		return value.Value{}, err
	}
	if stateFile != "" {
		defer os.RemoveAll(filepath.Dir(stateFile))
	}
	command := process.Command{
		Path: argv[0], Args: append(argv[1:len(argv):len(argv)], path), Env: env,
		Dir: r.Scripts.Dir, Timeout: t.Node.Timeout, HasTimeout: t.Node.HasTimeout,
	}
	box, held, err := r.Scripts.confine(&command, t.Node.Sandbox, path, stateFile)
	if err != nil {
		return value.Value{}, err
	}
	if r.Scripts.Apart != nil && (box == nil || box.Level() == sandbox.Full) {
		command.Env = r.Scripts.Apart(command.Env)
	}
	result, err := process.Run(ctx, command)
	if left := box.LeftNote(); left != "" && err == nil {
		err = t.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("script %s at level %s %s", t.Node.Script.Script, held.Level, left)})
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		code, _ := os.ReadFile(path)
		if note := strings.Trim(r.Scripts.refusals(box, held, path, exit.Stderr, code)+"; "+r.Scripts.Child.Note(remedy, exit.Stderr, string(code)), "; "); note != "" {
			err = fmt.Errorf("%w; %s", err, note)
		}
	}
	if err != nil {
		return value.Value{}, err
	}
	printed, err := scriptObject(result.Stdout, t.Secrets != nil)
	if err != nil {
		return value.Value{}, err
	}
	return printed, r.checkNext(t, printed)
}

// checkNext fails if the output of a script names a node that does not exist. It is called
// before the output is recorded, so that a run can resume once the script is fixed.
func (r *Runner) checkNext(t *run.Task, printed value.Value) error {
	next, _ := printed.AsObject().Get(nextKey)
	id, ok := next.AsString()
	if !ok || t.Events.Item != nil || r.Plan.Graph().Node(id) != nil { // in a map routes do not matter
		return nil
	}
	err := fault.New(fault.Failure, "its %s is %q, and there is no such node", nextKey, id).WithHint("fix the script, or add the node")
	if t.Steps.Recording() {
		err = err.WithHint("fix the script, or add the node, and resume: loki --resume %s --force", t.Events.Run)
	}
	return &unfitError{fault.Failure, err}
}

// place names the node of t within its super-step: a map's branch together with the
// map, because several maps may share a branch, and the node of a child agent or subgraph together with that.
func (r *Runner) place(t *run.Task) string {
	place := graph.EscapeID(t.Node.ID)
	if own := r.ownNode(t); own != "" && own != place {
		place = own + "/" + place
	}
	return r.below(t, place)
}

// ownNode returns the node that the events of t name, escaped and without those around it.
func (r *Runner) ownNode(t *run.Task) string {
	if r.within == "" {
		return graph.EscapeID(t.Events.Node)
	}
	return strings.TrimPrefix(t.Events.Node, r.within+"/")
}

// below returns the name of a place in the graph of t as one of the run: together with the child agent, or the visit of the node whose
// subgraph it is. What such a graph does that begins anew after it was undone is no repetition, so it has other names.
func (r *Runner) below(t *run.Task, place string) string {
	if t.Life > 0 {
		place = fmt.Sprintf("@again%d/%s", t.Life, place)
	}
	switch {
	case r.around != "":
		return r.around + "/" + place
	case t.Events.AgentID != "":
		return graph.EscapeID(t.Events.AgentID) + "/" + place
	}
	return place
}

// stateEnv adds the state to env, inline or in a file, whose directory the caller removes; its path is empty if there is none.
func stateEnv(env []string, s graph.State) (full []string, file string, err error) {
	state := s.AppendJSON(nil)
	if len(state) <= inlineState && !bytes.ContainsRune(state, 0) {
		return environ.Merge(env, map[string]string{"GRAPH_STATE": string(state)}, "GRAPH_STATE_FILE"), "", nil
	}
	dir, err := tempdir.Make("", "state")
	if err == nil {
		file = filepath.Join(dir, "state.json")
		err = os.WriteFile(file, state, 0o600) // it may hold secrets
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, "", fmt.Errorf("writing the state for the script: %w", err)
	}
	return environ.Merge(env, map[string]string{"GRAPH_STATE_FILE": file}, "GRAPH_STATE"), file, nil
}

// scriptObject reads a script's output. Of a graph with secret keys errors do not quote it: it may be meant for one of them.
func scriptObject(stdout []byte, secret bool) (value.Value, error) {
	output := strings.ToValidUTF8(string(stdout), "\uFFFD")
	output = strings.TrimSpace(strings.TrimPrefix(output, "\uFEFF")) // a byte order mark, as some programs write it
	if output == "" {
		return value.Value{}, errors.New("printed no output; a JSON object is expected on stdout")
	}
	v, err := value.ParseJSON([]byte(output))
	if err != nil && secret {
		return value.Value{}, fmt.Errorf("did not print valid JSON, but %s that are not shown, because the graph has secret keys", text.Count(len(output), "byte"))
	}
	if err != nil {
		return value.Value{}, fmt.Errorf("did not print valid JSON: %w; it begins with %q", err, text.Cut(output, 120))
	}
	if v.Kind() != value.ObjectKind {
		return value.Value{}, fmt.Errorf("printed a JSON %s; its output must be a JSON object", v.Kind())
	}
	return v, nil
}
