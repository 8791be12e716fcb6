package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/client"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// cancelTime is how long the command waits for the server to cancel a run.
const cancelTime = 10 * time.Second

// runRemotely begins a run of an agent at a server and shows it until it comes to rest.
func (c *command) runRemotely(ctx context.Context, s *farServer, face *face, of api.AgentDetail, prompt string) error {
	r, err := s.StartRun(ctx, of.Name, api.RunRequest{
		Prompt: prompt, Variables: c.agentVariables(), Model: c.opts.model, Yes: c.opts.yes, NoStream: c.opts.noStream, NoCompensate: c.opts.noCompensate, Rules: c.opts.doc.Rules,
	})
	if err != nil {
		return err
	}
	return c.follow(ctx, s, face, r, 0, false)
}

// resumeRemotely resumes the run of --resume on a server.
func (c *command) resumeRemotely(ctx context.Context, s *farServer, face *face) error {
	id := c.opts.resume
	if id == resumeNewest {
		list, err := s.Runs(ctx, client.RunQuery{Status: "suspended,interrupted,canceled,failed", Limit: 1})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fault.New(fault.NotFound, "no run at %s can be resumed", s.URL()).WithHint("see all runs: %s --runs", s.command)
		}
		id = list[0].ID
	}
	before, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	if piped := !c.InTerminal && len(c.opts.answer) == 0 && c.opts.answers == ""; piped || c.InTerminal {
		s.asker = c.asker(face, piped)
	}
	answers, err := c.answersFor(ctx, before)
	how := c.resumptionFlag()
	switch {
	case err != nil:
		return err
	case len(answers) > 0 && how != "":
		return fault.New(fault.Usage, "answers to a run at a server cannot come with --%s", how).
			WithHint("answer without it, or resume with it first and answer then: %s --resume %s --%s", s.command, before.ID, how)
	case len(answers) > 0:
		if _, err := s.Answer(ctx, before.ID, answers); err != nil {
			return err
		}
	case len(before.Pending) > 0 && before.Status == string(run.Suspended) && how == "":
		return c.goOnRemotely(ctx, s, face, before, false)
	default:
		r, err := c.resumption()
		if err == nil {
			_, err = s.Resume(ctx, before.ID, r)
		}
		if err != nil {
			return err
		}
	}
	return c.follow(ctx, s, face, before.Run, before.Events, false)
}

// resumptionFlag returns a flag that says how to resume a run, "" if there is none.
func (c *command) resumptionFlag() string {
	for _, name := range []string{"budget", "model", "force", "yes", "no-stream", "set", "no-compensate"} {
		if c.opts.flags.Changed(name) {
			return name
		}
	}
	return ""
}

// resumption returns what the options say about resuming a run.
func (c *command) resumption() (api.Resumption, error) {
	r := api.Resumption{Model: c.opts.model, Force: c.opts.force, Yes: c.opts.yes, NoStream: c.opts.noStream, NoCompensate: c.opts.noCompensate, Budget: c.opts.runBudget()}
	set, err := c.stateChanges()
	for _, m := range set {
		if r.Set == nil {
			r.Set = make(map[string]json.RawMessage)
		}
		r.Set[m.Name] = m.Value.AppendJSON(nil)
	}
	return r, err
}

// answersFor returns the answers that the options give to the questions of a run.
func (c *command) answersFor(ctx context.Context, r api.RunDetail) (map[string]string, error) {
	switch {
	case c.opts.answers != "":
		answers, lists, err := readAnswers(ctx, c.opts.answers)
		for _, q := range r.Pending {
			if slices.Contains(lists, q.ID) && !q.Multi && err == nil {
				err = fault.New(fault.Usage, "the answer to %s cannot be taken: one answer is expected, and not a list", q.ID)
			}
		}
		return answers, err
	case len(c.opts.answer) == 0:
		return nil, nil
	case len(r.Pending) == 0:
		return nil, fault.New(fault.Usage, "run %s waits for no answer", r.ID)
	}
	var ids []string
	for _, q := range r.Pending {
		ids = append(ids, q.ID)
	}
	return run.TypedAnswers(r.ID, ids, nil, c.opts.answer)
}

// forkRemotely begins a new run from the step of --fork.
func (c *command) forkRemotely(ctx context.Context, s *farServer, face *face) error {
	id, step, err := parseRunStep(c.opts.value)
	if err != nil {
		return err
	}
	f := api.Fork{}
	if f.Resumption, err = c.resumption(); err != nil {
		return err
	}
	if step >= 0 {
		f.Step = &step
	}
	r, err := s.Fork(ctx, id, f)
	if err != nil {
		return err
	}
	return c.follow(ctx, s, face, r, 0, false)
}

// follow shows the events of a run after the one with a number, until the run comes to rest. What it asks
// is asked here if it can be. Ctrl-C cancels it or, with detach, leaves it as it is.
func (c *command) follow(ctx context.Context, s *farServer, face *face, r api.Run, after int, detach bool) error {
	scope := c.app.Events(face.emitter)
	watch, stop := context.WithCancel(context.WithoutCancel(ctx)) // it shows also how a canceled run ends
	defer stop()
	canceled := make(chan error, 1)
	release := context.AfterFunc(ctx, func() {
		if detach {
			stop()
			return
		}
		limited, done := context.WithTimeout(watch, cancelTime)
		defer done()
		_, err := s.Cancel(limited, r.ID)
		canceled <- err
		if err != nil {
			stop()
		}
	})
	lost := func(err error) {
		_ = scope.Emit(watch, event.Warning{Text: err.Error() + "; trying again"})
	}
	for ev, err := range s.Watch(watch, r.ID, after, lost) {
		if err != nil && detach && ctx.Err() != nil {
			return c.noteDetached(face, r.ID)
		}
		if err != nil {
			if !release() {
				return c.cancelError(s, r, <-canceled)
			}
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("the run continues without this command: %s --run %s", s.command, r.ID)
		}
		after = max(after, ev.Number)
		parsed, err := event.Parse(ev.Data)
		if err != nil {
			continue // of a newer server
		}
		fin, over := parsed.Body.(event.Finished)
		if over = over && parsed.Depth == 0; over && detach {
			now, err := s.Run(watch, r.ID)
			if err != nil {
				return err
			}
			over = now.Events <= ev.Number // the run has not gone on since
		}
		if over && fin.Code == string(fault.Suspended) && ctx.Err() == nil && s.asker != nil {
			release()
			detail, err := s.Run(ctx, r.ID)
			if err != nil {
				return err
			}
			if len(detail.Pending) > 0 {
				return c.goOnRemotely(ctx, s, face, detail, detach)
			}
		}
		if err := scope.With(func(src *event.Source) { *src = parsed.Source }).Emit(watch, parsed.Body); err != nil {
			return err
		}
		if over {
			release()
			return c.outcomeOf(ctx, s, r, fin)
		}
	}
	release()
	last, err := s.Run(watch, r.ID) // it ended without an event that says so
	if err != nil {
		return err
	}
	return c.outcomeOf(ctx, s, r, event.Finished{Error: last.Error, Code: last.Code})
}

// cancelError is the failure of a command that was interrupted and could not cancel its run.
func (c *command) cancelError(s *farServer, r api.Run, err error) error {
	if err == nil {
		err = context.Canceled
	}
	return fault.New(fault.Canceled, "run %s could not be canceled and may still be at work: %v", r.ID, err).WithHint("see it: %s --run %s", s.command, r.ID)
}

// outcomeOf returns the error of a run that has come to rest, as if it had worked here.
func (c *command) outcomeOf(ctx context.Context, s *farServer, r api.Run, fin event.Finished) error {
	if fin.Error == "" {
		return nil
	}
	code, what := fault.Code(fin.Code), ""
	if fin.Unhandled > 0 || r.Status == string(run.Done) {
		return fault.Wrap(code, errors.New(fin.Error), "agent %s completed with failures", r.Agent).WithHint("see them: %s --run %s", s.command, r.ID)
	}
	if r.Kind == "graph" && code != fault.Suspended && code != fault.Canceled {
		what = fmt.Sprintf("graph execution failed for agent %s", r.Agent)
	}
	hint := "resume it where it stopped: " + s.command + " --resume " + r.ID
	if code == fault.Limit && r.Budget != nil {
		hint = "if it is the budget of the request that is used up, raise it: " + s.command + " --resume " + r.ID + " --budget AMOUNT"
	}
	if code == fault.Suspended {
		if list, err := s.Questions(context.WithoutCancel(ctx), r.ID); err == nil && len(list) > 0 {
			hint = answerHint(s.command, r.ID, list[0].ID, len(list))
		}
	}
	return fault.Wrap(code, errors.New(fin.Error), "%s", what).WithHint("%s", hint)
}

// answerHint says how to answer the n questions of a run, of which the first has an id.
func answerHint(command, id, first string, n int) string {
	if n == 1 {
		return "answer: " + command + " --resume " + id + " --answer TEXT"
	}
	return "answer: " + command + " --resume " + id + " --answers FILE, a YAML file with a line for each: " + first + ": ANSWER; or one of them: --answer " + first + "=TEXT"
}

// askerAt returns what answers the questions of a run at a server: the file of --answers, the lines of a piped
// standard input, or the user at the terminal; nil if no user can be asked.
func (c *command) askerAt(ctx context.Context, face *face, piped bool) (ask.Asker, error) {
	if c.opts.answers != "" || piped {
		return c.withAnswers(ctx, c.asker(face, piped))
	}
	if !c.InTerminal {
		return nil, nil
	}
	return c.asker(face, false), nil
}

// goOnRemotely asks the user what a run asks, and resumes it. Where no user can be asked it shows how to
// answer.
func (c *command) goOnRemotely(ctx context.Context, s *farServer, face *face, r api.RunDetail, detach bool) error {
	suspended := func() error {
		return c.outcomeOf(ctx, s, r.Run, event.Finished{Error: r.Error, Code: string(fault.Suspended)})
	}
	if s.asker == nil {
		return suspended()
	}
	for len(r.Pending) > 0 && r.Status == string(run.Suspended) {
		answers := make(map[string]string)
		for _, q := range r.Pending {
			answer, err := s.asker.Ask(ctx, questionOf(q))
			if errors.Is(err, ask.ErrUnavailable) {
				return suspended()
			}
			if err != nil {
				return fault.Wrap(fault.CodeOf(err), err, "run %s waits for an answer", r.ID).WithHint("answer: %s --resume %s", s.command, r.ID)
			}
			answers[q.ID] = answer
		}
		_, err := s.Answer(ctx, r.ID, answers)
		if err == nil {
			break
		}
		refused, ok := errors.AsType[*client.Error](err)
		taken := ok && refused.Status == http.StatusConflict // answered elsewhere meanwhile
		if !taken && (!ok || refused.Status != http.StatusBadRequest || !c.InTerminal) {
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("answer: %s --resume %s --answer TEXT", s.command, r.ID)
		}
		c.warn(err.Error())
		if r, err = s.Run(ctx, r.ID); err != nil {
			return err
		}
	}
	return c.follow(ctx, s, face, r.Run, r.Events, detach)
}

// questionOf returns a question of a server as the terminal asks it.
func questionOf(q api.Question) ask.Question {
	return run.Pending{Kind: q.Kind, Text: q.Text, Node: q.Node, Item: q.Item, Options: q.Options, Default: q.Default, Open: q.Open, Multi: q.Multi}.Question()
}
