package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/tool/permission"
)

// Judge decides which calls may be made, and keeps what users grant. Its methods may be
// called from several goroutines. [permission.Judge] is one.
type Judge interface {
	Judge(call permission.Call) permission.Verdict
	// Remember keeps what the user granted.
	Remember(ctx context.Context, scope permission.Scope, grants []permission.Grant) error
	// Unattended says what to do with a call that needs consent where no user can be asked.
	UnattendedPolicy() permission.Unattended
	// Agent returns the name of the agent to which grants can be made; empty
	// without an agent.
	Agent() string
}

var _ Judge = (*permission.Judge)(nil)

// admission is the decision about a call.
type admission struct {
	refused    string // why the call is not made; empty if it is
	unattended bool   // it is refused because no user can be asked
	// unasked marks a call that guard let through without a question. Another call may
	// change the target before this call is made, and then a question is due.
	unasked bool
	guard   Guard
	paths   []string               // that the call names
	hidden  func(path string) bool // as [permission.Verdict] has it
	judged  func(path string) bool // see [Call]
	sandbox sandbox.Declaration    // what the program of the call may do, see [Call]
	files   bool                   // see [Call].Consented
	edited  json.RawMessage        // the arguments that the user gave the call instead of its own; nil for none
}

// admit decides whether a call may be made, and in which sandbox its program runs.
func (b *Box) admit(ctx context.Context, e entry, h Hints, call Call, wanted Request, st steps.Steps) (a admission, err error) {
	t := e.tool
	if s, ok := t.(StandIn); ok {
		h = s.StandsInFor()
	}
	question := ""
	guard, guarded := t.(Guard)
	if guarded {
		question = guard.Consent(call)
	}
	needed := (h.Destructive && !guarded || question != "") && wanted.Level != sandbox.Read
	a = admission{guard: guard, unasked: guarded && question == "" && !b.o.AutoConfirm}
	host := ""
	if r, ok := t.(Reacher); ok {
		host = r.Host(call)
	}
	var opens []string
	var use permission.Access
	if o, ok := t.(Opener); ok {
		opens, use = o.Opens(call)
	}
	_, exact := t.(FromFile)
	v := permission.Verdict{Action: permission.Allow}
	if b.o.Judge != nil {
		judged := h
		if j, ok := t.(Judged); ok {
			judged = j.HintsOf(call)
		}
		if r, ok := t.(Reading); ok && !wanted.holds() && b.mode() == chat.ModePlan {
			_, held := r.Reading()
			judged.ReadOnly = exact && held // a script that is confined by itself
		}
		v = b.o.Judge.Judge(permission.Call{Tool: call.Name, Arguments: call.Arguments, ReadOnly: judged.ReadOnly, Destructive: judged.Destructive, Host: host, Sandbox: wanted.Declaration, Opens: opens, Use: use, ExactNames: exact, Readable: call.Readable, Mode: b.mode()})
	}
	a.paths = slices.Concat(opens, v.Places)
	if b.o.Touched != nil {
		b.o.Touched(a.paths)
	}
	if a.hidden = v.Hidden; v.Places != nil {
		a.judged = func(path string) bool { return slices.Contains(v.Places, path) }
	}
	stopped, _ := recall(b.known, b.known.refused, call.Name+" "+wanted.Text)
	if slices.ContainsFunc(stopped, sandbox.Refusal.Asked) {
		if v.Files = true; v.Action == permission.Allow && !b.o.AutoConfirm {
			v.Action, v.Decided, v.Reason = permission.Ask, true, "a rule asks about a file that it reads"
		}
	}
	a.files = v.Files || b.o.AutoConfirm
	held := sandboxOf(wanted, v)
	if _, ok := t.(Confined); ok && b.o.AtMost != "" {
		v, held = boundVerdict(b.o.AtMost, wanted, v, held)
	}
	switch {
	case v.Decided && v.Action == permission.Allow && v.Level != "" && v.Level != sandbox.Full && !wanted.holds():
		v.Action = permission.Ask // the sandbox is the reason to allow it, and it does not hold this tool
	case v.Decided:
		a.unasked = false // a rule decides, whatever the tool thinks of the call
	case v.Action != permission.Deny:
		// The verdict is only the default for such tools; this tool knows this call.
		v.Action = permission.Allow
		if needed {
			v.Action = permission.Ask
		}
	}
	o, outliving := t.(Outliving)
	if outliving = outliving && o.Outlives(call); outliving && v.Action != permission.Deny {
		v.Action, v.Always, v.Wider = permission.Ask, nil, nil
	}
	switch v.Action {
	case permission.Allow:
		if h.ReadOnly {
			return a, nil
		}
		if b.o.Judge == nil && !wanted.holds() {
			return a, nil
		}
		// The decision is recorded, so that a call that is done is not asked about when rules
		// have changed since, and runs at the same level.
		err = b.decideOnce(ctx, &a, call.Name, held, st, func(context.Context) (decision, error) { return allowDecision(held), nil })
	case permission.Deny:
		err = b.decideOnce(ctx, &a, call.Name, held, st, func(context.Context) (decision, error) {
			return decision{Refused: fmt.Sprintf("it is not allowed (%s).%s", v.Reason, b.advice(" Do not try to get around this; do without, or say so to the user."))}, nil
		})
	default:
		q := ConsentQuestion{
			By: b.o.By, Text: question, Reason: v.Reason, Always: v.Always, Wider: v.Wider,
			Sandbox: held, Missing: wanted.Missing, Why: wanted.Reason, Refused: stopped, Edit: !b.plain, Personal: outliving,
		}
		if question == "" {
			q.Text = PlainQuestion(call)
		}
		if b.o.Judge != nil {
			q.Agent, q.ForRun = b.o.Judge.Agent(), b.o.ForRun
		}
		err = b.decideOnce(ctx, &a, call.Name, held, st, func(ctx context.Context) (decision, error) { return b.consent(ctx, e, q, call, st) })
		a.unasked = false
	}
	return a, err
}

// boundVerdict returns the verdict on a call that starts a program, and what that may do, where bound is the highest level.
func boundVerdict(bound sandbox.Level, wanted Request, v permission.Verdict, held sandbox.Declaration) (permission.Verdict, sandbox.Declaration) {
	switch {
	case wanted.holds() && !bound.Covers(wanted.Level):
		v = permission.Verdict{Action: permission.Deny, Decided: true, Reason: fmt.Sprintf("programs run at the level %s at most here", bound)}
	case wanted.holds() && !bound.Covers(held.Level):
		held = sandbox.Declaration{Level: bound, Hosts: wanted.Hosts}
	case !wanted.holds() && bound != sandbox.Full && v.Action == permission.Allow:
		v = permission.Verdict{Action: permission.Ask, Decided: true, Reason: fmt.Sprintf("it may do no more than the level %s of the sandbox allows, and there is no sandbox here", bound)}
	}
	return v, held
}

// sandboxOf returns what the program of a call may do if the call is made after the verdict: nothing if
// there is no sandbox.
func sandboxOf(wanted Request, v permission.Verdict) sandbox.Declaration {
	switch {
	case !wanted.holds():
		return sandbox.Declaration{}
	case v.Level != "":
		return sandbox.Declaration{Level: v.Level, Hosts: v.Hosts}
	}
	return wanted.Declaration
}

// decision is what was decided about a call. On record it is a text, which says why the call is refused and is empty if
// it is not, or an object with the sandbox for a call whose program runs in one.
type decision struct {
	Refused    string        `json:"-"`
	Unattended bool          `json:"-"` // it is refused because no user can be asked
	Level      sandbox.Level `json:"level"`
	Hosts      []string      `json:"hosts,omitempty"`
	Files      bool          `json:"files,omitempty"` // see [Call].Consented

	Grants []permission.Grant `json:"grants,omitempty"` // what the user granted for the run
	Edited json.RawMessage    `json:"edited,omitempty"` // the arguments that the user gave the call; nothing else is decided then
}

func allowDecision(d sandbox.Declaration) decision { return decision{Level: d.Level, Hosts: d.Hosts} }

// MarshalJSON implements [json.Marshaler].
func (d decision) MarshalJSON() ([]byte, error) {
	if d.Refused != "" || d.Level == "" && len(d.Grants) == 0 && d.Edited == nil {
		return json.Marshal(d.Refused)
	}
	type object decision
	return json.Marshal(object(d))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *decision) UnmarshalJSON(data []byte) error {
	if *d = (decision{}); json.Unmarshal(data, &d.Refused) == nil {
		return nil
	}
	type object decision
	return json.Unmarshal(data, (*object)(d))
}

// decideOnce makes a decision about a call, or takes the recorded one, which holds whatever has changed since: a program that was
// allowed at a level does not run at a higher one. held is what the program would run in now. The step comes before the call's own, so that
// an interruption while the user thinks leaves no doubt about what was done.
func (b *Box) decideOnce(ctx context.Context, a *admission, name string, held sandbox.Declaration, st steps.Steps, decide func(context.Context) (decision, error)) error {
	d, err := steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(ctx context.Context) (decision, error) {
		d, err := decide(ctx)
		if err == nil {
			d.Files = a.files
			err = b.refusal(name, d.Refused)
		}
		return d, err
	})
	if err != nil {
		return err
	}
	if len(d.Grants) > 0 && b.o.Judge != nil && b.o.ForRun {
		if err := b.o.Judge.Remember(ctx, permission.Run, d.Grants); err != nil {
			return err
		}
	}
	a.refused, a.unattended, a.sandbox, a.files, a.edited = d.Refused, d.Unattended, held, d.Files, d.Edited
	switch {
	case d.Level == "" || d.Refused != "" || d.Edited != nil:
	case held.Level != "":
		a.sandbox = sandbox.Declaration{Level: d.Level, Hosts: d.Hosts}
	case d.Level != sandbox.Full:
		a.refused = fmt.Sprintf("it was allowed in the sandbox only, at the level %s, and there is no sandbox here now. Make the call again, so that the user can be asked.", d.Level)
	}
	return nil
}

// PlainQuestion returns a question that shows only the name and the arguments
// of a call.
func PlainQuestion(call Call) string {
	return fmt.Sprintf("May the tool %s be run with these arguments?\n\n    %s", call.Name, text.Visible(string(call.Arguments)))
}

// consent gets the answer to a question. Answers that are given without asking are recorded too, since the result
// will be.
func (b *Box) consent(ctx context.Context, e entry, q ConsentQuestion, call Call, st steps.Steps) (decision, error) {
	yes := allowDecision(q.Sandbox)
	if b.o.AutoConfirm && !q.Personal {
		return yes, nil
	}
	if editing, _, err := steps.ReadNote[bool](ctx, st, "consent/edits"); err != nil || editing { // before an interruption
		if err != nil {
			return decision{}, err
		}
		return b.edit(ctx, e, call, st)
	}
	asked := q.Ask(b.o.From)
	asked.ID = st.Key("consent")
	said, err := b.ask(ctx, asked)
	answer := q.Answer(said)
	if refused, ok := errors.AsType[*hook.RefusedError](err); ok {
		return decision{Refused: refused.Error()}, nil
	}
	switch {
	case fault.CodeOf(err) == fault.Suspended:
		return decision{}, err
	case errors.Is(err, ask.ErrUnavailable):
		if q.Personal && (b.o.AutoConfirm || b.o.Judge != nil && b.o.Judge.UnattendedPolicy() == permission.UnattendedAllow) {
			return decision{Refused: "it would outlive this program, so the user has to consent, and cannot be asked here.", Unattended: true}, nil
		}
		refused, err := b.decideUnattended(err, q.Always)
		if refused != "" {
			return decision{Refused: refused, Unattended: true}, err
		}
		return yes, err
	case err != nil:
		return decision{}, err
	case answer.Edit:
		if err := steps.WriteNote(ctx, st, "consent/edits", true); err != nil {
			return decision{}, err
		}
		return b.edit(ctx, e, call, st)
	case answer.Reason != "":
		return decision{Refused: "the user did not consent, and said: " + answer.Reason}, nil
	case !answer.Yes:
		return decision{Refused: "the user did not consent."}, nil
	}
	if answer.Scope == permission.Run {
		yes.Grants = answer.Grants
	} else if b.o.Judge != nil && len(answer.Grants) > 0 {
		if err := b.o.Judge.Remember(ctx, answer.Scope, answer.Grants); err != nil {
			return decision{}, err
		}
	}
	return yes, nil
}

// decideUnattended decides about a call that needs consent where no user can be asked.
func (b *Box) decideUnattended(cause error, always []permission.Grant) (refused string, err error) {
	policy := permission.UnattendedDeny
	if b.o.Judge != nil {
		policy = b.o.Judge.UnattendedPolicy()
	}
	switch policy {
	case permission.UnattendedAllow:
		return "", nil
	case permission.UnattendedSuspend:
		return "", fault.Wrap(fault.Suspended, cause, "a call needs the user's consent, and no user can be asked here").
			WithHint("run it in a terminal, allow such calls with a rule under permission in config.yaml, or consent to all with --yes")
	}
	example := ""
	if len(always) == 1 && always[0] == (permission.Grant{Tool: always[0].Tool}) {
		example = ", such as " + always[0].Tool + ": allow"
	}
	return "it needs the user's consent, and the user cannot be asked here. The user can allow such calls with a rule under permission in config.yaml" + example + ", or consent to all calls with --yes or AUTO_CONFIRM=1.", nil
}
