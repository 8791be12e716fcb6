package conversation_test

import (
	"context"
	"testing"
	"time"

	"loki/internal/chat"
	"loki/internal/conversation"
	"loki/internal/engine"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/provider"
	"loki/internal/run"
	"loki/internal/run/memstore"
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
