//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// workerPrompt is what a worker asks in the session.
const workerPrompt = "LOKI_TEST_PROMPT"

// sessionName is that of the session of the tests.
const sessionName = "talk"

// askInSession asks a question of the agent in the session.
func askInSession(ctx context.Context, a *app.App, of agent.Agent, runs *run.Service) error {
	conv, err := enterSession(ctx, a, of, runs)
	if err != nil {
		return err
	}
	text := os.Getenv(workerPrompt)
	_, err = conv.Ask(ctx, conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, text), Text: text}})
	return errors.Join(err, conv.Close(ctx))
}

// enterSession returns a conversation with the agent in the session.
func enterSession(ctx context.Context, a *app.App, of agent.Agent, runs *run.Service) (*conversation.Conversation, error) {
	talks := a.Conversations()
	talks.Runs = runs
	conv := talks.Begin(conversation.Options{NoStream: true, Caller: conversation.Caller{Events: a.Events(event.Discard), Asker: ask.Unavailable{}, Yes: true}})
	none := func(context.Context) (map[string]string, error) { return map[string]string{}, nil }
	if err := conv.UseAgent(ctx, a.PlainAgent(of, nil, ask.Unavailable{}, none)); err != nil {
		return nil, err
	}
	return conv, conv.UseSession(ctx, sessionName)
}

// resumeAll resumes what can be resumed, as a server does when it starts. What is refused stays as it is.
func resumeAll(ctx context.Context, a *app.App, runs *run.Service) error {
	store, err := a.OpenRuns()
	if err != nil {
		return err
	}
	list, err := store.Runs(ctx, run.Query{Unfinished: true})
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	for _, info := range slices.Backward(list) {
		if !info.Active {
			_, _ = runs.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: info.ID, NoStream: true, Asker: ask.Unavailable{}}})
		}
	}
	return nil
}

// TestKillSessions kills processes in turns of a session, and those that resume them, where all answers are equal. No question is in
// the session twice, and a turn is not done once the session has continued. LOKI_KILL_TEST=full kills 150 times with each store.
func TestKillSessions(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(t testing.TB) string{"files": nil, "postgres": postgrestest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario{
				files: map[string]string{"agent/config.yaml": "name: p\nmodel: test:m\nglobal_tools: [execute_command]\ncompression_threshold: 0\n"}, agent: "./agent",
				act: func(req killRequest) map[string]any {
					if req.rounds == 0 {
						return calls(effect(len(req.Messages)))
					}
					return says("ok")
				},
			}
			if address != nil {
				s.environ = append(s.environ, "LOKI_STORE="+address(t))
			}
			killSessions(t, newWorld(t, s))
		})
	}
}

func killSessions(t *testing.T, w *world) {
	kills := 8
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		kills = 150
	}
	asked := 0
	turn := func(killAt int) (status, operations int) {
		asked++
		return w.spawn("ask", killAt, 0, workerPrompt+"="+fmt.Sprintf("question %d", asked))
	}
	status, operations := turn(0)
	if status != 0 {
		t.Fatalf("an undisturbed turn: exit status %d", status)
	}
	whole := []string{"question 1"}
	rnd := rand.New(rand.NewPCG(1, uint64(kills)))
	killed := 0
	for n := 0; killed < kills; n++ {
		if n > 4*kills {
			t.Fatalf("only %d processes were killed", killed)
		}
		if status, _ := turn(1 + rnd.IntN(operations)); status == -1 {
			killed++
		}
		if n%3 == 1 { // the user continues
			if status, _ := turn(0); status != 0 {
				t.Fatalf("a turn after a kill: exit status %d", status)
			}
			whole = append(whole, fmt.Sprintf("question %d", asked))
		}
		if n%3 != 0 {
			if status, _ := w.spawn("resume_all", rnd.IntN(operations), 0); status == -1 {
				killed++
			}
		}
	}
	w.spawn("resume_all", 0, 0)

	a, err := app.New(app.Options{Environ: w.environment()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ref, err := a.Agents.Find(filepath.Join(w.dir, w.agent))
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	conv, err := enterSession(t.Context(), a, of, a.Runs())
	if err != nil {
		t.Fatal(err)
	}
	defer conv.Close(t.Context())
	times, last, twice := make(map[string]int), -1, 0
	for _, m := range conv.Session().Messages() {
		if m.Role != chat.User {
			continue
		}
		if times[m.Text()]++; times[m.Text()] > 1 {
			twice++
			t.Errorf("%s is in the session %d times", m.Text(), times[m.Text()])
		}
		var n int
		if _, err := fmt.Sscanf(m.Text(), "question %d", &n); err != nil || n < last {
			t.Errorf("%s stands after question %d", m.Text(), last)
		}
		last = n
	}
	for _, question := range whole {
		if times[question] != 1 {
			t.Errorf("%s, which was answered, is in the session %d times", question, times[question])
		}
	}
	t.Logf("%d kills, %d questions, %d turns twice, at %s", killed, asked, twice, time.Now().Format(time.TimeOnly))
}
