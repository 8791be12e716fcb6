package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/npmtest"
	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/api"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// agents are the files of agents of the tests.
var agents = map[string]string{
	"ask/graph.yaml": `
name: ask
description: Publishes after approval
start: who
settings: {on_failure: fail}
nodes:
  who: {type: input, question: "Who publishes?", state_updates: {who: "{{input}}"}, next: sure}
  sure:
    type: approval
    question: "Publish it?"
    options: [publish, drop]
    routes: {publish: good, drop: bad}
    on_other: other
    state_updates: {picked: "{{choice}}"}
  good: {type: end, output: "{{who}} published {{initial_prompt}}"}
  bad: {type: end, output: "{{who}} dropped it"}
  other: {type: end, output: "{{picked}}"}
`,
	"greet/config.yaml": "name: greet\ninstructions: Greet.\nmodel: builtin:echo\nvariables:\n  - {name: tone, description: how}\n",
	"loki_x/graph.yaml": "name: loki_x\nstart: e\nnodes: {e: {type: end, output: x}}\n",
	"slow/graph.yaml":   "name: slow\nstart: w\nsettings: {on_failure: fail}\nnodes:\n  w: {type: wait, for: 1h, next: e}\n  e: {type: end, output: x}\n",
	"asks/config.yaml":  "name: asks\ninstructions: Work.\nmodel: builtin:script\nglobal_tools: [fs_write]\n",
}

// script is what builtin:script answers: a call that needs consent, then the end.
const script = `
rules:
  - match: {text: "Answer with one"}
    reply: '{"n": 1}'
  - match: {text: "Answer with none"}
    reply: "none"
  - match: {turn: 1, system: Work}
    tool_calls: [{name: fs_write, arguments: {path: made, contents: x}}]
  - match: {turn: 2, system: Work}
    reply: "It is made."
default: {reply: "late", delay: 1h}
`

// newApp returns the program with the agents, in a directory of its own.
func newApp(t *testing.T, config string) *app.App {
	t.Helper()
	home := t.TempDir()
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range agents {
		write("agents/"+name, text)
	}
	write("script.yaml", script)
	write("config.yaml", "model: builtin:echo\npermission: {fs_write: ask}\ntrusted_dirs: ["+filepath.Join(home, "agents")+"]\n"+config)
	a, err := app.New(app.Options{Environ: []string{
		"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH"), "LOKI_SCRIPT_FILE=" + filepath.Join(home, "script.yaml"), "LOKI_LOG_LEVEL=debug",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// begin serves the agents and returns a client and what the server warned of.
func begin(t *testing.T, o *mcp.ClientOptions, version, config string) (*mcp.ClientSession, *[]string) {
	t.Helper()
	return beginWith(t, newApp(t, config), o, version)
}

// beginApp is begin, and returns the program.
func beginApp(t *testing.T, o *mcp.ClientOptions, version, config string) (*mcp.ClientSession, *app.App) {
	t.Helper()
	a := newApp(t, config)
	c, _ := beginWith(t, a, o, version)
	return c, a
}

func beginWith(t *testing.T, a *app.App, o *mcp.ClientOptions, version string) (*mcp.ClientSession, *[]string) {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	var warnings []string
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the client
		served <- serve(ctx, display.Options{App: a, Warn: func(text string) { warnings = append(warnings, text) }}, "", ours, nil)
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		cancel()
		t.Fatal(err, <-served)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		if err := errors.Join(<-served, a.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, &warnings
}

// called is the result of a call.
type called struct {
	text string
	of   outcome
	bad  bool
}

func call(t *testing.T, c *mcp.ClientSession, name string, arguments map[string]any) called {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	var got called
	got.bad = r.IsError
	for _, part := range r.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			got.text += text.Text
		}
	}
	data, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &got.of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// forms answers forms with the values of their first members.
func forms(answers ...map[string]any) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		for _, a := range answers {
			if strings.Contains(req.Params.Message, a["of"].(string)) {
				content := make(map[string]any)
				for name, v := range a {
					if name != "of" {
						content[name] = v
					}
				}
				return &mcp.ElicitResult{Action: "accept", Content: content}, nil
			}
		}
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
}

// TestTools lists the tools.
func TestTools(t *testing.T) {
	c, warnings := begin(t, nil, "", "")
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"ask", "asks", "greet", "loki_answer", "loki_ask", "loki_cancel", "loki_run", "slow"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	if got := *warnings; len(got) != 1 || !strings.Contains(got[0], "agent loki_x is not offered") {
		t.Errorf("warnings %q", got)
	}
	prompts, err := c.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) == 0 {
		t.Errorf("prompts %v, %v", prompts, err)
	}
}

// TestArguments: an agent gets the prompt and its variables; wrong arguments are named in the result.
func TestArguments(t *testing.T) {
	c, _ := begin(t, nil, "", "")
	if got := call(t, c, "greet", map[string]any{"prompt": "Ada", "tone": "warm"}); got.bad || got.text != "Ada" || got.of.Status != "done" {
		t.Errorf("%+v", got)
	}
	for _, tt := range []struct {
		name      string
		arguments map[string]any
		want      string
	}{
		{"unknown", map[string]any{"prompt": "Ada", "tone": "warm", "mood": "good"}, "there is no argument mood; there are prompt, tone"},
		{"missing", map[string]any{"prompt": "Ada"}, "tone"},
		{"empty", map[string]any{"tone": "warm"}, "prompt: the text is empty"},
		{"object", map[string]any{"prompt": map[string]any{}, "tone": "x"}, "prompt: a text is expected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := call(t, c, "greet", tt.arguments); !got.bad || !strings.Contains(got.text, tt.want) {
				t.Errorf("%+v, want %q", got, tt.want)
			}
		})
	}
	if got := call(t, c, "loki_ask", map[string]any{"prompt": "Hello"}); got.text != "Hello" {
		t.Errorf("a model: %+v", got)
	}
	if got := call(t, c, "loki_ask", map[string]any{"prompt": "Hello", "model": "no:such"}); !got.bad || !strings.Contains(got.text, "no:such") {
		t.Errorf("an unknown model: %+v", got)
	}
}

// TestQuestions asks the user of the client, in both ways in which clients have forms.
func TestQuestions(t *testing.T) {
	handler := forms(map[string]any{"of": "Who", "answer": "Ada"}, map[string]any{"of": "Publish", "answer": "publish"})
	for _, version := range []string{"2025-06-18", "2025-11-25", protocolWithInput} {
		t.Run(version, func(t *testing.T) {
			c, _ := begin(t, &mcp.ClientOptions{ElicitationHandler: handler}, version, "")
			got := call(t, c, "ask", map[string]any{"prompt": "it"})
			if got.bad || got.text != "Ada published it" {
				t.Fatalf("%+v", got)
			}
			r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "loki://runs/" + got.of.RunID + "/events"})
			if err != nil || strings.Count(r.Contents[0].Text, `"via":"mcp"`) != 2 {
				t.Errorf("events: %+v, %v", r, err)
			}
		})
	}
	t.Run("another_answer", func(t *testing.T) {
		c, _ := begin(t, &mcp.ClientOptions{ElicitationHandler: forms(map[string]any{"of": "Who", "answer": "Ada"}, map[string]any{"of": "Publish", "other": "later"})}, "", "")
		if got := call(t, c, "ask", map[string]any{"prompt": "it"}); got.text != "later" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("declined", func(t *testing.T) {
		c, _ := begin(t, &mcp.ClientOptions{ElicitationHandler: forms()}, "", "")
		if got := call(t, c, "ask", map[string]any{"prompt": "it"}); got.of.Status != "waiting" {
			t.Errorf("%+v", got)
		}
	})
}

// TestWithoutForms has a client that cannot ask go on by calls of tools.
func TestWithoutForms(t *testing.T) {
	c, _ := begin(t, nil, "", "")
	got := call(t, c, "ask", map[string]any{"prompt": "it"})
	if got.bad || got.of.Status != "waiting" || len(got.of.Questions) != 1 || !strings.Contains(got.text, "loki_answer") {
		t.Fatalf("%+v", got)
	}
	id := got.of.RunID
	if got := call(t, c, "loki_answer", map[string]any{"run_id": id, "question_id": "no", "answer": "x"}); !got.bad {
		t.Errorf("an unknown question: %+v", got)
	}
	if got := call(t, c, "loki_answer", map[string]any{"run_id": id, "question_id": "who", "answer": "Ada"}); got.of.Status != "waiting" {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, "loki_answer", map[string]any{"run_id": id, "question_id": "sure", "answer": "publish"}); got.text != "Ada published it" {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, "loki_run", map[string]any{"run_id": id}); got.of.Status != "done" || got.text != "Ada published it" {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, "loki_answer", map[string]any{"run_id": id, "question_id": "sure", "answer": "drop"}); !got.bad {
		t.Errorf("a second answer: %+v", got)
	}
}

// TestConsent: the user of a client consents in a form, if the configuration lets it; a model never does.
func TestConsent(t *testing.T) {
	made := func(t *testing.T) bool {
		_, err := os.Stat("made")
		return err == nil
	}
	yes := &mcp.ClientOptions{ElicitationHandler: forms(map[string]any{"of": "made", "answer": "yes"})}
	for _, tt := range []struct {
		name, config string
		options      *mcp.ClientOptions
		made         bool
		status       string
	}{
		{"yes", "", yes, true, "done"},
		{"declined", "", &mcp.ClientOptions{ElicitationHandler: forms()}, false, "done"},
		{"not_by_configuration", "mcp_server: {consent: false}\n", yes, false, "waiting"},
		{"without_forms", "", nil, false, "waiting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := begin(t, tt.options, "", tt.config)
			got := call(t, c, "asks", map[string]any{"prompt": "Make it"})
			if got.of.Status != tt.status || made(t) != tt.made {
				t.Fatalf("%+v, made %v", got, made(t))
			}
			if tt.status != "waiting" {
				return
			}
			id := got.of.Questions[0].ID
			if got := call(t, c, "loki_answer", map[string]any{"run_id": got.of.RunID, "question_id": id, "answer": "yes"}); !got.bad || made(t) {
				t.Errorf("a model consents: %+v, made %v", got, made(t))
			}
		})
	}
}

// TestState: the state of a call that requires input is of this call only, and cannot be changed.
func TestState(t *testing.T) {
	c, _ := begin(t, &mcp.ClientOptions{
		ElicitationHandler: forms(), MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}, "", "")
	ask := func(prompt, state string) (*mcp.CallToolResult, error) {
		return c.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "ask", Arguments: map[string]any{"prompt": prompt}, RequestState: state,
			InputResponses: mcp.InputResponseMap{"who": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Ada"}}},
		})
	}
	r, err := ask("it", "")
	if err != nil || !r.NeedsInput() || r.InputRequests["who"] == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	refused := func(what, prompt, state string) {
		t.Helper()
		if _, err := ask(prompt, state); err == nil {
			t.Errorf("%s was taken", what)
		} else if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range r.RequestState {
		changed := []byte(r.RequestState)
		if changed[i] = 'A'; r.RequestState[i] == 'A' {
			changed[i] = 'B'
		}
		refused("a state whose byte was changed", "it", string(changed))
	}
	refused("the state of another call", "something else", r.RequestState)
	refused("a state that is none", "it", "x")
	next, err := ask("it", r.RequestState)
	if err != nil || !next.NeedsInput() || next.InputRequests["sure"] == nil {
		t.Errorf("%+v, %v", next, err)
	}
}

// TestCancel: a call that its client cancels stops the run, which stays on record; loki_cancel cancels one that waits.
func TestCancel(t *testing.T) {
	c, _ := begin(t, nil, "", "mcp_server: {wait: 1s}\n")
	got := call(t, c, "slow", map[string]any{"prompt": "it"})
	if got.of.Status != string(run.Suspended) && got.of.Status != string(run.Running) {
		t.Fatalf("%+v", got)
	}
	if got = call(t, c, "loki_cancel", map[string]any{"run_id": got.of.RunID}); got.bad || got.of.Status != string(run.Canceled) {
		t.Errorf("%+v", got)
	}
	if got = call(t, c, "loki_run", map[string]any{"run_id": "zzzzzzzz"}); !got.bad {
		t.Errorf("an unknown run: %+v", got)
	}
}

// TestRunsOfTheCaller: a client sees the runs that calls began, also after a restart, and no others; with the setting all it sees those, too.
func TestRunsOfTheCaller(t *testing.T) {
	for _, setting := range []string{"own", "all"} {
		t.Run(setting, func(t *testing.T) {
			a := newApp(t, "mcp_server: {runs: "+setting+"}\n")
			defer a.Close()
			store, err := a.OpenRuns()
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			add := func(origin *run.Origin) string {
				t.Helper()
				j, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun, Agent: "chat", Dir: "/elsewhere", Prompt: "of the user", Beginning: run.Beginning{Origin: origin}}, run.Checkpoint{})
				if err == nil {
					err = j.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
				return j.ID()
			}
			others := []string{add(nil), add(&run.Origin{Kind: run.OfMCP, Name: "http"}), add(&run.Origin{Kind: run.OfTrigger, Name: "stdio"})}
			client := func(use func(c *mcp.ClientSession)) {
				t.Helper()
				ours, theirs := mcp.NewInMemoryTransports()
				served := make(chan error, 1)
				go func() { served <- serve(t.Context(), display.Options{App: a, Warn: func(string) {}}, "", ours, nil) }() // ends with the client
				c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
				if err != nil {
					t.Fatal(err)
				}
				use(c)
				if err := errors.Join(c.Close(), <-served); err != nil {
					t.Error(err)
				}
			}
			var own string
			client(func(c *mcp.ClientSession) {
				own = call(t, c, "greet", map[string]any{"prompt": "hello", "tone": "dry"}).of.RunID
			})
			client(func(c *mcp.ClientSession) {
				if got := call(t, c, toolRun, map[string]any{"run_id": own}); got.bad || got.of.Status != string(run.Done) {
					t.Errorf("its own run: %+v", got)
				}
				done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: runURI + "{id}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}})
				if err != nil || !slices.Contains(done.Completion.Values, own) || len(done.Completion.Values) != map[string]int{"own": 1, "all": 4}[setting] {
					t.Errorf("completions %+v, %v", done, err)
				}
				for _, id := range others {
					_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: runURI + id})
					_, failure := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: runURI + id + "/events"})
					if seen := err == nil && failure == nil; seen != (setting == "all") {
						t.Errorf("resources of %s: %v, %v", id, err, failure)
					}
					if setting == "all" {
						continue
					}
					for tool, arguments := range map[string]map[string]any{toolRun: {}, toolCancel: {}, toolAnswer: {"question_id": "q", "answer": "x"}} {
						arguments["run_id"] = id
						if got := call(t, c, tool, arguments); !got.bad || got.text != "there is no run "+id {
							t.Errorf("%s of a run of another: %+v", tool, got)
						}
					}
				}
			})
		})
	}
}

// TestClientLeaves ends the input, or does not take the output, while a call is under way: the run is interrupted, and another client resumes it.
func TestClientLeaves(t *testing.T) {
	for _, closes := range []string{"input", "output"} {
		t.Run(closes, func(t *testing.T) { testLeave(t, closes) })
	}
}

func testLeave(t *testing.T, closes string) {
	a := newApp(t, "")
	defer a.Close()
	in, input := io.Pipe()
	output, out := io.Pipe()
	served := make(chan error, 1)
	go func() { // ends with the input
		served <- Serve(t.Context(), display.Options{App: a, Streams: display.Streams{In: in, Out: out}, Warn: func(string) {}}, "")
		_ = out.Close()
	}()
	lines := bufio.NewScanner(output)
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(input, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("%q, %v, want %s", lines.Text(), lines.Err(), want)
		}
	}
	for _, bad := range []string{"hello", "Content-Length: 3", strings.Repeat("x", maxLine+1)} {
		say(bad)
		next(`"code":-32700`)
	}
	for id, bad := range map[string][]string{
		"null": {"[]", "null", "42", "[1]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","foo":1}`, `{"jsonrpc":"2.0","id":null}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":123456789012345678901,"method":"ping"}`},
		`"a"`:  {`{"jsonrpc":"1.0","id":"a","method":"ping"}`, `{"id":"a","method":"ping"}`, `{"jsonrpc":2,"id":"a"}`},
		"5":    {`{"jsonrpc":"2.0","id":5,"method":7}`, `{"jsonrpc":"2.0","id":5,"error":{"code":"x"}}`, `{"jsonrpc":"2.0","id":5,"error":7}`, `[{"jsonrpc":"2.0","id":5,"method":[]}]`},
	} {
		for _, line := range bad {
			say(line)
			next(`"id":` + id + `,"error":{"code":-32600,"message":"Invalid Request: `)
			if strings.Contains(lines.Text(), "Go ") || strings.Contains(lines.Text(), "struct") {
				t.Errorf("%s: %s names types of the program", line, lines.Text())
			}
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	next(`"id":1`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"loki_ask","arguments":{"prompt":"x","model":"builtin:script"},"_meta":{"progressToken":1}}}`)
	store, err := a.OpenRuns()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var infos []run.Info
	for len(infos) == 0 || !infos[0].Active {
		if infos, err = store.Runs(t.Context(), run.Query{}); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"loki_run","arguments":{"run_id":"` + infos[0].ID + `","wait":50}}}`)
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if closes == "output" {
		_ = output.Close()
	}
	say(`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":4.5},{"jsonrpc":"2.0","method":"notifications/initialized"}]`)
	if closes == "input" {
		_ = input.Close()
	}
	for lines.Scan() { // a request that is canceled has no answer
		if strings.Contains(lines.Text(), `"id":3`) || strings.Contains(lines.Text(), "context canceled") {
			t.Errorf("%s", lines.Text())
		}
	}
	if err := <-served; err != nil && (closes == "input" || !errors.Is(err, io.ErrClosedPipe)) {
		t.Error(err)
	}
	info, err := store.Info(t.Context(), infos[0].ID)
	if err != nil || info.Status != run.Running || info.Active {
		t.Errorf("the run is %s, active %v, %v", info.Status, info.Active, err)
	}
}

// TestWaitingText: a model is told to ask the user only what it may answer for the user.
func TestWaitingText(t *testing.T) {
	of := func(kinds ...string) string {
		o := outcome{RunID: "r"}
		for _, kind := range kinds {
			o.Questions = append(o.Questions, api.Question{ID: kind, Kind: kind})
		}
		return waitingText(o)
	}
	for _, kinds := range [][]string{{kindSecret}, {"consent"}, {kindSecret, "consent"}} {
		if got := of(kinds...); strings.Contains(got, toolAnswer) || !strings.Contains(got, "Only the user can answer this") {
			t.Errorf("%s: %s", kinds, got)
		}
	}
	if got := of(kindSecret, "text"); !strings.Contains(got, toolAnswer) || !strings.Contains(got, "Only the user can answer this") {
		t.Errorf("a secret and a text: %s", got)
	}
}

// TestMain runs the program for clients that are programs of others.
func TestMain(m *testing.M) {
	if os.Getenv("LOKI_MCP_TEST") == "program" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{MCP: Serve}))
	}
	os.Exit(m.Run())
}

// TestClients calls an agent with the clients of the TypeScript SDKs: the older one, and the one for protocol 2026-07-28.
func TestClients(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(npmtest.Install(t, filepath.Join("testdata", "clients")), filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "clients", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"client.mjs": string(text), "home/agents/ask/graph.yaml": agents["ask/graph.yaml"]}
	for name, text := range files {
		if err := atomicfile.Write(filepath.Join(dir, name), []byte(text), atomicfile.Options{NoSync: true}); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	const want = `tools ask loki_answer loki_ask loki_cancel loki_run
asked Who publishes?
asked Publish it?
result done Ada published it
again done
wrong true there is no argument mood; there are prompt
prompts true
resource done
progress true
`
	for _, kind := range []string{"sdk", "client"} {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "node", "client.mjs", kind, program)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home, "LOKI_MCP_TEST=program"}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s\n%s", err, out, stderr.String())
			}
		})
	}
}

// TestChangesOfWhatIsOffered: a client learns of an agent that is new, and of one that is removed.
func TestChangesOfWhatIsOffered(t *testing.T) {
	changed := make(chan bool, 10)
	a := newApp(t, "")
	ours, theirs := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { served <- serve(ctx, display.Options{App: a, Warn: func(string) {}}, "", ours, nil) }() // ends with the client
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
	}).Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	tools := func() (names []string) {
		t.Helper()
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	before := tools()
	dir := filepath.Join(a.Paths.AgentsDir, "fresh")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "graph.yaml"), []byte("name: fresh\nstart: e\nnodes: {e: {type: end, output: x}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for !slices.Contains(tools(), "fresh") { // it may be seen before its file is whole
		<-changed
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for !slices.Equal(tools(), before) {
		<-changed
	}
	if err := errors.Join(c.Close(), <-served, a.Close()); err != nil {
		t.Error(err)
	}
}

// TestWhatIsOffered: the settings say which tools and prompts there are, and bound what a call may use.
func TestWhatIsOffered(t *testing.T) {
	c, _ := begin(t, nil, "", "mcp_server: {chat: false, runs: none, agents: [greet], roles: [], macros: [], budget: {tokens: 1}}\n")
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "greet" {
		t.Errorf("%v, %v", list, err)
	}
	prompts, err := c.ListPrompts(t.Context(), nil)
	if err == nil && len(prompts.Prompts) > 0 {
		t.Errorf("%v", prompts.Prompts)
	}
	if templates, err := c.ListResourceTemplates(t.Context(), nil); err == nil && slices.ContainsFunc(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) bool { return strings.HasPrefix(r.URITemplate, runURI) }) {
		t.Error("runs are resources")
	}
	if got := call(t, c, "greet", map[string]any{"prompt": "hello there, all of you", "tone": "dry"}); !strings.Contains(got.text, "tokens") {
		t.Errorf("%+v", got)
	}
}

// TestDocuments: a document of a knowledge base is a resource, unless the settings leave that knowledge base out.
func TestDocuments(t *testing.T) {
	a := newApp(t, "rag_embedding_model: builtin:hash\nmcp_server: {rags: [notes]}\n")
	defer a.Close()
	for name, text := range map[string]string{"notes.md": "# Ducks\n\nDucks swim.\n", "other.md": "# Cats\n\nCats climb.\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := a.Knowledge().Change(t.Context(), a.Events(event.Discard), knowledge.Edit{Name: strings.TrimSuffix(name, ".md"), Add: []string{name}, Asker: ask.Unavailable{}})
		if err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- serve(t.Context(), display.Options{App: a, Warn: func(string) {}}, "", ours, nil) }() // ends with the client
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := call(t, c, toolSearch, map[string]any{"query": "ducks", "rag": "notes"})
	var found struct{ Passages []struct{ Source string } }
	if err := json.Unmarshal([]byte(got.text), &found); err != nil || len(found.Passages) != 1 {
		t.Fatalf("%+v", got)
	}
	source, _, _ := strings.Cut(found.Passages[0].Source, ":")
	r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: baseURI + "notes/" + source})
	if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, "Ducks swim.") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, uri := range []string{"notes/" + source + "x", "other/" + strings.Replace(source, "notes.md", "other.md", 1), "none/x"} {
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: baseURI + uri}); err == nil {
			t.Errorf("%s is read", uri)
		}
	}
	if got := call(t, c, toolSearch, map[string]any{"query": "cats", "rag": "other"}); !got.bad {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, toolAsk, map[string]any{"prompt": "ducks", "rag": "notes"}); got.bad || !strings.Contains(got.text, "Ducks swim.") {
		t.Errorf("an answer from a knowledge base: %+v", got)
	}
	if got := call(t, c, toolAsk, map[string]any{"prompt": "cats", "rag": "other"}); !got.bad {
		t.Errorf("an answer from one that is left out: %+v", got)
	}
	done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: baseURI + "{name}/{+source}"}, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "n"}})
	if err != nil || len(done.Completion.Values) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := errors.Join(c.Close(), <-served); err != nil {
		t.Error(err)
	}
}

// TestLog: what runs of calls do is in the log file, without what they were asked.
func TestLog(t *testing.T) {
	a := newApp(t, "")
	c, _ := beginWith(t, a, nil, "")
	call(t, c, "greet", map[string]any{"prompt": "Adalbert", "tone": "warm"})
	text, err := os.ReadFile(a.Paths.LogFile)
	if err != nil || !strings.Contains(string(text), "answer started model=builtin:echo") || strings.Contains(string(text), "Adalbert") {
		t.Errorf("%v, log %s", err, text)
	}
}
