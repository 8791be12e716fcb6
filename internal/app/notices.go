package app

import (
	"context"
	"net/http"
	"path/filepath"

	"loki/internal/base/fault"
	"loki/internal/base/web"
	"loki/internal/service/postgres"
	"loki/internal/setup/config"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/notice"
	"loki/internal/workflow/run/webhook"
)

// openDesk returns what sends the notices of a server's runs.
func (a *App) openDesk(ctx context.Context, h *host, address string, db *postgres.DB) (*webhook.Desk, error) {
	var err error
	if db != nil {
		h.links, err = webhook.SharedLinks(ctx, db, nil)
	} else {
		h.links, err = webhook.OpenLinks(filepath.Join(a.Paths.StateDir, "links.key"), nil)
	}
	if err != nil && db != nil { // which says that it is the database
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "links to questions")
	}
	o := a.deskOptions()
	o.Dir, o.DB, o.Notices = filepath.Join(a.Paths.StateDir, "webhooks"), db, notice.Source{Store: h.store, Links: h.links, Address: address}.Notices
	return webhook.Open(ctx, o)
}

// deskOptions returns how the app sends notices.
func (a *App) deskOptions() webhook.Options {
	return webhook.Options{
		Fill: func(text string) (string, error) {
			filled, _, err := config.Expand(text, a.lookupSecret)
			return filled, err
		},
		Trusted: &http.Client{Transport: web.Transport(a.Env.Get)},
		Guarded: web.New(a.Env.Get, web.ParseAllowed(a.Env.Get("LOKI_FETCH_ALLOW"))),
		Log:     a.Log(),
		Agent:   "loki/" + Version,
		Form:    alert.Sender{Mail: a.mailAlert, Command: a.runAlert}.Form,
	}
}

// hooks returns the hooks that the configuration has for the runs of an agent.
func (a *App) hooks(agent string) (hooks []webhook.Hook) {
	if a.Config.API == nil {
		return nil
	}
	for _, w := range a.Config.API.Webhooks {
		if w.Agent == "" || w.Agent == agent {
			hooks = append(hooks, webhook.Hook{URL: w.URL, Secret: w.Secret, Events: w.Events, Trusted: true})
		}
	}
	return hooks
}

// began gives a run the hooks of the configuration.
func (a *App) began(ctx context.Context, id string) {
	info, err := a.host.store.Info(ctx, id)
	if err == nil {
		err = a.host.desk.Add(id, a.hooks(info.Agent)...) // also without one: a run that goes on may have its own
	}
	if err != nil {
		a.Log().WarnContext(ctx, "a run has no webhooks", "run_id", id, "error", err)
	}
}
