package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/event"
)

// Variable is the variable of the environment in which a hook gets its name.
const Variable = "LOKI_HOOK"

// Options configure New. The zero value of a field is its default.
type Options struct {
	Hooks []Hook
	Shell process.Shell // for hooks with a text as their command
	Child environ.Child // environment of the hooks

	// Seal returns the text of an event as a hook gets it, without secrets. Unseal returns changed arguments and
	// results with the secrets themselves in place of the marks that sent, the text of the event, has for them. All are
	// JSON.
	// Nil changes nothing.
	Seal   func(text string) string
	Unseal func(text, sent string) string
	// Confine returns what limits a hook with a level. It is required if there are such hooks.
	Confine func(ctx context.Context, h Hook) (process.Confinement, error)
}

// Unbound says why a hook is bound, and how it is not.
const Unbound = `since a program that it starts may take code from the directory that a model works in; "sandbox: full" in the hook lifts that`

// Runner runs hooks. A nil Runner has none. It may be used from several goroutines.
type Runner struct {
	o       Options
	byKind  map[Kind][]Hook
	session string
}

// New returns a Runner, nil if there are no hooks.
func New(o Options) *Runner {
	if len(o.Hooks) == 0 {
		return nil
	}
	r := &Runner{o: o, byKind: make(map[Kind][]Hook)}
	for _, h := range o.Hooks {
		r.byKind[h.Kind] = append(r.byKind[h.Kind], h)
	}
	return r
}

// Has reports whether there are hooks of a kind.
func (r *Runner) Has(k Kind) bool { return r != nil && len(r.byKind[k]) > 0 }

// In returns a Runner whose events name a session.
func (r *Runner) In(session string) *Runner {
	if r == nil || session == r.session {
		return r
	}
	other := *r
	other.session = session
	return &other
}

// Run runs the hooks of the event's kind that match, in order, and returns what they came to. Where the event comes
// from, and where warnings go, is the scope of ctx. Check returns what is wrong with changed arguments of a call, for
// the user; a hook whose arguments are wrong has failed. It may be nil. The error is that of ctx, or of the scope.
func (r *Runner) Run(ctx context.Context, e Event, check func(json.RawMessage) error) (Decision, error) {
	var d Decision
	if !r.Has(e.Kind) {
		return d, nil
	}
	scope := event.FromContext(ctx)
	e.Run, e.Agent, e.AgentID, e.Depth, e.Node = scope.Run, scope.Agent, scope.AgentID, scope.Depth, scope.Node
	e.Session = r.session
	subject := e.subject()
	for _, h := range r.byKind[e.Kind] {
		if !h.matches(subject) {
			continue
		}
		a, err := r.ask(ctx, h, e, check)
		if ctx.Err() != nil {
			return d, context.Cause(ctx)
		}
		var warning string
		if err != nil {
			a, warning = h.failureAnswer(err)
		} else {
			if a.Action == ActionRefuse && a.Reason == "" {
				a.Reason = "it gave no reason."
			}
			warning = a.warning(h, e)
		}
		if warning != "" {
			if err := scope.Emit(ctx, event.Warning{Text: warning}); err != nil {
				return d, err
			}
		}
		if a.Note != "" {
			d.Notes = append(d.Notes, Note{h.Name, a.Note})
		}
		if a.Action == ActionRefuse {
			d.By, d.Reason, d.Arguments, d.Result = h.Name, a.Reason, nil, nil
			return d, nil
		}
		e.apply(a, &d)
	}
	return d, nil
}

// apply takes what a hook changed into the event of the hooks that follow, and into the decision.
func (e *Event) apply(a Answer, d *Decision) {
	if e.Tool == nil {
		return
	}
	call := *e.Tool
	if a.Arguments != nil {
		call.Arguments, d.Arguments = a.Arguments, a.Arguments
	}
	if a.Result != nil {
		call.Result, d.Result = a.Result, a.Result
	}
	e.Tool = &call
}

// ask runs one hook and returns its answer. The error says how it failed.
func (r *Runner) ask(ctx context.Context, h Hook, e Event, check func(json.RawMessage) error) (Answer, error) {
	e.Hook = h.Name
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return Answer{}, fmt.Errorf("its event cannot be written: %w", err)
	}
	sent := input.String()
	if r.o.Seal != nil {
		sent = r.o.Seal(sent)
	}
	env := append(slices.Concat(r.o.Child.Environ, h.environment()), Variable+"="+h.Name)
	c := process.Command{
		Path: r.o.Shell.Path, Args: []string{r.o.Shell.Flag, h.Command},
		Env: env, Stdin: strings.NewReader(sent), Timeout: h.Timeout, HasTimeout: true, MaxStdout: MaxAnswer, MaxStderr: 2 * MaxReason,
	}
	if h.Command == "" {
		c.Path, c.Args = h.Args[0], h.Args[1:]
	}
	if h.Level != "" && h.Level != sandbox.Full {
		var err error
		if c.Confinement, err = r.o.Confine(ctx, h); err != nil {
			return Answer{}, err
		}
	}
	res, err := process.Run(ctx, c)
	if ended, ok := errors.AsType[*process.ExitError](err); ok && ended.Code == 2 {
		return Answer{Action: ActionRefuse, Reason: text.Cut(ended.Stderr, MaxReason)}, nil
	}
	if err != nil {
		if note := r.o.Child.Note("list what it needs under permission.keep_env in config.yaml", res.Stderr, h.Line()); note != "" {
			err = fmt.Errorf("%w (%s)", err, note)
		}
		if h.Bound {
			err = fmt.Errorf("%w; it ran at level %s of the sandbox, %s", err, h.Level, Unbound)
		}
		return Answer{}, err
	}
	a, err := ParseAnswer(e.Kind, res.Stdout)
	if err != nil {
		return Answer{}, err
	}
	if r.o.Unseal != nil && a.Arguments != nil {
		a.Arguments = json.RawMessage(r.o.Unseal(string(a.Arguments), sent))
	}
	if r.o.Unseal != nil && a.Result != nil {
		*a.Result = r.o.Unseal(*a.Result, sent)
	}
	if a.Arguments != nil && check != nil {
		if err := check(a.Arguments); err != nil {
			return Answer{}, fmt.Errorf("its arguments do not fit: %w", err)
		}
	}
	return a, nil
}

// failureAnswer returns the answer that replaces that of a failed hook, and the warning about it.
func (h Hook) failureAnswer(err error) (Answer, string) {
	warning := h.String() + " failed: " + text.OneLine(err.Error(), 400)
	if h.OnFailure == Refuse {
		return Answer{Action: ActionRefuse, Reason: "the hook failed, and what it watches over is not done then."}, warning
	}
	return Answer{}, warning + "; continuing without it"
}

// maxShown is how many characters of a text of a hook its warning shows.
const maxShown = 400

// warning returns what the user should know of an answer, empty for nothing.
func (a Answer) warning(h Hook, e Event) string {
	about := map[Kind]string{
		BeforeModel: "the request", AfterModel: "the reply", SessionStart: "the session", SessionEnd: "the end of the session", Question: "a question",
	}[e.Kind]
	if e.Tool != nil {
		about = "the call of " + e.Tool.Name
	}
	switch {
	case a.Action == ActionRefuse:
		return fmt.Sprintf("%s refused %s: %s", h, about, text.OneLine(a.Reason, maxShown))
	case a.Arguments != nil && !bytes.Equal(a.Arguments, e.Tool.Arguments):
		return fmt.Sprintf("%s changed the arguments of %s to %s", h, e.Tool.Name, text.OneLine(string(a.Arguments), maxShown))
	case a.Result != nil && *a.Result != *e.Tool.Result:
		return fmt.Sprintf("%s changed the result of %s", h, e.Tool.Name)
	}
	return ""
}
