package cli

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/workflow/run"
)

// signal returns the run, the name and the value of --signal.
func (c *command) signal() (id, name string, v value.Value, err error) {
	if len(c.opts.signals) > 1 {
		return "", "", v, fault.New(fault.Usage, "--signal is given %d times", len(c.opts.signals)).WithHint("send one signal after the other")
	}
	id = c.opts.signals[0][0]
	name, json, ok := strings.Cut(c.opts.signals[0][1], "=")
	if !ok {
		json = "null"
	}
	if v, err = value.ParseJSON([]byte(json)); err != nil || name == "" {
		return "", "", v, fault.Wrap(fault.Usage, err, "--signal %s %s: NAME=JSON is expected", id, c.opts.signals[0][1]).
			WithHint("a text needs quotes of its own: --signal %s 'paid=\"in cash\"'", id)
	}
	return id, name, v, nil
}

// sendSignal gives a run a signal.
func (c *command) sendSignal(ctx context.Context) error {
	id, name, v, err := c.signal()
	if err != nil {
		return err
	}
	return c.withRuns(func(store run.Store) error {
		info, s, err := run.Deliver(ctx, store, id, name, v, "")
		if err != nil {
			return err
		}
		waits, err := store.Waits(ctx, info.ID)
		if err != nil {
			return err
		}
		hint := "it is kept until a node waits for it"
		for _, p := range waits {
			if p.Arrived([]run.Signal{s}, s.At) && !info.Active && info.Status == run.Suspended && !info.Served {
				hint = "resume the run: loki --resume " + info.ID
			} else if p.Signal == name {
				hint = "a node waits for it"
			}
		}
		return c.reportSignal(info.ID, s.Number, name, hint)
	})
}

// sendSignalAt gives a run at a server a signal.
func (c *command) sendSignalAt(ctx context.Context, s *farServer, _ *face) error {
	id, name, v, err := c.signal()
	if err != nil {
		return err
	}
	got, err := s.Signal(ctx, id, name, api.SignalRequest{Value: v.AppendJSON(nil)})
	if err != nil {
		return err
	}
	return c.reportSignal(got.Run, got.Number, name, "a run that waits for it resumes")
}

// reportSignal reports that a signal is on record.
func (c *command) reportSignal(id string, number int, name, hint string) error {
	if c.opts.output != outputText {
		return printJSON(c.Out, struct {
			Run    string `json:"run"`
			Number int    `json:"number"`
			Name   string `json:"name"`
		}{id, number, name})
	}
	if !c.opts.quiet {
		fmt.Fprintf(c.Err, "signal %s of run %s is on record; %s\n", name, id, hint)
	}
	return nil
}
