package conversations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/frontend/api"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
)

// serverName is the variable of the environment with which this test binary is an MCP server.
const serverName = "LOKI_TEST_SERVER"

func TestMain(m *testing.M) {
	if name := os.Getenv(serverName); name != "" {
		os.Exit(serveTools(name))
	}
	servertest.Main(m, func() int {
		return cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{Server: server.Serve})
	})
}

// serveTools is an MCP server with a tool that returns the id of its process.
func serveTools(name string) int {
	server := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "pid"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "process " + strconv.Itoa(os.Getpid())}}}, nil, nil
	})
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
	return 0
}

// config is that of the servers of the tests, with lines of its own behind it.
func config(lines ...string) string {
	return "model: builtin:echo\nclients:\n  - {type: builtin, script: rules.yaml}\nvisible_tools: [nap.sh, fs_write]\n" +
		"api:\n  limits: {max_concurrent_requests: 500, per_subject_concurrency: 500}\n  request_timeout_seconds: 60\n" + strings.Join(lines, "\n")
}

// want reports an answer with another status.
func want(t *testing.T, a servertest.Answer, status int) servertest.Answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// completion returns the answer to a question.
func completion(t *testing.T, s *servertest.Server, path, body string) api.Completion {
	t.Helper()
	var c api.Completion
	want(t, s.Post(path, body), http.StatusOK).JSON(t, &c)
	return c
}

// newSession begins a session and returns its path.
func newSession(t *testing.T, s *servertest.Server, body string) string {
	t.Helper()
	var made api.Session
	want(t, s.Post("/v1/sessions", body), http.StatusCreated).JSON(t, &made)
	return "/v1/sessions/" + made.ID
}

// session returns a session with its messages.
func session(t *testing.T, s *servertest.Server, path string) api.SessionDetails {
	t.Helper()
	var d api.SessionDetails
	want(t, s.Get(path+"?limit=200"), http.StatusOK).JSON(t, &d)
	return d
}

// quote returns text as JSON.
func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// until waits for something to happen, which no test can wait for in another way.
func until(t *testing.T, limit time.Duration, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !happened(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// running reports whether a process has a text in its command line.
func running(text string) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && bytes.Contains(line, []byte(text)) {
			return true
		}
	}
	return false
}

// frames are the events of a stream: name and data in turn.
func frames(body string) (list [][2]string) {
	for block := range strings.SplitSeq(body, "\n\n") {
		var f [2]string
		for line := range strings.SplitSeq(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				f[0] = name
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				f[1] += data
			}
		}
		if f != [2]string{} {
			list = append(list, f)
		}
	}
	return list
}

// leave sends a request and leaves when ready returns true.
func leave(t *testing.T, s *servertest.Server, path, body string, ready func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ends with the request
		res, err := http.DefaultClient.Do(s.Request(http.MethodPost, path, body).WithContext(ctx))
		if err == nil {
			buf := make([]byte, 4096)
			for err == nil {
				_, err = res.Body.Read(buf)
			}
			res.Body.Close()
		}
		done <- err
	}()
	until(t, 20*time.Second, "the request is at work", ready)
	cancel()
	<-done
}

// nap is a tool that sleeps, with a child that does so too, and says so in a file. Its argument is what marks
// the processes.
const nap = `#!/usr/bin/env bash
# @describe Sleep.
# @sandbox full
# @option --mark!
main() {
  bash -c "sleep 600; : $argc_mark child" &
  touch "$HOME/$argc_mark"
  bash -c "sleep 600; : $argc_mark"
}
eval "$(argc --argc-eval "$0" "$@")"
`

// napRules have a model call the tool if the question is nap MARK.
const napRules = `rules:
  - match: {regex: '^nap (\w+)$', turn: 1}
    reply: Let me sleep.
    tool_calls: [{name: nap, arguments: {mark: $1}}]
  - match: {regex: '^slowly'}
    reply: one two three four five six seven eight nine ten
    chunk_delay: 100ms
default:
  reply: 'said {{text}}'
`

func exists(s *servertest.Server, name string) func() bool {
	return func() bool {
		_, err := os.Stat(s.Dir + "/" + name)
		return err == nil
	}
}
