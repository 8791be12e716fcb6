//go:build unix

package conversation_test

import (
	"testing"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/base/process"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// TestJobsEnd checks that jobs outlive a question, and end with what is left: the conversation, its session, the agent.
func TestJobsEnd(t *testing.T) {
	t.Parallel()
	r := remembers(t, "one", "two")
	r.service.Jobs = &job.Options{Jobs: config.Jobs{Max: 2, MaxAge: time.Hour, LogBytes: 1 << 20}, Dir: t.TempDir()}
	r.Conversation = r.begin()
	start := func() {
		t.Helper()
		sleep := process.Command{Path: "sleep", Args: []string{"600"}, Env: []string{"PATH=/bin:/usr/bin"}}
		if _, err := r.Jobs().Start(t.Context(), tool.Call{}, builtin.Job{Text: "sleep 600", Program: sleep}); err != nil {
			t.Fatal(err)
		}
	}
	start()
	r.tell("first")
	if all := r.Jobs().All(); len(all) != 1 || all[0].Status != job.Running {
		t.Fatalf("after a question there are %+v", all)
	}
	for _, step := range []struct {
		name, reason string
		leave        func() error
	}{
		{"a new conversation", "the session ended", func() error { return r.Renew(t.Context()) }},
		{"a new conversation without a session", "a new conversation began", func() error { return r.Renew(t.Context()) }},
		{"an agent", "the agent ended", func() error {
			if err := r.UseAgent(t.Context(), conversation.Agent{Scope: "trip"}); err != nil {
				return err
			}
			start()
			return r.ExitAgent(t.Context())
		}},
		{"the end", "the conversation ended", func() error { return r.Close(t.Context()) }},
	} {
		if len(r.Jobs().All()) == 0 && step.name != "an agent" {
			start()
		}
		before := len(eventtest.Bodies[event.JobEnded](r.events))
		if err := step.leave(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		ended := eventtest.Bodies[event.JobEnded](r.events)[before:]
		if len(ended) != 1 || ended[0].Reason != step.reason || len(r.Jobs().All()) != 0 {
			t.Errorf("%s: ended are %+v", step.name, ended)
		}
	}
}
