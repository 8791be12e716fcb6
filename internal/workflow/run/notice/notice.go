// Package notice makes the notices of webhooks of what is on record of a run.
package notice

import (
	"context"
	"io/fs"
	"strconv"
	"time"

	"loki/internal/base/fault"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/webhook"
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

// Source has the notices of the runs of a server.
type Source struct {
	Store   run.Store
	Links   *webhook.Links // to questions
	Address string         // of the server for users, a URL without a path; "" for no links
}

// Notices returns what there is to say of a run, and whether there will be more.
func (s Source) Notices(ctx context.Context, id string) (all []webhook.Notice, more bool, err error) {
	info, err := s.Store.Info(ctx, id)
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
	waiting, err := s.Store.Pending(ctx, id)
	if err != nil {
		return nil, true, err
	}
	for _, p := range waiting {
		data.Question = &p
		if data.AnswerURL, err = s.Link(id, p); err != nil {
			return nil, true, err
		}
		all = append(all, webhook.Notice{Key: "question " + p.ID + "@" + strconv.FormatInt(p.Asked.UnixNano(), 10), Type: webhook.Question, At: p.Asked, Data: data})
	}
	if len(waiting) == 0 {
		all = one(webhook.Suspended)
	}
	return all, true, nil
}

// Link returns the address at which a question can be answered, "" if there is none.
func (s Source) Link(id string, p run.Pending) (string, error) {
	if s.Address == "" {
		return "", nil
	}
	expires := p.Asked.Add(linkTime)
	if !p.Deadline.IsZero() && p.Deadline.Before(expires) {
		expires = p.Deadline
	}
	token, err := s.Links.Token(webhook.Link{Run: id, Question: p.ID, Asked: p.Asked.UnixNano(), Expires: expires})
	return s.Address + "/answer/" + token, err
}
