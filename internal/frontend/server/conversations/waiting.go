package conversations

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// waiting are the turns of sessions that may wait for answers: the ones on record when the first session is used,
// and the ones that this server has suspended since. The zero waiting has not looked at the record.
type waiting struct {
	mu   sync.Mutex
	runs map[session.ID][]string // ids of runs, in their order; nil before the record was read
}

// add notes that a turn of a session may wait for an answer.
func (w *waiting) add(id session.ID, of string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs != nil && of != "" { // else it is found on record
		w.runs[id] = append(w.runs[id], of)
	}
}

// take returns the turns of a session that may wait, which are not returned again.
func (w *waiting) take(ctx context.Context, store run.Store, id session.ID) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		found, err := unfinished(ctx, store)
		if err != nil {
			return nil, err
		}
		w.runs = found
	}
	taken := w.runs[id]
	delete(w.runs, id)
	return taken, nil
}

// unfinished returns the turns on record that wait, or may come to, by their sessions.
func unfinished(ctx context.Context, store run.Store) (map[session.ID][]string, error) {
	infos, err := store.Runs(ctx, run.Query{Unfinished: true})
	if err != nil {
		return nil, err
	}
	found := make(map[session.ID][]string)
	for _, info := range slices.Backward(infos) { // newest first
		if info.Kind == run.GraphRun || info.Status.Over() || info.Damaged {
			continue
		}
		whole, err := store.Info(ctx, info.ID)
		if fault.CodeOf(err) == fault.NotFound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if id := conversation.SessionOf(whole); id != "" {
			found[id] = append(found[id], info.ID)
		}
	}
	return found, nil
}

// warnOfQuestions says in an answer which questions of a session's earlier turns still wait: the turn continues
// without them, as it does on the command line. Each is named once, to the first turn after it.
func (s *service) warnOfQuestions(ctx context.Context, id session.ID, events event.Scope) error {
	store := s.Manager.Store()
	waiting, err := s.waiting.take(ctx, store, id)
	if err != nil {
		return err
	}
	for _, of := range waiting {
		info, err := store.Info(ctx, of)
		if fault.CodeOf(err) == fault.NotFound || err == nil && info.Status.Over() {
			continue
		}
		var questions []run.Pending
		if err == nil {
			questions, err = store.Pending(ctx, of)
		}
		if err != nil {
			return err
		}
		if len(questions) == 0 || info.Active { // it may ask again
			s.waiting.add(id, of)
			continue
		}
		for _, q := range questions {
			err := events.Emit(ctx, event.Warning{Text: fmt.Sprintf(
				"question %s of run %s still waits for an answer (%s). This turn continues without it. An answer is put after what is said since: POST /v1/runs/%s/answers?force=true",
				q.ID, of, text.OneLine(q.Text, 200), of)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
