package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/agent/team"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/tooltest"
	"loki/internal/workflow/graph"
)

// echo returns its prompt.
func echo(_ context.Context, a *agent) (string, error) { return "did " + a.prompt, nil }

// hang works until it is stopped.
func hang(ctx context.Context, _ *agent) (string, error) {
	<-ctx.Done()
	return "half", ctx.Err()
}

// FuzzArguments gives the tools whatever a model may write. Each call ends with JSON for the model.
func FuzzArguments(f *testing.F) {
	r := newRig(agents{"echo": echo})
	for name, seed := range map[string]string{
		"agent__spawn": `{"agent":"echo","prompt":"x","task_id":"task_1"}`, "agent__task_create": `{"subject":"s","blocked_by":["1",2,null,"#3",{}],"agent":"echo","prompt":"x"}`,
		"agent__task_complete": `{"task_id":-1}`, "agent__task_fail": `{"task_id":"99999999999999999999"}`, "agent__collect": `{"id":null}`,
		"agent__send_message": `{"id":"parent","message":1}`, "agent__reply_escalation": `{"escalation_id":[]}`, "agent__check_inbox": `[]`, "agent__list": `x`,
	} {
		f.Add(name, seed)
	}
	f.Fuzz(func(t *testing.T, name, args string) {
		tm, err := r.unrecorded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tm.Root().Close()
		a := newAgent(tm.Root(), "", steps.Steps{})
		for _, call := range []chat.ToolCall{{Name: "agent__task_create", Arguments: `{"subject":"s"}`}, {Name: name, Arguments: args}, {Name: "agent__task_list"}} {
			a.calls++
			text, _, err := a.box.Call(t.Context(), call, a.st.At(fmt.Sprint(a.calls)))
			if err != nil || !json.Valid([]byte(text)) || strings.Contains(text, "panicked") {
				t.Errorf("%s %q: %s, %v", call.Name, call.Arguments, text, err)
			}
		}
	})
}

// wait waits, but not longer than ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// spawn starts an agent, and returns its id.
func (a *agent) spawn(ctx context.Context, name, prompt string) (string, error) {
	r, err := a.get(ctx, "agent__spawn", object{"agent": name, "prompt": prompt})
	if err == nil && r.Status != "ok" {
		err = errors.New(r.Message + r.Error)
	}
	return r.ID, err
}

// collect takes a result.
func (a *agent) collect(ctx context.Context, id string) (result, error) {
	return a.get(ctx, "agent__collect", object{"id": id})
}

var anyID = regexp.MustCompile(`(agent_[a-z]+|esc)_[0-9a-f]{8}`)

// TestResultsOfCalls shows what models read. Each id is the number of its first appearance.
func TestResultsOfCalls(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"echo": echo, "fail": func(context.Context, *agent) (string, error) {
		return "half", fmt.Errorf("reading: %w", errors.New(`no "file"`))
	}})
	r.limits.MaxConcurrent = 9
	r.o.Available = func(context.Context) ([]team.Candidate, error) {
		return []team.Candidate{{"echo", "repeats"}, {"fail", ""}}, nil
	}
	var ids []string
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		for _, tt := range []struct{ tool, args, want string }{
			{"list_available", `{}`, `{"agents":[{"name":"echo","description":"repeats"},{"name":"fail"}]}`},
			{"spawn", `{"agent":"echo","prompt":"a"}`, `{"status":"ok","id":"0","agent":"echo","message":"The agent works in the background. Take its result with agent__collect and the id \"0\", which waits for it; agent__check does not wait."}`},
			{"collect", `{"id":"0"}`, `{"status":"completed","id":"0","agent":"echo","exit_status":"Completed","outcome":"done","output":"did a"}`},
			{"collect", `{"id":"0"}`, `{"status":"error","message":"You have no agent with the id \"0\": none is running, and all results were taken."}`},
			{"spawn", `{"agent":"fail","prompt":"a"}`, ``},
			{"collect", `{"id":"1"}`, `{"status":"completed","id":"1","agent":"fail","exit_status":"Failed(\"reading: no \\\"file\\\"\")","outcome":"failed","output":"half"}`},
			{"spawn", `{"agent":"nobody","prompt":"a"}`, `{"tool_call_error":"agent \"nobody\": no agent is called that"}`},
			{"spawn", `{"agent":"echo"}`, `{"tool_call_error":"argument \"prompt\" is missing or empty"}`},
			{"spawn", `{"agent":"echo","prompt":"a","task_id":"3"}`, `{"status":"error","message":"There is no task \"3\" in your queue, so no agent was started."}`},
			{"check", `{}`, `{"tool_call_error":"argument \"id\" is missing or empty"}`},
			{"cancel", `{"id":"x"}`, `{"status":"error","message":"You have no agent with the id \"x\": none is running, and all results were taken."}`},
			{"list", `{}`, `{"active_count":0,"max_concurrent":9,"agents":[]}`},
			{"check_inbox", `{}`, `{"messages":[],"count":0}`},
			{"send_message", `{"id":"x","message":"hi"}`, `{"status":"error","message":"There is no agent with the id \"x\" that you can reach. It may have finished already."}`},
			{"reply_escalation", `{"escalation_id":"x","reply":"y"}`, `{"status":"error","message":"No question with the id \"x\" waits for an answer: it was answered, or its time is over. Waiting: none."}`},
			{"task_list", `{}`, `{"tasks":[]}`},
			{"task_create", `{"subject":"first"}`, `{"status":"ok","task_id":"1"}`},
			{"task_create", `{"subject":"second","description":"d","blocked_by":["1"],"agent":"echo","prompt":"p"}`, `{"status":"ok","task_id":"2","auto_dispatch":true}`},
			{"task_create", `{"subject":"third","blocked_by":["task_1",1,"9","3"]}`, `{"status":"ok","task_id":"3","warnings":["there is no task \"9\", so task 3 does not wait for it","task 3 cannot wait for itself"]}`},
			{"task_create", `{"subject":"fourth","agent":"echo"}`, `{"tool_call_error":"argument \"prompt\" is missing or empty, and the agent needs it"}`},
			{"task_create", `{"subject":"fourth","agent":"nobody","prompt":"p"}`, `{"status":"ok","task_id":"4","auto_dispatch":true,"auto_dispatched":[{"status":"error","agent":"nobody","message":"agent \"nobody\": no agent is called that"}]}`},
			{"spawn", `{"agent":"echo","prompt":"a","task_id":"2"}`, `{"status":"error","message":"Task 2 is blocked by 1, so no agent was started."}`},
			{"task_list", `{}`, `{"tasks":[{"id":"1","subject":"first","status":"pending","owner":null,"blocked_by":[],"blocks":["2","3"],"agent":null,"prompt":null},` +
				`{"id":"2","subject":"second","status":"blocked","owner":null,"blocked_by":["1"],"blocks":[],"agent":"echo","prompt":"p"},` +
				`{"id":"3","subject":"third","status":"blocked","owner":null,"blocked_by":["1"],"blocks":[],"agent":null,"prompt":null},` +
				`{"id":"4","subject":"fourth","status":"in_progress","owner":"auto:nobody","blocked_by":[],"blocks":[],"agent":"nobody","prompt":"p"}]}`},
			{"task_fail", `{"task_id":"1"}`, `{"status":"ok","task_id":"1","blocked_dependents":["2","3"],"message":"2 tasks that wait for it stay blocked."}`},
			{"task_fail", `{"task_id":"8"}`, `{"status":"error","message":"There is no task \"8\" in your queue."}`},
			{"task_create", `{"subject":"fifth","blocked_by":[1]}`, `{"status":"ok","task_id":"5","warnings":["task 1 has failed, so task 5 stays blocked until it is completed after all"]}`},
			{"task_complete", `{"task_id":"1"}`, `{"status":"ok","task_id":"1","newly_runnable":[{"id":"2","subject":"second","description":"d","agent":"echo"},{"id":"3","subject":"third","description":"","agent":""},` +
				`{"id":"5","subject":"fifth","description":"","agent":""}],"auto_dispatched":[{"status":"ok","id":"2","agent":"echo","message":"The agent works in the background. Take its result with agent__collect and the id \"2\", which waits for it; agent__check does not wait."}]}`},
			{"task_complete", `{"task_id":9}`, `{"status":"ok","task_id":"9","newly_runnable":[]}`},
			{"task_create", `{"subject":"sixth","blocked_by":"[\"1\"]","agent":"echo","prompt":"p"}`, ``}, // task 1 is completed
			{"spawn", `{"agent":"echo","prompt":"a","task_id":"3"}`, ``},
			{"task_list", `{}`, ``},
		} {
			args := tt.args
			for i, id := range ids {
				args = strings.ReplaceAll(args, fmt.Sprintf(`"id":"%d"`, i), fmt.Sprintf(`"id":"%s"`, id))
			}
			a.calls++
			got, _, err := a.box.Call(ctx, chat.ToolCall{Name: "agent__" + tt.tool, Arguments: args}, a.st.At(fmt.Sprintf("tool/%d/1", a.calls)))
			if err != nil {
				return "", err
			}
			got = anyID.ReplaceAllStringFunc(got, func(id string) string {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
				return fmt.Sprint(slices.Index(ids, id))
			})
			if tt.want != "" && got != tt.want {
				t.Errorf("%s %s\n got %s\nwant %s", tt.tool, args, got, tt.want)
			}
		}
		list, err := a.get(ctx, "agent__task_list", object{})
		if len(list.Tasks) != 6 || list.Tasks[5].Status != "in_progress" || *list.Tasks[5].Owner != "auto:echo" ||
			list.Tasks[2].Status != "in_progress" || !strings.HasPrefix(*list.Tasks[2].Owner, "agent_echo_") {
			t.Errorf("%+v", list.Tasks)
		}
		return "", err
	})
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	for _, spawns := range []bool{true, false} {
		r := newRig(nil)
		r.limits.CanSpawn = spawns
		tm, err := r.team(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tools := tm.Root().Tools()
		if want := map[bool]int{true: 14, false: 2}[spawns]; len(tools) != want {
			t.Errorf("%d tools, want %d", len(tools), want)
		}
		good := map[string]string{
			"agent__list": `{}`, "agent__list_available": `{}`, "agent__task_list": `{}`, "agent__check_inbox": `{}`,
			"agent__task_create": `{"subject":"s"}`, "agent__task_complete": `{"task_id":"1"}`, "agent__task_fail": `{"task_id":"1"}`,
			"agent__check": `{"id":"x"}`, "agent__collect": `{"id":"x"}`, "agent__cancel": `{"id":"x"}`,
			"agent__spawn": `{"agent":"x","prompt":"y","task_id":"9"}`, "agent__reply_escalation": `{"escalation_id":"x","reply":"y"}`,
			"worktree__merge": `{"id":"x"}`, "agent__send_message": `{"id":"x","message":"y"}`,
		}
		for _, tl := range tools {
			name := tl.Declaration().Name
			t.Run(fmt.Sprintf("%s_%v", name, spawns), func(t *testing.T) {
				tooltest.Run(t, tooltest.Case{Good: []string{good[name]}, New: func(t testing.TB) tool.Tool {
					tm, err := r.unrecorded(context.WithoutCancel(t.Context()))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { tm.Root().Close() })
					for _, other := range tm.Root().Tools() {
						if other.Declaration().Name == name {
							return other
						}
					}
					return nil
				}})
			})
		}
		tm.Root().Close()
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	nested := agentFunc(nil)
	nested = func(ctx context.Context, a *agent) (string, error) {
		id, err := a.spawn(ctx, "nested", "deeper")
		if err != nil {
			return err.Error(), nil
		}
		r, err := a.collect(ctx, id)
		return r.Output, err
	}
	r := newRig(agents{"nested": nested, "hang": hang, "echo": echo})
	r.limits.MaxConcurrent, r.limits.MaxDepth, r.limits.Spawnable = 2, 2, []string{"hang", "nested"}
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		if out, err := nested(ctx, a); err != nil || out != "Agent nested would be at depth 3, and at most 2 is allowed. Do the work yourself." {
			t.Errorf("too deep: %s, %v", out, err)
		}
		if _, err := a.spawn(ctx, "echo", "a"); err == nil || err.Error() != `You may not start agent "echo". You may start: hang, nested.` {
			t.Errorf("not in the list: %v", err)
		}
		var ids []string
		for range 2 {
			id, err := a.spawn(ctx, "hang", "a")
			if err != nil {
				return "", err
			}
			ids = append(ids, id)
		}
		full := "2 of at most 2 agents are running, so agent hang was not started. Collect or cancel one of them, then try again."
		if _, err := a.spawn(ctx, "hang", "a"); err == nil || err.Error() != full {
			t.Errorf("full: %v", err)
		}
		for i := range 2 { // two tasks become runnable, and there is no place for them
			if _, err := a.get(ctx, "agent__task_create", object{"subject": fmt.Sprint(i), "agent": "hang", "prompt": "p"}); err != nil {
				return "", err
			}
		}
		if c, err := a.get(ctx, "agent__cancel", object{"id": ids[0]}); err != nil || c.Message != "Agent hang was stopped." {
			t.Errorf("cancel: %+v %v", c, err)
		}
		if _, err := a.spawn(ctx, "hang", "a"); err != nil {
			t.Errorf("after a cancellation: %v", err)
		}
		return "", nil
	})
	if want := 1 + 1 + 2 + 1; len(r.started) != want {
		t.Errorf("%d children, want %d: %v", len(r.started), want, r.started)
	}
}

// TestDispatchFillsThePlaces completes a task that several wait for, with places for some.
func TestDispatchFillsThePlaces(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"hang": hang})
	r.limits.MaxConcurrent = 2
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		if _, err := a.get(ctx, "agent__task_create", object{"subject": "all"}); err != nil {
			return "", err
		}
		for range 3 {
			if _, err := a.get(ctx, "agent__task_create", object{"subject": "s", "agent": "hang", "prompt": "p", "blocked_by": []string{"1"}}); err != nil {
				return "", err
			}
		}
		done, err := a.get(ctx, "agent__task_complete", object{"task_id": "1"})
		if err != nil || len(done.Dispatched) != 3 {
			t.Fatalf("%+v, %v", done, err)
		}
		if d := done.Dispatched; d[0].Status != "ok" || d[1].Status != "ok" || d[0].ID == d[1].ID || d[2].Status != "error" {
			t.Errorf("%+v", d)
		}
		return "", nil
	})
}

func TestFailuresOfChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(agents{
			"panics": func(context.Context, *agent) (string, error) { panic("oops") },
			"hang":   hang,
			"talks": func(ctx context.Context, a *agent) (string, error) { // does something, but for too long
				for ctx.Err() == nil {
					wait(ctx, 59*time.Second)
					if err := a.m.Events.Emit(ctx, event.Delta{Text: "x"}); err != nil {
						return "", err
					}
				}
				return "", ctx.Err()
			},
			"parent": func(ctx context.Context, a *agent) (string, error) { // its child does something
				wait(ctx, 7*time.Minute)
				id, err := a.spawn(ctx, "talks", "x")
				if err != nil {
					return "", err
				}
				_, err = a.collect(ctx, id)
				return "", err
			},
		})
		r.must(t, func(ctx context.Context, a *agent) (string, error) {
			for _, tt := range []struct {
				agent, exit string
				outcome     team.Status
				after       time.Duration
			}{
				{"panics", `Failed("agent panics panicked (a bug in Loki): oops")`, team.Failed, 0},
				{"hang", `Failed("it did nothing for 10m0s (idle_timeout)")`, team.TimedOut, 10 * time.Minute},
				{"talks", `Failed("it worked longer than 1h0m0s (timeout)")`, team.TimedOut, time.Hour},
				{"parent", `Failed("it worked longer than 1h0m0s (timeout)")`, team.TimedOut, time.Hour},
			} {
				began := time.Now()
				id, err := a.spawn(ctx, tt.agent, "x")
				if err != nil {
					return "", err
				}
				c, err := a.collect(ctx, id)
				if err != nil || c.ExitStatus != tt.exit || c.Outcome != tt.outcome || time.Since(began).Truncate(time.Minute) != tt.after {
					t.Errorf("%s: %+v %v after %v", tt.agent, c, err, time.Since(began))
				}
			}
			return "", nil
		})
		if w := eventtest.Bodies[event.Warning](r.events); len(w) != 1 || !strings.Contains(w[0].Text, "oops\n") || !strings.Contains(w[0].Text, "team_test.go") {
			t.Errorf("warnings %v", w)
		}
	})
}

// TestInterruptedAtAQuestion: a child whose question the user interrupts has not failed, also if it ends before the contexts do; with
// the run, it continues.
func TestInterruptedAtAQuestion(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"asks": func(context.Context, *agent) (string, error) { return "", fmt.Errorf("question: %w", context.Canceled) }})
	_, _, err := r.run(t.Context(), func(ctx context.Context, a *agent) (string, error) {
		_, err := a.m.Run(ctx, "node", "asks", "x")
		return "", err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	again := newRig(agents{"asks": func(context.Context, *agent) (string, error) { return "fine", nil }})
	again.rec = r.rec
	if out, _, err := again.run(t.Context(), func(ctx context.Context, a *agent) (string, error) {
		r, err := a.m.Run(ctx, "node", "asks", "x")
		return r.Output, err
	}); out != "fine" || err != nil {
		t.Errorf("continued with %q, %v", out, err)
	}
}

// withUser adds the tools that ask the user.
func (a *agent) withUser() *agent {
	set, err := tool.NewSet(append(a.m.Tools(), builtin.UserTools(a.m.Asker(), ask.Question{})...)...)
	if err != nil {
		panic(err)
	}
	a.box = tool.NewBox(tool.Options{Tools: set})
	return a
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, tool, args, question, reply, want string }{
		{"ask", "user__ask", `{"question":"Which?","options":["a","b"]}`, "[ask] Which?", "b", `{"answer":"b"}`},
		{"own_words", "user__ask", `{"question":"Which?","options":["a","b"]}`, "[ask] Which?", "neither", `{"answer":"neither"}`},
		{"confirm", "user__confirm", `{"question":"Sure?"}`, "[confirm] Sure?", "Yes", `{"answer":"yes"}`},
		{"input", "user__input", `{"question":"Name?"}`, "[input] Name?", "x", `{"answer":"x"}`},
		{"checkbox", "user__checkbox", `{"question":"Which?","options":["a","b"]}`, "[checkbox] Which?", "a, b", `{"answers":["a","b"]}`},
		{"checkbox_in_words", "user__checkbox", `{"question":"Which?","options":["a","b"]}`, "[checkbox] Which?", "all", `{"answers":["all"]}`},
		{"no_answer", "user__input", `{"question":"Name?"}`, "[input] Name?", "", `{"error":"no answer within 300 seconds","fallback":"Use your own judgment: choose the safest option that lets you continue, and say in your result what you assumed."}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var answer string
				r := newRig(agents{"asks": func(ctx context.Context, a *agent) (string, error) {
					text, _, err := a.withUser().box.Call(ctx, chat.ToolCall{Name: tt.tool, Arguments: tt.args}, a.st.At("tool/1/1"))
					answer = text
					return "", err
				}})
				r.limits.IdleTimeout = time.Minute // questions do not count as idle
				r.must(t, func(ctx context.Context, a *agent) (string, error) {
					id, err := a.spawn(ctx, "asks", "x")
					if err != nil {
						return "", err
					}
					if n := a.m.Notice(ctx); n != "" && len(r.rec.keys("team/")) == 1 {
						t.Errorf("notice %s before a question", n)
					}
					c, err := a.collect(ctx, id)
					if err != nil || c.Status != "pending" || len(c.Pending) != 1 || c.Pending[0].Question != tt.question || c.Pending[0].From != id {
						t.Fatalf("%+v, %v", c, err)
					}
					if n := a.m.Notice(ctx); !strings.Contains(n, c.Pending[0].ID) || !strings.Contains(n, "agent__reply_escalation") {
						t.Errorf("notice %q", n)
					}
					if check, err := a.get(ctx, "agent__check", object{"id": id}); err != nil || len(check.Pending) != 1 {
						t.Errorf("check: %+v, %v", check, err)
					}
					if tt.reply != "" {
						time.Sleep(4 * time.Minute)
						for i, want := range []string{"ok", "error"} {
							if got, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": c.Pending[0].ID, "reply": tt.reply}); err != nil || got.Status != want {
								t.Errorf("reply %d: %+v, %v", i+1, got, err)
							}
						}
					} else {
						time.Sleep(6 * time.Minute)
						if got, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": c.Pending[0].ID, "reply": "late"}); err != nil || got.Status != "error" {
							t.Errorf("late reply: %+v, %v", got, err)
						}
					}
					if c, err = a.collect(ctx, id); err != nil || c.Outcome != team.Done {
						t.Errorf("%+v, %v", c, err)
					}
					if n := a.m.Notice(ctx); n != "" {
						t.Errorf("notice %s", n)
					}
					return "", nil
				})
				if answer != tt.want {
					t.Errorf("got %s, want %s", answer, tt.want)
				}
				ended := eventtest.Bodies[event.EscalationAnswered](r.events)
				if len(ended) != 1 || ended[0].TimedOut != (tt.reply == "") || ended[0].Text != tt.reply {
					t.Errorf("%+v", ended)
				}
			})
		})
	}
}

// TestConsentIsNotEscalated has a child ask for permission, and for a secret.
func TestConsentIsNotEscalated(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"asks": func(ctx context.Context, a *agent) (string, error) {
		for _, q := range []ask.Question{{Kind: ask.Choice, Text: "May I?", Consent: true}, {Kind: ask.Secret, Text: "Password?"}} {
			if _, err := a.m.Asker().Ask(ctx, q); !errors.Is(err, ask.ErrUnavailable) {
				t.Errorf("%q: %v", q.Text, err)
			}
		}
		return "", nil
	}})
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		id, err := a.spawn(ctx, "asks", "x")
		if err != nil {
			return "", err
		}
		_, err = a.collect(ctx, id)
		return "", err
	})
}

// TestGraphAsksTheUser has a root without a model, so that questions of its children go to the
// user.
func TestGraphAsksTheUser(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"asks": func(ctx context.Context, a *agent) (string, error) {
		if said, err := a.call(ctx, "agent__send_message", object{"id": "parent", "message": "hi"}); err != nil || !strings.Contains(said, "by a graph") {
			t.Errorf("%s, %v", said, err)
		}
		return a.m.Asker().Ask(ctx, ask.Question{Kind: ask.Text, Text: "Name?"})
	}})
	r.o.Direct = ask.Func(func(_ context.Context, q ask.Question) (string, error) { return "to " + q.Text, nil })
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		got, err := a.m.Run(ctx, "node", "asks", "x")
		if err != nil || got.Output != "to Name?" || !strings.HasPrefix(got.ID, "graph_agent_asks_") || got.Status != team.Done {
			t.Errorf("%+v, %v", got, err)
		}
		return "", nil
	})
}

func TestMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inboxes := make(map[string]string)
		read := func(ctx context.Context, a *agent, name string) error {
			got, err := a.get(ctx, "agent__check_inbox", object{})
			for _, m := range got.Messages {
				inboxes[name] += fmt.Sprintf("%s: %s; ", strings.SplitN(m.From, "_", 3)[0], m.Payload.Content)
			}
			return err
		}
		sends := func(to string) agentFunc {
			return func(ctx context.Context, a *agent) (string, error) {
				target := to
				if to == "" {
					target = a.prompt
				}
				r, err := a.get(ctx, "agent__send_message", object{"id": target, "message": "from " + a.m.Agent})
				return r.Status, err
			}
		}
		r := newRig(agents{
			"reads": func(ctx context.Context, a *agent) (string, error) {
				time.Sleep(time.Minute)
				return "", errors.Join(read(ctx, a, "reads"), read(ctx, a, "again"))
			},
			"graph":   func(ctx context.Context, _ *agent) (string, error) { wait(ctx, time.Minute); return "", ctx.Err() },
			"sibling": sends(""), "upwards": sends("parent"), "byname": sends("root"), "nowhere": sends("agent_x_12345678"),
		})
		r.must(t, func(ctx context.Context, a *agent) (string, error) {
			reader, err := a.spawn(ctx, "reads", "x")
			if err != nil {
				return "", err
			}
			deaf, err := a.spawn(ctx, "graph", "x")
			if err != nil {
				return "", err
			}
			synctest.Wait()
			if got, err := a.get(ctx, "agent__send_message", object{"id": deaf, "message": "hello"}); err != nil || got.Status != "error" || !strings.Contains(got.Message, "is a graph, which reads no messages") {
				t.Errorf("%+v, %v", got, err)
			}
			var outs []string
			for _, name := range []string{"sibling", "upwards", "byname", "nowhere"} {
				id, err := a.spawn(ctx, name, reader)
				if err != nil {
					return "", err
				}
				c, err := a.collect(ctx, id)
				if err != nil {
					return "", err
				}
				outs = append(outs, c.Output)
			}
			if got := strings.Join(outs, " "); got != "ok ok ok error" {
				t.Error(got)
			}
			if got, err := a.get(ctx, "agent__send_message", object{"id": reader, "message": "from above"}); err != nil || got.Status != "ok" {
				t.Errorf("%+v, %v", got, err)
			}
			time.Sleep(time.Hour)
			if got, err := a.get(ctx, "agent__send_message", object{"id": reader, "message": "late"}); err != nil || got.Status != "ok" || !strings.Contains(got.Message, "has finished") {
				t.Errorf("%+v, %v", got, err)
			}
			return "", read(ctx, a, "root")
		})
		want := map[string]string{"reads": "agent: from sibling; root: from above; ", "root": "agent: from upwards; agent: from byname; "}
		if fmt.Sprint(inboxes) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", inboxes, want)
		}
		if sent := eventtest.Bodies[event.MessageSent](r.events); len(sent) != 5 || sent[0].Text != "from sibling" || sent[1].To != "" {
			t.Errorf("%+v", sent)
		}
	})
}

// TestChildThatWaitsForTheUser suspends the parent, but only once the other children are done.
func TestChildThatWaitsForTheUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := false
		r := newRig(agents{
			"waits": func(context.Context, *agent) (string, error) {
				if !answered {
					return "", fault.New(fault.Suspended, "a question waits")
				}
				return "answered", nil
			},
			"slow": func(ctx context.Context, _ *agent) (string, error) { wait(ctx, time.Minute); return "", ctx.Err() },
		})
		root := func(ctx context.Context, a *agent) (string, error) {
			id, err := a.spawn(ctx, "waits", "x")
			if err != nil {
				return "", err
			}
			if _, err := a.spawn(ctx, "slow", "x"); err != nil {
				return "", err
			}
			synctest.Wait()
			if check, err := a.get(ctx, "agent__check", object{"id": id}); err != nil || check.Status != "pending" || !strings.Contains(check.Message, "waits for the user") {
				t.Errorf("check: %+v, %v", check, err)
			}
			c, err := a.collect(ctx, id)
			return c.Output, err
		}
		began := time.Now()
		if _, _, err := r.run(t.Context(), root); fault.CodeOf(err) != fault.Suspended || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		answered = true
		if out, _ := r.must(t, root); out != "answered" {
			t.Errorf("got %q", out)
		}
		if len(r.started) != 3 { // slow is not started again
			t.Errorf("%v", r.started)
		}
	})
}

// TestBudgets has a child that uses up its own budget, and one that uses up that of the run.
func TestBudgets(t *testing.T) {
	t.Parallel()
	spends := func(ctx context.Context, a *agent) (string, error) {
		settle, err := a.frame.Budget.Reserve(ctx, chat.Usage{InputTokens: 100}, chat.Usage{InputTokens: 100}, true)
		if err == nil {
			settle(chat.Usage{InputTokens: 100})
		}
		return "went on", err
	}
	for _, tt := range []struct {
		name        string
		child, root int
		collected   bool
	}{{"own", 50, 0, true}, {"of_the_run", 0, 50, false}, {"enough", 200, 200, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(agents{"spends": spends})
			r.budget = graph.Budget{Tokens: tt.child}
			r.o.Budget = runBudget(tt.root)
			var got result
			root := func(ctx context.Context, a *agent) (string, error) {
				id, err := a.spawn(ctx, "spends", "x")
				if err == nil {
					got, err = a.collect(ctx, id)
				}
				return "", err
			}
			r.must(t, root)
			r.must(t, func(ctx context.Context, a *agent) (string, error) {
				ran, err := a.m.Run(ctx, "node", "spends", "x")
				if want := map[bool]fault.Code{true: fault.Limit}[tt.name != "enough"]; fault.CodeOf(err) != want || ran.Status != got.Outcome {
					t.Errorf("%+v, %v", ran, err)
				}
				return "", nil
			})
			if want := map[bool]team.Status{true: team.Done, false: team.OutOfBudget}[tt.name == "enough"]; got.Outcome != want {
				t.Errorf("%+v", got)
			}
			// The run goes on with a higher budget.
			r.o.Budget, r.budget = nil, graph.Budget{}
			r.must(t, root)
			if want := map[bool]team.Status{true: team.OutOfBudget, false: team.Done}[tt.name == "own"]; got.Outcome != want {
				t.Errorf("after the resume: %+v", got)
			}
		})
	}
}

// TestCancelReachesTheWholeSubtree starts three levels, and stops them in three ways.
func TestCancelReachesTheWholeSubtree(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"call", "close", "context"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.used = chat.Usage{InputTokens: 10, OutputTokens: 1, CachedInputTokens: 5, ReasoningTokens: 1}
				r.agents = agents{"level": func(ctx context.Context, a *agent) (string, error) {
					if a.m.Depth < 3 {
						for range 2 {
							if _, err := a.spawn(ctx, "level", "x"); err != nil {
								return "", err
							}
						}
					}
					return hang(ctx, a)
				}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tm, err := r.team(ctx)
				if err != nil {
					t.Fatal(err)
				}
				a := newAgent(tm.Root(), "", tm.Root().Steps)
				id, err := a.spawn(ctx, "level", "x")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				switch way {
				case "call":
					if got, err := a.get(ctx, "agent__cancel", object{"id": id}); err != nil || got.Status != "ok" {
						t.Errorf("%+v %v", got, err)
					}
				case "context":
					cancel()
				}
				used := tm.Root().Close()
				if want := (chat.Usage{InputTokens: 70, OutputTokens: 7, CachedInputTokens: 35, ReasoningTokens: 7}); used != want {
					t.Errorf("used %+v, want %+v", used, want)
				}
				if got := tm.Root().Close(); got != (chat.Usage{}) {
					t.Errorf("used again: %+v", got)
				}
				sum := 0 // of the depths that have ended: children end before their parents
				for _, e := range r.events.Events() {
					f, ok := e.Body.(event.Finished)
					if !ok {
						continue
					}
					if f.Outcome != string(team.Canceled) || f.Own != r.used || f.Usage.InputTokens != []int{0, 70, 30, 10}[e.Depth] {
						t.Errorf("%+v", f)
					}
					if sum += e.Depth; e.Depth == 1 && sum != 4*3+2*2+1 {
						t.Errorf("the child ended when %d was the sum", sum)
					}
				}
				if results := r.rec.keys("agents/" + id + "/result"); (len(results) == 1) != (way == "call") {
					t.Errorf("on record: %v", results)
				}
			})
		})
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		length int
		fails  bool
		want   string
	}{{3999, false, ""}, {4000, false, "short"}, {4000, true, ""}, {200_000, true, "bytes left out"}} {
		r := newRig(agents{"long": func(context.Context, *agent) (string, error) {
			return strings.Repeat("é", tt.length/2) + strings.Repeat("x", tt.length%2), nil
		}})
		r.limits.SummarizationModel = "cheap:one"
		r.o.Summarize = func(_ context.Context, s team.Summary) (string, chat.Usage, error) {
			if s.Model != "cheap:one" || s.Agent != "long" || s.Collector.ID != "" || len(s.Output) != tt.length {
				t.Errorf("%+v", s)
			}
			if tt.fails {
				return "", chat.Usage{}, errors.New("not reachable")
			}
			return "short", chat.Usage{InputTokens: 7}, nil
		}
		root := func(ctx context.Context, a *agent) (string, error) {
			id, err := a.spawn(ctx, "long", "x")
			if err != nil {
				return "", err
			}
			c, err := a.collect(ctx, id)
			return c.Output, err
		}
		for run := range 2 {
			out, used := r.must(t, root)
			if len(out) > 70_000 || tt.want == "" && len(out) != tt.length || tt.want != "" && !strings.Contains(out, tt.want) {
				t.Errorf("%+v: %d bytes", tt, len(out))
			}
			if want := map[bool]int{true: 7, false: 0}[tt.want == "short"]; used.InputTokens != want {
				t.Errorf("run %d: used %+v", run+1, used)
			}
		}
	}
}

// TestEventsOfAChild looks at how a child's run opens and closes.
func TestEventsOfAChild(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"outer": func(ctx context.Context, a *agent) (string, error) {
		id, err := a.spawn(ctx, "echo", "inner work")
		if err != nil {
			return "", err
		}
		_, err = a.collect(ctx, id)
		return "out", err
	}, "echo": echo})
	r.used = chat.Usage{InputTokens: 10}
	_, used := r.must(t, func(ctx context.Context, a *agent) (string, error) {
		id, err := a.spawn(ctx, "outer", "work")
		if err != nil {
			return "", err
		}
		_, err = a.collect(ctx, id)
		return "", err
	})
	if used.InputTokens != 20 {
		t.Errorf("used %+v", used)
	}
	var got []string
	for _, e := range r.events.Events() {
		switch b := e.Body.(type) {
		case event.Started:
			got = append(got, fmt.Sprintf("%s/%d started %q below %q", e.Agent, e.Depth, b.Prompt, anyID.ReplaceAllString(b.Parent, "$1")))
		case event.Finished:
			got = append(got, fmt.Sprintf("%s %s %d/%d %s", anyID.ReplaceAllString(e.AgentID, "$1"), b.Outcome, b.Own.InputTokens, b.Usage.InputTokens, b.Output))
		case event.AgentWaits:
			got = append(got, fmt.Sprintf("%s waits for %d", e.Agent, len(b.On)))
		}
	}
	// The root may begin to wait before or after its child begins.
	got = slices.DeleteFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "root waits for 1") || s == "outer waits for 1" || s == "outer waits for 0"
	})
	want := []string{`outer/1 started "work" below ""`, `echo/2 started "inner work" below "agent_outer"`, "agent_echo done 10/10 did inner work", "agent_outer done 10/20 out", "root waits for 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestDepthGoesOn has a root that is itself below others, such as the node of a child's graph.
func TestDepthGoesOn(t *testing.T) {
	t.Parallel()
	tm, err := team.New(t.Context(), team.Options{
		Limits: team.Limits{MaxDepth: 2}, Events: event.NewScope(event.Discard, event.Source{AgentID: "agent_graph_12345678", Depth: 2}, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Root().Close()
	if _, err := tm.Root().Run(t.Context(), "node", "echo", "x"); err == nil || err.Error() != "agent echo would be at depth 3, and at most 2 is allowed" {
		t.Error(err)
	}
}

// TestQuestionOfAnEndedChildIsGone resumes a run in which a grandchild gave up its question and
// ended.
func TestQuestionOfAnEndedChildIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(agents{
			"asks": func(ctx context.Context, a *agent) (string, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := a.m.Asker().Ask(ctx, ask.Question{ID: "1", Kind: ask.Text, Text: "Name?"})
				return "without", fmt.Errorf("gave up: %w", err)
			},
			"lead": func(ctx context.Context, a *agent) (string, error) {
				if _, err := a.spawn(ctx, "asks", "x"); err != nil {
					return "", err
				}
				return hang(ctx, a)
			},
		})
		for life := range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			_, _, err := r.run(ctx, func(ctx context.Context, a *agent) (string, error) {
				if _, err := a.spawn(ctx, "lead", "x"); err != nil {
					return "", err
				}
				synctest.Wait()
				if n := a.m.Notice(ctx); (n != "") != (life == 0) {
					t.Errorf("life %d: notice %q", life, n)
				}
				time.Sleep(time.Minute)
				if n := a.m.Notice(ctx); n != "" {
					t.Errorf("life %d: notice %q later", life, n)
				}
				cancel()
				return "", ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestBudgetCountsWhatIsOnRecord resumes a run whose child used most of the budget.
func TestBudgetCountsWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	for _, collected := range []bool{true, false} {
		r := newRig(agents{"echo": echo})
		r.used = chat.Usage{InputTokens: 100}
		for life := range 2 {
			budget := runBudget(150)
			r.o.Budget = budget
			r.must(t, func(ctx context.Context, a *agent) (string, error) {
				id, err := a.spawn(ctx, "echo", "x")
				if err == nil && collected {
					_, err = a.collect(ctx, id)
				}
				for !collected && len(r.rec.keys("agents/")) == 0 {
					runtime.Gosched() // until its end is on record
				}
				return "", err
			})
			_, err := budget.Reserve(t.Context(), chat.Usage{InputTokens: 100}, chat.Usage{InputTokens: 100}, true)
			if (fault.CodeOf(err) == fault.Limit) != (life == 1) { // in the first life this work does not charge it
				t.Errorf("collected %v, life %d: %v", collected, life, err)
			}
		}
	}
}

// TestQuestionsGoUpwards has an agent in the middle, which sees the questions of its own child and
// not those of others.
func TestQuestionsGoUpwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(agents{
			"asks": func(ctx context.Context, a *agent) (string, error) {
				return a.m.Asker().Ask(ctx, ask.Question{ID: "1", Kind: ask.Text, Text: a.prompt})
			},
			"middle": func(ctx context.Context, a *agent) (string, error) {
				id, err := a.spawn(ctx, "asks", "inner")
				if err != nil {
					return "", err
				}
				time.Sleep(time.Second)
				got, err := a.get(ctx, "agent__check", object{"id": id})
				if err != nil || len(got.Pending) != 1 || got.Pending[0].Question != "[input] inner" {
					t.Errorf("%+v, %v", got, err)
					return "", err
				}
				if n := a.m.Notice(ctx); n != "" {
					t.Errorf("notice %s", n)
				}
				if _, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": got.Pending[0].ID, "reply": "from the middle"}); err != nil {
					return "", err
				}
				got, err = a.collect(ctx, id)
				return got.Output, err
			},
		})
		r.must(t, func(ctx context.Context, a *agent) (string, error) {
			outer, err := a.spawn(ctx, "asks", "outer")
			if err != nil {
				return "", err
			}
			middle, err := a.spawn(ctx, "middle", "x")
			if err != nil {
				return "", err
			}
			time.Sleep(time.Minute) // the question in the middle is over
			got, err := a.collect(ctx, outer)
			if err != nil || len(got.Pending) != 1 || got.Pending[0].Question != "[input] outer" {
				t.Errorf("%+v, %v", got, err)
				return "", err
			}
			if _, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": got.Pending[0].ID, "reply": "from the top"}); err != nil {
				return "", err
			}
			for id, want := range map[string]string{outer: "from the top", middle: "from the middle"} {
				if got, err := a.collect(ctx, id); err != nil || got.Output != want {
					t.Errorf("%+v, %v", got, err)
				}
			}
			return "", nil
		})
	})
}

// TestDamagedRecord has a child whose record cannot be read.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	r := newRig(agents{"echo": echo})
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		r.rec.damaged = "agents/agent_echo_2ff7f3fb/result"
		id, err := a.spawn(ctx, "echo", "x")
		if err != nil || !strings.Contains(r.rec.damaged, id) {
			t.Fatalf("%s, %v", id, err)
		}
		got, err := a.collect(ctx, id)
		if err != nil || got.Outcome != team.Failed || !strings.Contains(got.ExitStatus, stepstest.ErrDied.Error()) {
			t.Errorf("%+v, %v", got, err)
		}
		return "", nil
	})
}

// TestChildThatCannotBePrepared resumes a run while the agent of a child is missing. The child has not
// failed for good: it goes on when the agent is there again.
func TestChildThatCannotBePrepared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		for life, does := range []agentFunc{hang, nil, echo} {
			r.agents = agents{"worker": does}
			ctx, cancel := context.WithCancel(t.Context())
			_, _, err := r.run(ctx, func(ctx context.Context, a *agent) (string, error) {
				id, err := a.spawn(ctx, "worker", "x")
				if err != nil {
					return "", err
				}
				time.Sleep(time.Minute)
				if results := r.rec.results(); (len(results) == 1) != (life == 2) {
					t.Errorf("life %d: on record are %v", life, results)
				}
				if life < 2 {
					cancel()
					return "", ctx.Err()
				}
				got, err := a.collect(ctx, id)
				if got.Outcome != team.Done || got.Output != "did x" {
					t.Errorf("%+v", got)
				}
				return "", err
			})
			cancel()
			if life < 2 != errors.Is(err, context.Canceled) {
				t.Errorf("life %d: %v", life, err)
			}
		}
	})
}

// TestPolledTools names the tools that models call again and again while they wait.
func TestPolledTools(t *testing.T) {
	t.Parallel()
	r := newRig(nil)
	r.must(t, func(_ context.Context, a *agent) (string, error) {
		var polled []string
		for _, one := range a.m.Tools() {
			if a.box.Instead(one.Declaration().Name) != "" {
				polled = append(polled, one.Declaration().Name)
			}
		}
		slices.Sort(polled)
		if want := []string{"agent__check", "agent__check_inbox", "agent__list", "agent__task_list"}; !slices.Equal(polled, want) {
			t.Errorf("%v, want %v", polled, want)
		}
		return "", nil
	})
}

// TestTimeThatWasLeft interrupts a run and lets it go on a day later: by a cancellation, which puts
// the time on record, and by a death, which leaves what was put on record each minute.
func TestTimeThatWasLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		died   bool
		worked time.Duration // until the interruption
		left   time.Duration
	}{
		{"canceled", false, 40*time.Minute + 20*time.Second, 19*time.Minute + 40*time.Second},
		{"died", true, 40*time.Minute + 20*time.Second, 20 * time.Minute},
		{"died_at_once", true, 20 * time.Second, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(agents{"hang": hang})
				r.limits.IdleTimeout = 0
				root := func(ctx context.Context, a *agent) (string, error) {
					id, err := a.spawn(ctx, "hang", "x")
					if err != nil {
						return "", err
					}
					c, err := a.collect(ctx, id)
					return c.ExitStatus, err
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.worked)
				defer cancel()
				record := make(chan *recorder, 1)
				first := r.rec
				time.AfterFunc(tt.worked-time.Second, func() { record <- first.until(len(first.keys(""))) })
				if _, _, err := r.run(ctx, root); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if tt.died {
					r.rec = <-record
				}
				time.Sleep(24 * time.Hour)
				began := time.Now()
				out, _ := r.must(t, root)
				if want := `Failed("it worked longer than 1h0m0s (timeout)")`; out != want || time.Since(began) != tt.left {
					t.Errorf("%s after %s, want %s", out, time.Since(began), tt.left)
				}
			})
		})
	}
}

// TestTimeThatWasLeftForAnAnswer is the same for a question of a child.
func TestTimeThatWasLeftForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(agents{"asks": func(ctx context.Context, a *agent) (string, error) {
			wait(ctx, 10*time.Second)
			text, _, err := a.withUser().box.Call(ctx, chat.ToolCall{Name: "user__input", Arguments: `{"question":"Which?"}`}, a.st.At("tool/1/1"))
			return text, err
		}})
		root := func(ctx context.Context, a *agent) (string, error) {
			if _, err := a.spawn(ctx, "asks", "x"); err != nil {
				return "", err
			}
			wait(ctx, 10*time.Minute)
			return "", ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if _, _, err := r.run(ctx, root); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		began := time.Now()
		r.must(t, root)
		for _, e := range r.events.Events() {
			if a, ok := e.Body.(event.EscalationAnswered); ok {
				// 10 s before the question comes again, and 300 s in all of which 170 had passed
				if got := e.Time.Sub(began); !a.TimedOut || got != 130*time.Second {
					t.Errorf("%+v after %s", a, got)
				}
				return
			}
		}
		t.Error("the question has no end")
	})
}
