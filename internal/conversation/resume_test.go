package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	sessionstore "loki/internal/conversation/session/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// lasting is a store that stays open: it stands for a file.
type lasting struct{ run.Store }

func (lasting) Close() error { return nil }

// recorded returns a service whose questions are recorded, and what goes on with them. Its model
// gives these replies.
func recorded(t *testing.T, replies ...any) (*conversation.Service, *run.Service) {
	t.Helper()
	e, err := engine.New(engine.Options{Models: &script{replies}})
	if err != nil {
		t.Fatal(err)
	}
	store := lasting{memstore.New(nil)}
	talks := &conversation.Service{Engine: e, Settings: chat.Settings{Model: "test:script"}, Durability: graph.DurabilityProcess}
	talks.Runs = &run.Service{
		Open: func(graph.Durability) (run.Store, error) { return store, nil },
		Recall: func(ctx context.Context, i run.Info, _ run.Checkpoint, k run.Continuation) (run.Job, error) {
			return talks.Recall(ctx, i, k, nil)
		},
	}
	return talks, talks.Runs
}

// TestQuestionWaitsForItsProvider: where a provider asks to come back much later, a question on
// record is suspended, and asked again when it goes on.
func TestQuestionWaitsForItsProvider(t *testing.T) {
	talks, runs := recorded(t, &provider.Error{Kind: provider.RateLimited, Msg: "busy", RetryAfter: time.Hour}, "Drava")
	_, err := talks.Begin(conversation.Options{}).Ask(t.Context(), question("Name a river."))
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatalf("error %v with code %s", err, fault.CodeOf(err))
	}
	out, err := runs.Resume(t.Context(), run.Resumption{})
	if err != nil || out.Output != "Drava" || !out.Recorded {
		t.Errorf("outcome %+v, %v", out, err)
	}
}

// TestQuestionsOfAList are not recorded, whatever the durability.
func TestQuestionsOfAList(t *testing.T) {
	talks, runs := recorded(t, "Drava")
	if _, err := talks.Begin(conversation.Options{Unrecorded: true}).Ask(t.Context(), question("Name a river.")); err != nil {
		t.Fatal(err)
	}
	store, err := runs.Open(graph.DurabilityProcess)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := store.Runs(t.Context(), run.Query{}); err != nil || len(list) > 0 {
		t.Errorf("on record are %+v, %v", list, err)
	}
}

// TestPlaceOfAQuestion suspends a question in a session in which all answers are the same, changes the session or not, and
// resumes the question.
func TestPlaceOfAQuestion(t *testing.T) {
	busy := &provider.Error{Kind: provider.RateLimited, Msg: "busy", RetryAfter: time.Hour}
	for name, tt := range map[string]struct {
		replies []any // after the first answer and the suspension
		change  func(t *testing.T, talk *session.Session, turn string) error
		refused bool
		output  string
		texts   string
	}{
		"unchanged": {replies: []any{"ok"}, output: "ok", texts: "one ok two ok"},
		"continued": {
			change: func(t *testing.T, talk *session.Session, _ string) error {
				return talk.Append(t.Context(), session.Turn{User: chat.Text(chat.User, "three"), Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}})
			},
			refused: true, texts: "one ok three ok",
		},
		"continued_and_undone": {
			change: func(t *testing.T, talk *session.Session, _ string) error {
				err := talk.Append(t.Context(), session.Turn{User: chat.Text(chat.User, "three"), Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}})
				_, undoErr := talk.Undo(t.Context())
				return errors.Join(err, undoErr)
			},
			refused: true, texts: "one ok",
		},
		"cleared": {
			change:  func(t *testing.T, talk *session.Session, _ string) error { return talk.Clear(t.Context()) },
			refused: true,
		},
		"answered": { // the process died before the end of the run
			change: func(t *testing.T, talk *session.Session, turn string) error {
				return talk.Append(t.Context(), session.Turn{ID: turn, User: chat.Text(chat.User, "two"), Reply: []chat.Message{chat.Text(chat.Assistant, "kept")}})
			},
			output: "kept", texts: "one ok two kept",
		},
	} {
		t.Run(name, func(t *testing.T) {
			talks, runs := recorded(t, append([]any{"ok", busy}, tt.replies...)...)
			sessions := sessionstore.New(session.Options{})
			talks.Sessions = func() (session.Store, error) { return sessions, nil }
			talks.InputLimit = func(string) int { return 0 }
			talks.Compression = conversation.Compression{Threshold: new(0)}
			c := talks.Begin(conversation.Options{})
			if err := c.UseSession(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Ask(t.Context(), question("one")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Ask(t.Context(), question("two")); fault.CodeOf(err) != fault.Suspended {
				t.Fatal(err)
			}
			talk := c.Session()
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				if err := tt.change(t, talk, turnOnRecord(t, runs)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := runs.Resume(t.Context(), run.Resumption{})
			if refused := fault.CodeOf(err) == fault.Config; refused != tt.refused || !refused && err != nil || out.Output != tt.output {
				t.Errorf("output %q, %v", out.Output, err)
			}
			var texts []string
			for _, m := range talk.Messages() {
				texts = append(texts, m.Text())
			}
			if got := strings.Join(texts, " "); got != tt.texts {
				t.Errorf("the session has %q, want %q", got, tt.texts)
			}
		})
	}
}

// turnOnRecord returns the id of the turn of the run that is not over.
func turnOnRecord(t *testing.T, runs *run.Service) string {
	t.Helper()
	store, err := runs.Open(graph.DurabilityProcess)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.Runs(t.Context(), run.Query{Unfinished: true})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	h, err := store.History(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var q struct{ Session struct{ Turn string } }
	if err := json.Unmarshal(h.Info.Question, &q); err != nil || q.Session.Turn == "" {
		t.Fatalf("%s: %v", h.Info.Question, err)
	}
	return q.Session.Turn
}
