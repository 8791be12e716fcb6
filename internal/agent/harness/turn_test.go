package harness_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/agent/harness"
	"loki/internal/agent/harness/harnesstest"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

func TestMain(m *testing.M) {
	if os.Getenv("FOREIGN_SCRIPT") != "" {
		harnesstest.Main()
		return
	}
	os.Exit(m.Run())
}

// program returns the scripted program, without a sandbox, and what it is asked with. The user consents to everything.
func program(t *testing.T, script, can string) (*harness.Program, harness.Asked) {
	t.Helper()
	dir, state := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "script"), []byte(strings.ReplaceAll(script, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &harness.Program{
		Setting: &harness.Setting{Name: "scripted", Command: []string{"scripted"}}, Agent: "worker", Dir: dir, Path: exe,
		Env:     append(os.Environ(), "FOREIGN_SCRIPT="+filepath.Join(state, "script"), "FOREIGN_STATE="+state, "FOREIGN_CAN="+can),
		Sandbox: sandbox.New(sandbox.Options{Settings: sandbox.Settings{Disabled: true}, Workspace: dir}),
	}
	box := func(tools ...tool.Tool) *tool.Box {
		set, err := tool.NewSet(tools...)
		if err != nil {
			t.Fatal(err)
		}
		return tool.NewBox(tool.Options{Tools: set, AutoConfirm: true, MaxOutput: 1 << 20})
	}
	served := builtin.Tools(builtin.Options{Dir: dir})
	return p, harness.Asked{
		User: chat.Text(chat.User, "go"), Judge: box(p.JudgedTools()...), Work: box(served...), Allowed: box(served...), Tools: box(served...),
		Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) { return q.Options[0], nil }),
	}
}

// record collects events.
func record() (event.Scope, func(kind string) int) {
	var mu sync.Mutex
	seen := make(map[string]int)
	emit := event.Func(func(_ context.Context, ev event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		seen[ev.Body.Type()]++
		return nil
	})
	return event.NewScope(emit, event.Source{}, nil), func(kind string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[kind]
	}
}

// TestTurn has the program do everything that it can.
func TestTurn(t *testing.T) {
	t.Parallel()
	p, a := program(t, strings.Join([]string{
		"think hm", "plan look", `tool read {"path": "x"}`, `ask edit {"path": "DIR/a"}`, "fswrite DIR/a text", "fsread DIR/a",
		`ask execute {"command": "echo run; exit 2"}`, "term echo run; exit 2",
		`elicit {"type": "object", "properties": {"sure": {"type": "boolean"}, "size": {"type": "string", "enum": ["s", "m"]}}}`,
		`mcp fs_cat {"path": "a"}`, "cost 0.5", "cost 0.75", "say done",
	}, "\n"), "http")
	events, count := record()
	answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"selected yes", "/a: ok", "/a: text ok", "term echo run; exit 2: 2 run ok", `elicit: accept {"size":"s","sure":true} ok`, `{\"output\":\"text\"}`, "done",
	} {
		if !strings.Contains(answer.Text, want) {
			t.Errorf("the answer lacks %q:\n%s", want, answer.Text)
		}
	}
	if answer.Usage.Cost != 0.75 || answer.Usage.CostUnknown || answer.Session.ID == "" || answer.Session.Cost != 0.75 {
		t.Errorf("%+v %+v", answer.Usage, answer.Session)
	}
	for kind, want := range map[string]int{"tool_call": 3, "tool_result": 1, "todo_updated": 1, "reasoning": 1} {
		if got := count(kind); got != want {
			t.Errorf("%d events %s, want %d", got, kind, want)
		}
	}
}

// TestOldProgram: a turn that fails in an old program says how old it is, and how to update it.
func TestOldProgram(t *testing.T) {
	t.Parallel()
	for can, want := range map[string]string{
		"old": "scripted 0.49.0 is older than 0.101.0, with which it was tested; update it: npm install -g scripted@0.101.0",
		"":    "",
	} {
		p, a := program(t, "exit 3", can)
		p.Install, p.Tested = "npm install -g scripted", "0.101.0"
		events, _ := record()
		if _, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a); fault.CodeOf(err) != fault.Tool || fault.HintOf(err) != want {
			t.Errorf("%q: %v, hint %q", can, err, fault.HintOf(err))
		}
	}
}

// TestConsentToShell: consent to a text for a shell does not hold for another program that gets the text.
func TestConsentToShell(t *testing.T) {
	t.Parallel()
	p, a := program(t, `ask execute {"command": "echo ran"}`+"\n"+`term ["env", "-c", "echo ran"]`+"\n"+`term ["sh", "-c", "echo ran"]`, "")
	a.Work = a.Judge // which runs nothing
	events, _ := record()
	answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || !strings.Contains(answer.Text, `term ["sh", "-c", "echo ran"]: 0 ran`) {
		t.Errorf("%q, %v", answer.Text, err)
	}
}

// TestManyTerminals: a turn has as many terminals as it releases.
func TestManyTerminals(t *testing.T) {
	t.Parallel()
	p, a := program(t, strings.Repeat("term echo ran\n", 70), "")
	events, _ := record()
	answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || strings.Count(answer.Text, ": 0 ran ok") != 70 {
		t.Errorf("%q, %v", answer.Text, err)
	}
}

// stuck is a tool that calls begin, and returns when the call is canceled.
type stuck struct {
	begin func()
	ended atomic.Bool
}

func (*stuck) Declaration() chat.Tool {
	return chat.Tool{Name: "stuck", Parameters: []byte(`{"type":"object"}`)}
}

func (*stuck) Hints() tool.Hints { return tool.Hints{} }

func (s *stuck) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	s.begin()
	select {
	case <-ctx.Done():
		s.ended.Store(true)
	case <-time.After(time.Minute):
	}
	return tool.Result{}, ctx.Err()
}

// TestToolEnds: calls of the agent's tools end with the turn.
func TestToolEnds(t *testing.T) {
	t.Parallel()
	p, a := program(t, "mcp stuck {}", "http")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &stuck{begin: cancel}
	set, err := tool.NewSet(s)
	if err != nil {
		t.Fatal(err)
	}
	a.Tools = tool.NewBox(tool.Options{Tools: set, AutoConfirm: true})
	events, _ := record()
	if _, err := p.Answer(ctx, &engine.RequestContext{Events: events}, a); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !s.ended.Load() {
		t.Error("the call goes on after the turn")
	}
}

// TestContinued: a session that the program keeps continues, with the cost that it had, or begins anew with what was said.
func TestContinued(t *testing.T) {
	t.Parallel()
	p, a := program(t, "prompt\ncost 3", "resume")
	a.Lead = "Be brief."
	events, _ := record()
	first, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || first.Text != "Be brief.\ngo" {
		t.Fatal(first.Text, err)
	}
	a.Session, a.Earlier = harness.Session{ID: first.Session.ID, Cost: 2}, []chat.Message{a.User, chat.Text(chat.Assistant, "gone")}
	if next, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a); err != nil || next.Text != "go" || next.Usage.Cost != 1 {
		t.Error(next.Text, next.Usage, err)
	}
	a.Session = harness.Session{ID: "unknown"}
	next, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || !strings.Contains(next.Text, "User: go\n\nYou: gone") || next.Usage.Cost != 3 {
		t.Error(next.Text, next.Usage, err)
	}
}

// TestForm: a program is asked once to correct an answer that does not have the form.
func TestForm(t *testing.T) {
	t.Parallel()
	form, err := value.ParseJSON([]byte(`{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{"when none say {\"n\": 1}\nwhen none stop end_turn\nsay none": `{"n": 1}`, "say none": "none", "say {\"n\": 2}": `{"n": 2}`} {
		p, a := program(t, script, "")
		a.Tools = nil
		if a.Form, err = schema.Compile(form); err != nil {
			t.Fatal(err)
		}
		events, _ := record()
		if answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a); err != nil || answer.Text != want {
			t.Errorf("%q: got %q %v, want %q", script, answer.Text, err, want)
		}
	}
}

// TestHostile: what a program does wrong is an error of a tool, and ends it.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"text":    {"raw hello\nhang", "not a message of the protocol: hello"},
		"array":   {"raw [1]\nhang", "not a message of the protocol"},
		"long":    {"long\nhang", "longer than 16 MiB"},
		"exit":    {"exit 4", "stopped in the middle of its work"},
		"refusal": {"stop refusal", "refused to answer"},
		"reason":  {"stop \x1b[2Jnonsense", "ended its turn"},
		"error":   {"nonsense", "unknown action"},
		"details": {"broken the key is gone", "reported: Internal error: the key is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, a := program(t, tt.script, "")
			a.Tools = nil
			events, _ := record()
			_, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if code := fault.CodeOf(err); code != fault.Tool && name != "refusal" {
				t.Errorf("the code is %s", code)
			}
		})
	}
}

// TestCanceled: a program is asked to stop, and ended if it does not. What it has started ends, too.
func TestCanceled(t *testing.T) {
	t.Parallel()
	for _, can := range []string{"", "deaf"} {
		t.Run("can"+can, func(t *testing.T) {
			t.Parallel()
			p, a := program(t, "think at work\nspawn sleep 300\nterm sleep 300", can)
			a.Tools = nil
			stop := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			emit := event.Func(func(_ context.Context, ev event.Event) error {
				if _, ok := ev.Body.(event.Reasoning); ok {
					cancel(stop)
				}
				return nil
			})
			_, err := p.Answer(ctx, &engine.RequestContext{Events: event.NewScope(emit, event.Source{}, nil)}, a)
			if !errors.Is(err, stop) {
				t.Error(err)
			}
		})
	}
}

// TestTooMuch: what a program says in a turn has a bound, in however many pieces it comes.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"say ", "think "} {
		p, a := program(t, strings.Repeat(verb+strings.Repeat("x", 1<<20)+"\n", 17)+"hang", "")
		events, _ := record()
		_, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
		if fault.CodeOf(err) != fault.Tool || !strings.Contains(err.Error(), "said more than 16 MiB in a turn") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	p, a := program(t, strings.Repeat("say "+strings.Repeat("x", 1<<20)+"\n", 15), "")
	events, _ := record()
	if answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a); err != nil || len(answer.Text) != 15<<20 {
		t.Errorf("%d bytes, %v", len(answer.Text), err)
	}
}

// TestTooMuchStderr: what a program prints for people is passed on up to a bound, which is named.
func TestTooMuchStderr(t *testing.T) {
	t.Parallel()
	p, a := program(t, "flood 40000\nsay done", "")
	var mu sync.Mutex
	bytes, last := 0, ""
	p.Stderr = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		bytes, last = bytes+len(line), line
	}
	events, _ := record()
	answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || answer.Text != "done" {
		t.Fatalf("%q, %v", answer.Text, err)
	}
	if bytes < 1<<19 || bytes > 1<<20+200 || !strings.Contains(last, "more than 1 MiB") {
		t.Errorf("%d bytes, last %q", bytes, last)
	}
}

// TestWrongAnswers: an answer that is not of the protocol is an error in words, and what another session asks for is refused.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	p, a := program(t, "badstop", "")
	events, _ := record()
	_, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if fault.CodeOf(err) != fault.Tool || !strings.Contains(err.Error(), "stopReason: a number is not what is expected") || strings.Contains(err.Error(), "Go ") {
		t.Errorf("%v", err)
	}
	p, a = program(t, "fswrite DIR/a secret\nother\nfsread DIR/a\nfswrite DIR/a new\nterm touch DIR/b", "")
	answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
	if err != nil || strings.Count(answer.Text, "unknown session") != 3 || strings.Contains(answer.Text, "secret") {
		t.Errorf("%q, %v", answer.Text, err)
	}
}

// TestSteered: what the user says while the program works reaches it in one prompt, after the calls that it makes: it is asked to stop there. One that does
// not stop, or makes no call, gets it at its end.
func TestSteered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, can, want string }{
		"between_calls": {"when go tool read {\"path\": \"x\"}\nwhen go hang\nwhen hurry say now", "", "user: hurry|assistant: now"},
		"deaf":          {"when go tool read {\"path\": \"x\"}\nwhen go say slowly\nwhen hurry say now", "deaf", "user: hurry|assistant: slowly|assistant: now"},
		"at_its_end":    {"when go say done\nwhen hurry say now", "", "assistant: done|user: hurry|assistant: now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, a := program(t, tt.script, tt.can)
			a.Tools = nil
			waiting := []string{"hurry"}
			a.Said = func(_ context.Context, _ steps.Steps, turn int, last bool) (said []chat.Message, err error) {
				if len(waiting) > 0 && (last || turn == 1 && name != "at_its_end") && p.Version == "asked" {
					said, waiting = []chat.Message{chat.Text(chat.User, waiting[0])}, waiting[1:]
				}
				p.Version = "asked" // the first call is before the first prompt
				return said, nil
			}
			events, _ := record()
			answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range answer.Messages {
				got = append(got, string(m.Role)+": "+m.Text())
				if m.Steer != (m.Role == chat.User) {
					t.Errorf("%+v", m)
				}
			}
			if list := strings.Join(got, "|"); list != tt.want || strings.Contains(answer.Text, "hurry") {
				t.Errorf("got %s, want %s", list, tt.want)
			}
		})
	}
}

// TestAskedAndCanceled: a program that waits for a permission when the turn is canceled gets the answer that it was cancelled, and the question is withdrawn.
func TestAskedAndCanceled(t *testing.T) {
	t.Parallel()
	for _, action := range []string{`ask execute {"command": "make"}`, `elicit {"type": "object", "properties": {"x": {"type": "string"}}}`} {
		p, a := program(t, action+"\nrun touch DIR/answered", "")
		a.Tools = nil
		ctx, cancel := context.WithCancel(t.Context())
		withdrawn := make(chan struct{})
		asker := ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
			cancel()
			<-ctx.Done()
			close(withdrawn)
			return "", context.Cause(ctx)
		})
		set, err := tool.NewSet(p.JudgedTools()...)
		if err != nil {
			t.Fatal(err)
		}
		a.Asker, a.Judge = asker, tool.NewBox(tool.Options{Tools: set, Asker: asker, MaxOutput: 1 << 20})
		events, _ := record()
		if _, err := p.Answer(ctx, &engine.RequestContext{Events: events}, a); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", action, err)
		}
		<-withdrawn
	}
}

// TestLate: what a program says after its answer, and before it has a session, is heard or does no harm.
func TestLate(t *testing.T) {
	t.Parallel()
	p, a := program(t, "say begin \nlate end", "early")
	a.Tools = nil
	events, _ := record()
	if answer, err := p.Answer(t.Context(), &engine.RequestContext{Events: events}, a); err != nil || answer.Text != "begin end" {
		t.Errorf("%q, %v", answer.Text, err)
	}
}

// TestWrapped: a program that another one has started, as npx does, ends with its turn.
func TestWrapped(t *testing.T) {
	t.Parallel()
	p, a := program(t, "run echo $PPID >DIR/pid\nhang", "deaf")
	p.Command, p.Path, a.Tools = []string{"sh", "-c", p.Path + "; :"}, "/bin/sh", nil
	ctx, cancel := context.WithCancel(t.Context())
	emit := event.Func(func(_ context.Context, ev event.Event) error {
		if d, said := ev.Body.(event.Delta); said && strings.Contains(d.Text, "run echo") {
			cancel()
		}
		return nil
	})
	if _, err := p.Answer(ctx, &engine.RequestContext{Events: event.NewScope(emit, event.Source{}, nil)}, a); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(text))
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + pid + "/stat") // none where there is no /proc
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("process %s is left: %s", pid, state)
		}
	}
}
