package app

import (
	"context"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/web"
	"loki/internal/service/postgres"
	"loki/internal/service/webhook"
	"loki/internal/setup/config"
	"loki/internal/workflow/run"
)

// linkTime is how long a question can be answered with a link.
const linkTime = 7 * 24 * time.Hour

// notice is the data of a notice.
type notice struct {
	RunID  string `json:"run_id"`
	Agent  string `json:"agent"`
	Status string `json:"status"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	Code   string `json:"code,omitempty"`

	Question *run.Pending `json:"question,omitempty"`
	// AnswerURL shows the question and takes its answer, without a key and once.
	AnswerURL string `json:"answer_url,omitempty"`
}

// openDesk returns what sends the notices of a server's runs.
func (a *App) openDesk(ctx context.Context, h *host, db *postgres.DB) (*webhook.Desk, error) {
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
	return webhook.Open(ctx, webhook.Options{
		Dir: filepath.Join(a.Paths.StateDir, "webhooks"), DB: db,
		Notices: h.notices,
		Fill: func(text string) (string, error) {
			filled, _, err := config.Expand(text, a.lookupSecret)
			return filled, err
		},
		Trusted: &http.Client{Transport: web.Transport(a.Env.Get)},
		Guarded: web.New(a.Env.Get, web.ParseAllowed(a.Env.Get("LOKI_FETCH_ALLOW"))),
		Log:     a.Log(),
		Agent:   "loki/" + Version,
	})
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

// notices returns what there is to say of a run, and whether there will be more.
func (h *host) notices(ctx context.Context, id string) (all []webhook.Notice, more bool, err error) {
	info, err := h.store.Info(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, false, fs.ErrNotExist
	}
	if err != nil || info.Active || info.Status == run.Running {
		return nil, true, err
	}
	data := notice{RunID: id, Agent: info.Agent, Status: string(info.Status), Output: info.Output, Error: info.Error, Code: string(info.Code)}
	one := func(kind string) []webhook.Notice {
		// A run that went on has more events when it rests again.
		return []webhook.Notice{{Key: kind + "@" + strconv.Itoa(info.Events), Type: kind, At: info.Updated, Data: data}}
	}
	switch info.Status {
	case run.Done:
		return one(webhook.Finished), false, nil
	case run.Failed:
		return one(webhook.Failed), false, nil
	case run.Canceled:
		return one(webhook.Canceled), false, nil
	}
	waiting, err := h.store.Pending(ctx, id)
	if err != nil {
		return nil, true, err
	}
	for _, p := range waiting {
		data.Question = &p
		if data.AnswerURL, err = h.link(id, p); err != nil {
			return nil, true, err
		}
		all = append(all, webhook.Notice{Key: "question " + p.ID + "@" + strconv.FormatInt(p.Asked.UnixNano(), 10), Type: webhook.Question, At: p.Asked, Data: data})
	}
	if len(waiting) == 0 {
		all = one(webhook.Suspended)
	}
	return all, true, nil
}

// link returns the address at which a question can be answered.
func (h *host) link(id string, p run.Pending) (string, error) {
	expires := p.Asked.Add(linkTime)
	if !p.Deadline.IsZero() && p.Deadline.Before(expires) {
		expires = p.Deadline
	}
	token, err := h.links.Token(webhook.Link{Run: id, Question: p.ID, Asked: p.Asked.UnixNano(), Expires: expires})
	return h.address + "/answer/" + token, err
}
