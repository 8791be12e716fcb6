package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/text"
	"loki/internal/tool"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/webhook"
)

// Alerts returns what looks for what the alerts of the configuration are about. A desk sends them; address is that of the server for
// users, a URL without a path, or empty.
func (a *App) Alerts(store run.Store, desk *webhook.Desk, address string) *alert.Service {
	return alert.New(alert.Options{
		Rules: a.Config.Alerts, Store: store, Spent: a.limitStatus, Post: desk.Post, Address: address, Log: a.Log(),
		Limited: func(ctx context.Context) (models []string, err error) {
			list, err := a.Models.Governor.List(ctx)
			for _, l := range list {
				if l.PausedUntil.After(time.Now()) || l.Breaker == "open" {
					models = append(models, l.Client+":"+l.Model)
				}
			}
			return models, err
		},
	})
}

// limitStatus returns how much is used of the limits on what the runs of a server use together.
func (a *App) limitStatus(ctx context.Context) ([]spending.Spent, error) {
	if a.host == nil {
		return nil, nil
	}
	return a.host.spending.Status(ctx)
}

// TryAlert sends a test of an alert to each of its targets, and calls told with the result.
func (a *App) TryAlert(ctx context.Context, r *alert.Rule, told func(h webhook.Hook, err error)) error {
	o := a.deskOptions()
	o.Dir = filepath.Join(a.Paths.StateDir, "webhooks", "none") // nothing is kept
	desk, err := webhook.Open(ctx, o)
	if err != nil {
		return err
	}
	defer desk.Close()
	for _, h := range r.To {
		told(h, desk.Try(h, r.TestNotice(time.Now())))
	}
	return nil
}

// mailAlert sends a mail as the tool send_mail does.
func (a *App) mailAlert(ctx context.Context, to, subject, body string) error {
	natives, err := a.builtinTools("")
	if err != nil {
		return err
	}
	t, ok := natives.Lookup("send_mail")
	if !ok {
		return errors.New("there is no tool send_mail")
	}
	args, err := json.Marshal(map[string]string{"recipient": to, "subject": subject, "body": body})
	if err != nil {
		return err
	}
	_, err = t.Call(ctx, tool.Call{Name: "send_mail", Arguments: args})
	return err
}

// alertLimit bounds a command that delivers an alert.
const alertLimit = 20 * time.Second

// runAlert runs a command with an alert: its text in LOKI_ALERT, and all of it as JSON on standard input.
func (a *App) runAlert(ctx context.Context, command string, alert []byte, said string) error {
	shell := a.Shell()
	result, err := process.Run(ctx, process.Command{
		Path: shell.Path, Args: []string{shell.Flag, command}, Timeout: alertLimit, HasTimeout: true, Stdin: bytes.NewReader(alert),
		Env: environ.Merge(a.Child().Environ, map[string]string{"LOKI_ALERT": said}),
	})
	if err == nil && result.ExitCode != 0 {
		err = fault.New(fault.Failure, "the command ended with status %d: %s", result.ExitCode, text.OneLine(string(result.Stderr), 200))
	}
	return err
}
