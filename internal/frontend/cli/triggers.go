package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/chat"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule/trigger"
)

// allLetters is the value of --dead-retry for all dead letters.
const allLetters = "all"

// maxTestBody is how much --trigger-test reads.
const maxTestBody = 25 << 20

// triggerTest is what --trigger-test shows.
type triggerTest struct {
	Trigger   string            `json:"trigger"`
	Agent     string            `json:"agent"`
	Ignored   bool              `json:"ignored"`
	Delivery  string            `json:"delivery,omitempty"` // its id
	Prompt    string            `json:"prompt,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
}

// testTrigger shows what a body would start.
func (c *command) testTrigger(ctx context.Context) error {
	name, file := c.opts.triggerTest[0][0], c.opts.triggerTest[0][1]
	t := trigger.Find(c.app.Config.Triggers, name)
	if t == nil || t.Webhook == nil {
		return fault.New(fault.NotFound, "there is no trigger %q with a webhook in %s", name, c.app.Config.File).WithHint("the section triggers lists them")
	}
	r, err := c.requestIn(ctx, file)
	if err != nil {
		return err
	}
	d, err := r.Delivery(t.Webhook)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "%s", file)
	}
	start, ok, err := t.Start(d, chat.NewBoundary(), time.Now())
	if err == nil && ok {
		err = c.app.Background.CheckTrigger(t, start)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "the body would start no run, and become a dead letter")
	}
	shown := triggerTest{Trigger: t.Name, Agent: t.Agent, Ignored: !ok, Prompt: start.Prompt, Variables: start.Variables}
	if ok {
		shown.Delivery = t.Webhook.ID(r, d)
	}
	if !ok {
		return c.print(shown, "ignored: when is false\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "agent     %s\ndelivery  %s\n", t.Agent, shown.Delivery)
	for _, name := range slices.Sorted(maps.Keys(start.Variables)) {
		fmt.Fprintf(&b, "variable  %s = %s\n", name, text.Printable(start.Variables[name]))
	}
	fmt.Fprintf(&b, "prompt\n%s\n", start.Prompt)
	return c.print(shown, b.String())
}

// requestIn returns the request in a file: a body, or an object {headers, query, body}.
func (c *command) requestIn(ctx context.Context, file string) (r trigger.Request, err error) {
	in := io.Reader(c.In)
	if file != "-" {
		f, err := userfile.Open(ctx, file)
		if err != nil {
			return r, fault.Wrap(fault.Usage, err, "the body of --trigger-test")
		}
		defer f.Close()
		in = f
	}
	if r.Body, err = io.ReadAll(io.LimitReader(in, maxTestBody)); err != nil {
		return r, fault.Wrap(fault.Usage, err, "%s", file)
	}
	r.Header = make(http.Header)
	var whole struct {
		Headers, Query map[string]string
		Body           json.RawMessage
	}
	strict := json.NewDecoder(strings.NewReader(string(r.Body)))
	if strict.DisallowUnknownFields(); strict.Decode(&whole) != nil || whole.Body == nil {
		return r, nil
	}
	r.Body, r.Query = whole.Body, make(map[string][]string)
	for name, value := range whole.Headers {
		r.Header.Set(name, value)
	}
	for name, value := range whole.Query {
		r.Query[name] = []string{value}
	}
	return r, nil
}

// listDead lists the dead letters.
func (c *command) listDead(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		letters, err := trigger.DeadLetters(ctx, store, "")
		if err != nil {
			return err
		}
		table := display.List([]string{"ID", "TRIGGER", "AGE", "REASON"}, letters, func(d trigger.Dead) []string {
			return []string{d.ID, d.Trigger, display.Age(time.Since(d.At)), text.Printable(text.OneLine(d.Reason, 200))}
		})
		return printList(c, append([]trigger.Dead{}, letters...), "there are no dead letters", display.Fit(table, c.outWidth()))
	})
}

// retryDead starts the runs of dead letters in this process, one after the other.
func (c *command) retryDead(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		service, err := c.app.Background.Triggers(store, nil)
		if err != nil {
			return err
		}
		ids := []string{c.opts.value}
		if ids[0] == allLetters {
			letters, err := trigger.DeadLetters(ctx, store, "")
			if err != nil {
				return err
			}
			ids = nil
			for _, d := range slices.Backward(letters) {
				ids = append(ids, d.ID)
			}
		}
		if len(ids) == 0 && !c.opts.quiet {
			fmt.Fprintln(c.Err, "there are no dead letters: there is nothing to try again")
		}
		var failed []error
		for _, id := range ids {
			result, err := service.Retry(ctx, "", id)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", id, err))
				continue
			}
			what := "ignored by its trigger"
			if result.RunID != "" {
				info, err := store.Info(ctx, result.RunID)
				what = "run " + result.RunID
				if err == nil {
					what += " is " + string(info.Status)
				}
			}
			fmt.Fprintf(c.Out, "%s: %s\n", id, what)
		}
		if len(failed) == 1 && len(ids) == 1 {
			return errors.Unwrap(failed[0])
		}
		return errors.Join(failed...)
	})
}

// testAlert sends a test of an alert to its targets.
func (c *command) testAlert(ctx context.Context) error {
	rules := c.app.Config.Alerts
	i := slices.IndexFunc(rules, func(r *alert.Rule) bool { return r.Name == c.opts.value })
	if i < 0 {
		return fault.New(fault.NotFound, "there is no alert %q in %s", c.opts.value, c.app.Config.File).WithHint("the section alerts lists them")
	}
	var failed []error
	err := c.app.TryAlert(ctx, rules[i], func(h webhook.Hook, err error) {
		form := cmp.Or(h.Form, "webhook")
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", form, err))
			return
		}
		fmt.Fprintln(c.Out, form+": delivered")
	})
	return errors.Join(err, errors.Join(failed...))
}
