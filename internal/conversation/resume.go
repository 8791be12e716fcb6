package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// question is all that it takes to ask a question, also again: what the record of its run has
// of it.
type question struct {
	Settings chat.Settings `json:"settings"` // in force
	Switches
	NoStream bool              `json:"no_stream,omitempty"` // replies come in one piece
	Usual    bool              `json:"usual,omitempty"`     // see [Wanted]
	Lead     []chat.Message    `json:"lead,omitempty"`      // what the role puts in front
	History  []chat.Message    `json:"history,omitempty"`   // what was said before, outside of sessions
	User     chat.Message      `json:"user"`                // the question as the role puts it
	Tools    []chat.Tool       `json:"tools,omitempty"`     // that the caller runs
	Todo     todo.Settings     `json:"todo,omitzero"`       // whether the model continues by itself
	List     *todo.List        `json:"list,omitempty"`      // the model's list before the question; nil for an empty one
	Base     string            `json:"base,omitempty"`      // the agent's instructions as they are written
	Images   map[string]string `json:"images,omitempty"`    // where pictures came from, by the hashes of their data

	chat.Constraints
	MaxOutputTokens int           `json:"max_output_tokens,omitempty"` // of a reply; 0 leaves it to the model
	Mode            session.Mode  `json:"mode,omitempty"`
	InPlaceOf       *chat.Message `json:"in_place_of,omitempty"` // see [session.Turn]
	Partial         string        `json:"partial,omitempty"`     // the answer that is continued, outside of sessions

	Workspace *workspaceRecord    `json:"workspace,omitempty"` // what the workspace told the model; nil for nothing
	Skills    *skillsRecord       `json:"skills,omitempty"`    // that the model is offered; nil for none
	Loaded    []event.SkillLoaded `json:"loaded,omitempty"`    // skills that the user loaded with the question

	Memory *memoryRecord `json:"memory,omitempty"` // what is remembered for it; nil for nothing

	Knowledge string `json:"rag,omitempty"`   // see [Wanted]
	Query     string `json:"query,omitempty"` // what is looked for in the knowledge base, if there is one

	// What is done with the answer; see [Question].
	Code    bool        `json:"code,omitempty"`
	Command bool        `json:"command,omitempty"`
	Whole   bool        `json:"whole,omitempty"`
	Form    *formRecord `json:"form,omitempty"`

	// Where it is kept.
	Aside   bool         `json:"aside,omitempty"` // nowhere
	Text    string       `json:"text,omitempty"`  // what was typed
	Sources []string     `json:"sources,omitempty"`
	Foreign []string     `json:"foreign,omitempty"`
	Role    string       `json:"role,omitempty"`    // name
	Session *sessionMark `json:"session,omitempty"` // nil for none
}

// formRecord is a form on record.
type formRecord struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// sessionMark is a session at the time of a question. Its scope follows from the run's agent.
type sessionMark struct {
	ID    session.ID    `json:"id"`
	Alias session.Alias `json:"alias,omitempty"`
	Turn  string        `json:"turn,omitempty"`  // id of the question's turn; "" in a record of an older version
	After int           `json:"after,omitempty"` // see [session.Session.Place]
	Place string        `json:"place,omitempty"` // in a record of an older version: not empty if something was said before
}

// begins reports whether nothing was said in the session before the question.
func (m *sessionMark) begins() bool { return m.After == 0 && m.Place == "" }

// seed returns a text that turns of one session do not share.
func (m *sessionMark) seed() string {
	if m.After > 0 {
		return strconv.Itoa(m.After)
	}
	return m.Place
}

// job returns what a question is run and recorded as.
func (t *turn) job() (run.Job, error) {
	c := t.c
	job := run.Job{
		Info: run.Info{Kind: run.ChatRun}, Events: c.options.Events, Durability: c.service.Durability,
		Make: func(context.Context, run.Point) (run.Work, func() error, error) { return t, nil, nil },
	}
	if c.agent != nil {
		job.Info, job.Durability = t.agentInfo(), c.agent.InForce.Durability
		job.Limit, job.LimitIn = c.agent.InForce.Budget, t.limitIn()
	}
	job.Info.Owner, job.Info.Prompt = c.options.Owner, cmp.Or(t.q.Text, t.q.User.Text())
	if err := t.admit(&job); err != nil {
		return job, err
	}
	if s := c.session; s != nil && !t.q.Aside {
		t.q.Session = &sessionMark{ID: s.ID(), Alias: s.Alias(), Turn: session.NewTurnID(), After: s.Place()}
	}
	if off := job.Durability == graph.DurabilityOff || job.Durability == ""; off && t.proposes() && !c.options.AcceptPlan && !ask.AtTerminal(c.options.Asker) {
		job.Durability = graph.DurabilityProcess // the plan may have to wait for the user
	}
	if c.options.Unrecorded && len(job.Info.Gates) == 0 || c.values.dryRun {
		job.Durability = graph.DurabilityOff
	}
	if job.Durability == graph.DurabilityOff || job.Durability == "" {
		return job, nil
	}
	if t.kit.Knowledge == nil {
		t.q.Query = ""
	}
	if t.form != nil {
		t.q.Form = &formRecord{t.form.name, json.RawMessage(t.form.Source())}
	}
	if t.q.Base = c.base; len(c.list.Items()) > 0 {
		t.q.List = c.list
	}
	data, err := json.Marshal(t.q)
	if err != nil {
		return job, err
	}
	if job.Info.Dir, err = c.WorkDir(); err != nil {
		job.Info.Dir = ""
	}
	job.Info.Agent = cmp.Or(job.Info.Agent, t.q.Role, string(run.ChatRun))
	job.Info.Model, job.Info.Question = c.options.Settings.Model, data
	return job, nil
}

// agentInfo returns what records of the agent's turns say of the agent.
func (t *turn) agentInfo() run.Info {
	a := t.c.agent
	return run.Info{
		Kind: run.AgentRun, Agent: a.Name, AgentDir: a.Dir, ByName: a.ByName(), Variables: t.c.variables,
		Definition: a.Definition.Text, Fingerprint: a.Definition.Fingerprint(), Files: t.kit.Files,
	}
}

// admit adds the rules by which a question starts.
func (t *turn) admit(job *run.Job) (err error) {
	if t.c.agent != nil {
		err = t.c.agent.Admit(&job.Info)
	}
	if err == nil {
		err = job.Info.Admit(t.c.options.Rules, "", "", nil)
	}
	if t.c.values.dryRun {
		job.Info.Gates = nil
	}
	if len(job.Info.Gates) > 0 && (job.Durability == graph.DurabilityOff || job.Durability == "") {
		job.Durability = graph.DurabilityProcess
	}
	return err
}

// conclude ends a question that is recorded. Its answer is kept before the run is over, so that
// there is none which is on record and nowhere else. If the provider asks to come back later,
// the run must resume then.
func (t *turn) conclude(ctx context.Context, err error) error {
	if _, later := errors.AsType[*engine.LaterError](err); later {
		return fault.Wrap(fault.Suspended, err, "the question waits for its provider")
	}
	if err != nil && ofAnswer(err) {
		return &run.FinalError{Err: err}
	}
	if err != nil || t.q.Aside || t.child {
		return err
	}
	a, q := t.answer(), t.q
	turn := session.Turn{ID: t.id(), Mode: q.Mode, Role: q.Lead, User: q.User, InPlaceOf: t.inPlaceOf(), DataURLs: q.Images, Reply: a.Messages, Usage: a.Usage}
	if t.unanswered > 0 {
		turn = session.Turn{ID: t.id(), Mode: session.Regenerate, Reply: a.Messages, Usage: a.Usage}
	}
	t.c.kept = true
	return t.c.keep(context.WithoutCancel(ctx), turn, session.MessagesEntry{Input: q.Text, Sources: q.Sources, Reply: a.Messages, Role: q.Role})
}

// ofAnswer reports whether an error is about the answer, which is on record, and not about
// getting one.
func ofAnswer(err error) bool {
	if _, ok := errors.AsType[*provider.Error](err); ok {
		return false
	}
	if _, ok := errors.AsType[*engine.MaxTurnsError](err); ok {
		return true
	}
	code := fault.CodeOf(err)
	return code == fault.Provider || code == fault.Refused
}

// SessionOf returns the session in which the question of a run was asked, "" if it was asked in none. info is complete.
func SessionOf(info run.Info) session.ID {
	var q question
	if json.Unmarshal(info.Question, &q) != nil || q.Session == nil {
		return ""
	}
	return q.Session.ID
}

// Unfinished returns the turns on record that did not end, by their sessions, oldest first.
func Unfinished(ctx context.Context, store run.Store) (map[session.ID][]string, error) {
	infos, err := store.Runs(ctx, run.Query{Unfinished: true})
	if err != nil {
		return nil, err
	}
	found := make(map[session.ID][]string)
	for _, info := range slices.Backward(infos) { // newest first
		if info.Status.Over() || info.Damaged {
			continue
		}
		whole, err := store.Info(ctx, info.ID)
		if fault.CodeOf(err) == fault.NotFound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if id := SessionOf(whole); id != "" {
			found[id] = append(found[id], info.ID)
		}
	}
	return found, nil
}

// Recall returns the job of a question on record, see [run.Service]. The question was put to an
// agent, as it is now, or to none if that is nil.
func (s *Service) Recall(ctx context.Context, info run.Info, k run.Continuation, a *Agent) (run.Job, error) {
	o := Options{Caller: Caller{Events: k.Events, Asker: k.Asker, Yes: k.Yes}, Owner: info.Owner}
	if o.Owner != nil {
		o.View = &auth.View{Subject: o.Owner.Subject}
	}
	c := s.Begin(o)
	c.at = info.Dir
	t := &turn{c: c, resumed: &k, asked: info.Started}
	if a != nil {
		if err := c.UseAgent(ctx, *a); err != nil {
			return run.Job{}, err
		}
		c.variables = info.Variables
	}
	if err := json.Unmarshal(info.Question, &t.q); err != nil {
		return run.Job{}, fault.Wrap(fault.Config, err, "the question on record of run %s cannot be read", info.ID)
	}
	t.planning.now = c.modeUnder(t.q.Settings)
	c.unwritten = a != nil && a.InForce.Dynamic && t.q.Base == ""
	if c.base = t.q.Base; t.q.List != nil {
		c.list = t.q.List
	}
	t.q.Settings.Model = cmp.Or(k.Model, t.q.Settings.Model)
	t.q.NoStream = t.q.NoStream || k.NoStream
	if f := t.q.Form; f != nil {
		var err error
		if t.form, err = NewForm(f.Name, f.Schema); err != nil {
			return run.Job{}, err
		}
	}
	// The session is the question's from now on: no other run continues in it before this one's answers are used up.
	if err := t.enter(t.c.context(ctx), info.ID); err != nil {
		return run.Job{}, err
	}
	job := run.Job{Info: info, Durability: s.Durability, Events: c.options.Events, Release: func() {
		c.dropPlace(context.Canceled)
		c.leave()
	}}
	if t.kept.Answered { // by a process that died before it ended the run
		job.Make = func(ctx context.Context, _ run.Point) (run.Work, func() error, error) {
			return keptAnswer{t}, func() error { return c.Close(context.WithoutCancel(ctx)) }, nil
		}
		return job, nil
	}
	if a != nil {
		if err := t.recallAgent(ctx, &job); err != nil {
			job.Release()
			return run.Job{}, err
		}
	}
	job.Make = t.goOn
	return job, nil
}

// recallAgent fills in what of a job depends on the agent. That its tools and its model are
// there is checked now, and again when the question resumes.
func (t *turn) recallAgent(ctx context.Context, job *run.Job) error {
	a := t.c.agent
	done, err := t.equip(t.c.context(ctx))
	done()
	if err != nil {
		return err
	}
	now := t.agentInfo()
	job.Info.Fingerprint, job.Info.Files = now.Fingerprint, now.Files
	job.Durability, job.Limit, job.LimitIn = a.InForce.Durability, a.InForce.Budget, t.limitIn()
	job.Diff = func(recorded []byte) ([]string, error) {
		old, _, err := agent.Parse(a.Definition.File, recorded)
		if err != nil {
			return nil, err
		}
		return agent.Diff(old, a.Definition), nil
	}
	return nil
}

// keptAnswer is the work of a run whose answer is in its session: nothing but the end of the run is missing.
type keptAnswer struct{ *turn }

// Started implements [run.Work].
func (k keptAnswer) Started() event.Started { return event.Started{Model: k.q.Settings.Model} }

// Do implements [run.Work].
func (k keptAnswer) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	var texts []string
	for _, m := range k.kept.Reply {
		if text := m.Text(); m.Role == chat.Assistant && text != "" {
			texts = append(texts, text)
		}
	}
	if n := len(texts); n > 0 && (k.q.Code || k.q.Command || k.q.Form != nil) {
		texts = texts[n-1:]
	}
	out := run.Outcome{Output: strings.Join(texts, "\n"), Usage: k.kept.Usage, Stop: chat.StopEnd}
	return out, f.Events.Emit(ctx, event.Reply{Model: k.q.Settings.Model, Text: out.Output, Stop: out.Stop, Usage: out.Usage})
}

// goOn makes a question on record the work of its run again.
func (t *turn) goOn(ctx context.Context, _ run.Point) (run.Work, func() error, error) {
	ctx = t.c.context(ctx)
	done, err := t.equip(ctx)
	if err != nil {
		done()
		t.c.dropPlace(context.Canceled)
		t.c.leave()
		return nil, nil, err
	}
	return t, func() error {
		done()
		return t.c.Close(context.WithoutCancel(ctx))
	}, nil
}

// leave lets others into the session again.
func (c *Conversation) leave() {
	if c.options.isolated && c.session != nil {
		c.session.Drop()
	}
	if c.release != nil {
		c.release()
	}
}

// enter resumes a recorded question in its session: in place of what the session has of it, if it
// ends with that. It is refused if the session has continued since, unless the user insists.
func (t *turn) enter(ctx context.Context, id string) error {
	mark, c := t.q.Session, t.c
	if mark == nil {
		return nil
	}
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	c.session, err = store.Open(ctx, c.Scope(), mark.ID)
	if errors.Is(err, session.ErrNotFound) {
		return t.enterAnew(ctx, store, id, err)
	}
	if err != nil {
		return err
	}
	if err := c.hold(ctx); err != nil {
		return err
	}
	return t.findPlace(id)
}

// findPlace looks for the turn in its session, which others are kept out of.
func (t *turn) findPlace(id string) error {
	mark, c := t.q.Session, t.c
	trace, place := c.session.Trace(mark.Turn), mark.After
	found := trace.Found && trace.Last
	if t.q.InPlaceOf != nil {
		place++ // the turn that it replaced was undone first
	}
	unchanged := found && trace.Place <= place+1 || !trace.Found && c.session.Place() == mark.After
	if mark.Turn == "" {
		trace, unchanged = c.session.TraceSince(t.asked, t.q.User)
	}
	if trace.Answered {
		t.kept = trace
		return nil
	}
	if t.unanswered = trace.Messages; unchanged || t.resumed.Force {
		return nil
	}
	c.leave()
	return fault.New(fault.Config, "session %s has continued since run %s asked its question", c.session.Name(), id).
		WithHint("ask again, or answer the question after what was said since: %s --force", t.resumed.Command)
}

// enterAnew is enter for a session that is not stored. One that was empty begins again, if it
// has a name.
func (t *turn) enterAnew(ctx context.Context, store session.Store, id string, gone error) (err error) {
	mark, c := t.q.Session, t.c
	c.session = nil
	if !mark.begins() && !t.resumed.Force {
		return fault.Wrap(fault.Config, gone, "the session of run %s is gone", id).
			WithHint("continue without it: %s --force", t.resumed.Command)
	}
	if !mark.begins() || mark.Alias == "" {
		return nil
	}
	if c.session, err = c.open(ctx, store, string(mark.Alias)); err != nil {
		return err
	}
	if err := c.admit(ctx, c.session, string(mark.Alias)); err != nil {
		return err
	}
	if c.agent != nil {
		c.keepAgent()
	}
	if err := c.hold(ctx); err != nil {
		return err
	}
	return t.findPlace(id)
}
