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
	mu     sync.Mutex
	runs   map[session.ID][]string // ids of runs, in their order; nil before the record was read
	warned map[string]bool         // runs whose questions a later turn was warned of
}

// add notes that a turn of a session may wait for an answer.
func (w *waiting) add(id session.ID, of string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs != nil && of != "" { // else it is found on record
		w.runs[id] = append(w.runs[id], of)
	}
}

// of returns the turns of a session that may wait.
func (w *waiting) of(ctx context.Context, store run.Store, id session.ID) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		found, err := conversation.Unfinished(ctx, store)
		if err != nil {
			return nil, err
		}
		w.runs, w.warned = found, make(map[string]bool)
	}
	return slices.Clone(w.runs[id]), nil
}

// over notes that a turn of a session does not wait any more.
func (w *waiting) over(id session.ID, of string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[id] = slices.DeleteFunc(w.runs[id], func(other string) bool { return other == of })
	if len(w.runs[id]) == 0 {
		delete(w.runs, id)
	}
	delete(w.warned, of)
}

// warn reports whether a run's questions are yet to be warned of, and notes that they are.
func (w *waiting) warn(of string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.warned[of]
	w.warned[of] = true
	return first
}

// waitingTurn is a turn of a session that waits for answers, unless it is about to ask again.
type waitingTurn struct {
	info      run.Info
	questions []run.Pending
}

// waitingTurns returns the turns of a session that wait for answers now, oldest first.
func (s *service) waitingTurns(ctx context.Context, id session.ID) ([]waitingTurn, error) {
	store := s.Manager.Store()
	ids, err := s.waiting.of(ctx, store, id)
	if err != nil {
		return nil, err
	}
	var turns []waitingTurn
	for _, of := range ids {
		info, err := store.Info(ctx, of)
		if fault.CodeOf(err) == fault.NotFound || err == nil && info.Status.Over() {
			s.waiting.over(id, of)
			continue
		}
		var questions []run.Pending
		if err == nil {
			questions, err = store.Pending(ctx, of)
		}
		if err != nil {
			return nil, err
		}
		if len(questions) > 0 && !info.Active { // else it may ask again
			turns = append(turns, waitingTurn{info, questions})
		}
	}
	return turns, nil
}

// atWork returns the run that is at work in a session, here or at another server; "" if none is.
func (s *service) atWork(ctx context.Context, id session.ID) (string, error) {
	store := s.Manager.Store()
	var ids []string
	for _, a := range s.Manager.Active() {
		ids = append(ids, a.ID)
	}
	if _, shared := store.(run.Shared); shared {
		found, err := conversation.Unfinished(ctx, store)
		if err != nil {
			return "", err
		}
		ids = append(ids, found[id]...)
	}
	for _, of := range ids {
		info, err := store.Info(ctx, of)
		if err == nil && info.Active && conversation.SessionOf(info) == id {
			return of, nil
		}
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return "", err
		}
	}
	return "", nil
}

// warnOfQuestions says in an answer which questions of a session's earlier turns still wait: the turn continues
// without them, as it does on the command line. Each is named once, to the first turn after it.
func (s *service) warnOfQuestions(ctx context.Context, id session.ID, events event.Scope) error {
	turns, err := s.waitingTurns(ctx, id)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if !s.waiting.warn(turn.info.ID) {
			continue
		}
		for _, q := range turn.questions {
			err := events.Emit(ctx, event.Warning{Text: fmt.Sprintf(
				"question %s of run %s still waits for an answer (%s). This turn continues without it. An answer is put after what is said since: POST /v1/runs/%s/answers?force=true",
				q.ID, turn.info.ID, text.OneLine(q.Text, 200), turn.info.ID)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
