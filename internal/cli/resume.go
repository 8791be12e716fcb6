package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"loki/internal/app"
	"loki/internal/engine"
	"loki/internal/fault"
	"loki/internal/value"
	"loki/internal/yamldoc"
)

// resumeRun goes on with the run of --resume.
func (c *command) resumeRun(ctx context.Context, face *face) error {
	r := app.ResumeRun{Continuation: c.continuation(face)}
	if c.opts.resume != resumeNewest {
		r.ID = c.opts.resume
	}
	if c.opts.hasAnswer {
		r.Answer = &c.opts.answer
	}
	if c.opts.answers != "" {
		var err error
		if r.Answers, err = readAnswers(c.opts.answers); err != nil {
			return err
		}
	}
	return resumeInTime(ctx, c.opts.wait, c.noteWait(face), func() error {
		out, err := c.app.Resume(ctx, r)
		r.ID = cmp.Or(out.Run, r.ID)   // another run may be the newest one when the wait is over
		r.Answer, r.Answers = nil, nil // they have been given
		return err
	})
}

// noteWait returns a function that shows until when a provider is waited for.
func (c *command) noteWait(face *face) func(until time.Time) {
	return func(until time.Time) {
		if !c.opts.quiet {
			face.screen.Print("▸ waiting for the provider until " + until.Local().Format(time.DateTime))
		}
	}
}

// resumeInTime resumes a run and, if it is to wait, resumes it again whenever its provider
// asked to come back later, at the time that it named. note is called before each wait. If
// ctx ends meanwhile, the error is that of ctx and says how to resume the run.
func resumeInTime(ctx context.Context, wait bool, note func(until time.Time), resume func() error) error {
	for {
		err := resume()
		later, ok := errors.AsType[*engine.LaterError](err)
		if !ok || !wait {
			return err
		}
		note(later.At)
		timer := time.NewTimer(time.Until(later.At))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fault.Wrap(fault.CodeOf(ctx.Err()), ctx.Err(), "waiting for the provider").WithHint("%s", fault.HintOf(err))
		}
	}
}

// continuation returns what the options say about going on with a run.
func (c *command) continuation(face *face) app.Continuation {
	return app.Continuation{
		Force: c.opts.force, Here: c.opts.here, Model: c.opts.model, NoStream: c.opts.noStream, Yes: c.opts.yes,
		Emitter: face.emitter, Asker: c.asker(face, !c.InTerminal),
	}
}

// readAnswers reads a mapping of question ids to answers.
func readAnswers(path string) (map[string]string, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "reading the answers")
	}
	doc, err := yamldoc.Parse(path, src)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "reading the answers")
	}
	answers := make(map[string]string)
	for e := range doc.Root().Map().All() {
		if text, ok := e.Node.Text(); ok {
			answers[e.Key] = text
		}
	}
	if err := doc.Err(); err != nil {
		return nil, fault.Wrap(fault.Config, err, "reading the answers")
	}
	return answers, nil
}

// forkRun begins a new run from the step of --fork.
func (c *command) forkRun(ctx context.Context, face *face) error {
	id, step, err := parseRunStep(c.opts.fork)
	if err != nil {
		return err
	}
	f := app.ForkRun{Continuation: c.continuation(face), Step: step}
	f.ID = id
	for _, s := range c.opts.set {
		key, json, ok := strings.Cut(s, "=")
		v, err := value.ParseJSON([]byte(json))
		if !ok || key == "" || err != nil {
			return fault.Wrap(fault.Usage, err, "--set %s: KEY=JSON is expected", s).
				WithHint("a text needs quotes of its own: --set 'topic=\"new topic\"'")
		}
		f.Set = append(f.Set, value.Member{Name: key, Value: v})
	}
	_, err = c.app.Fork(ctx, f)
	return err
}

// parseRunStep reads ID@STEP; without a step it is the last one committed, -1.
func parseRunStep(text string) (id string, step int, err error) {
	id, number, ok := strings.Cut(text, "@")
	if !ok {
		return id, -1, nil
	}
	step, err = strconv.Atoi(number)
	if err != nil || step < 0 || id == "" {
		return "", 0, fault.New(fault.Usage, "%q is no step of a run: ID@STEP is expected, with a step from 0", text)
	}
	return id, step, nil
}
