package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/run"
)

// resumeRun resumes the run of --resume.
func (c *command) resumeRun(ctx context.Context, face *face) error {
	if c.opts.resumeAll != "" {
		return c.resumeMany(ctx, face)
	}
	r := run.Resumption{}
	var err error
	if r.Continuation, err = c.continuation(face); err != nil {
		return err
	}
	if c.opts.resume != resumeNewest {
		r.ID = c.opts.resume
	}
	r.Typed = c.opts.answer
	if c.opts.answers != "" {
		if r.Answers, r.Lists, err = readAnswers(ctx, c.opts.answers); err != nil {
			return err
		}
	}
	if c.opts.wait {
		r.Wait = func(what string, until time.Time) {
			if c.opts.quiet {
				return
			}
			if !until.IsZero() && !strings.Contains(what, "until") {
				what += " until " + until.Local().Format(time.DateTime)
			}
			face.screen.Print("▸ " + what)
		}
	}
	_, err = c.app.Runs().Resume(ctx, r)
	return c.reportTaken(face, err)
}

// resumeID resumes a run that this command began.
func (c *command) resumeID(ctx context.Context, face *face, id string) error {
	r, err := c.continuation(face)
	if err != nil {
		return err
	}
	r.ID, r.Set = id, nil
	_, err = c.app.Runs().Resume(ctx, run.Resumption{Continuation: r})
	return err
}

// reportTaken reports that a run that another process is at work on has got its answer.
func (c *command) reportTaken(face *face, err error) error {
	if taken, ok := errors.AsType[*run.TakenError](err); ok {
		if !c.opts.quiet {
			face.screen.Print("▸ " + taken.Error())
		}
		return nil
	}
	return err
}

// continuation returns what the options say about resuming a run.
func (c *command) continuation(face *face) (run.Continuation, error) {
	limit, _ := c.opts.limit() // it was checked
	set, err := c.stateChanges()
	return run.Continuation{
		Set:   set,
		Break: c.opts.breaks, Steps: c.opts.steps(), Keep: c.opts.noCompensate,
		Budget: limit, Force: c.opts.force, Here: c.opts.here, Model: c.opts.model, NoStream: c.opts.noStream, Yes: c.opts.yes,
		Events: c.app.Events(face.emitter), Asker: c.asker(face, !c.InTerminal),
	}, err
}

// readAnswers reads a mapping of question ids to answers, some of which may be lists.
func readAnswers(ctx context.Context, path string) (answers map[string]string, lists []string, err error) {
	err = readAnswerFile(ctx, path, func(doc *yamldoc.Doc) error {
		given, err := answersOf(doc)
		answers, lists = ask.Texts(given)
		return err
	})
	return answers, lists, err
}

// readAnswerFile has read read the file of --answers.
func readAnswerFile(ctx context.Context, path string, read func(*yamldoc.Doc) error) error {
	src, err := userfile.ReadFile(ctx, path)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "reading the answers")
	}
	doc, err := yamldoc.Parse(path, src)
	if err == nil {
		err = read(doc)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "reading the answers")
	}
	return nil
}

// answersOf reads a mapping of names to answers.
func answersOf(doc *yamldoc.Doc) (map[string]ask.Given, error) {
	answers := make(map[string]ask.Given)
	for e := range doc.Root().Map().All() {
		if given, ok := ask.ReadAnswer(e.Node); ok {
			answers[e.Key] = given
		}
	}
	return answers, doc.Err()
}

// forkRun begins a new run from the step of --fork.
func (c *command) forkRun(ctx context.Context, face *face) error {
	id, step, err := parseRunStep(c.opts.value)
	if err != nil {
		return err
	}
	f := run.Fork{Step: step}
	if f.Continuation, err = c.continuation(face); err != nil {
		return err
	}
	f.ID = id
	_, err = c.app.Runs().Fork(ctx, f)
	return err
}

// stateChanges returns what --set says.
func (c *command) stateChanges() (changes []value.Member, err error) {
	for _, s := range c.opts.set {
		key, json, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, fault.New(fault.Usage, "--set %s: KEY=JSON is expected", s)
		}
		v, err := value.ParseJSON([]byte(json))
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "--set: the value of %s is not JSON: KEY=JSON is expected", key).
				WithHint("a text needs quotes of its own: --set '%s=\"new topic\"'", key)
		}
		changes = append(changes, value.Member{Name: key, Value: v})
	}
	return changes, nil
}

// parseRunStep reads ID@STEP; without a step it is the last one committed, -1.
func parseRunStep(text string) (id string, step int, err error) {
	id, number, ok := strings.Cut(text, "@")
	if !ok {
		return id, -1, nil
	}
	step, err = strconv.Atoi(number)
	if err != nil || step < 0 || id == "" {
		return "", 0, fault.New(fault.Usage, "%q is not a step of a run: ID@STEP is expected, with a step from 0", text)
	}
	return id, step, nil
}
