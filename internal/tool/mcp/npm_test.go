package mcp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/ask/asktest"
	"loki/internal/base/process"
	"loki/internal/base/process/npmtest"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// public returns the script of one of the public servers.
func public(t testing.TB, name, script string) string {
	t.Helper()
	return filepath.Join(npmtest.Install(t, "testdata/servers"), "@modelcontextprotocol", name, "dist", script)
}

func everything(t testing.TB, more ...string) mcp.Server {
	return server(t, "everything", with(map[string]any{"command": "node", "args": []string{public(t, "server-everything", "index.js"), "stdio"}}, more))
}

func with(entry map[string]any, more []string) map[string]any {
	for i := 0; i < len(more); i += 2 {
		entry[more[i]] = more[i+1]
	}
	return entry
}

// remoteEverything starts server-everything as an HTTP server and returns its address.
func remoteEverything(t *testing.T, mode string) string {
	t.Helper()
	script := public(t, "server-everything", "index.js")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	ready := make(chan struct{})
	var once sync.Once
	s, err := process.Start(process.Command{
		Path: "node", Args: []string{script, mode},
		Env: []string{"PATH=" + os.Getenv("PATH"), "PORT=" + strconv.Itoa(port)},
		OnStderr: func(line string) {
			if strings.Contains(line, strconv.Itoa(port)) {
				once.Do(func() { close(ready) })
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	select {
	case <-ready:
	case <-s.Done():
		t.Fatal("the server ended")
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not listen")
	}
	return "http://127.0.0.1:" + strconv.Itoa(port)
}

func TestEverything(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server func(t *testing.T) mcp.Server
	}{
		{"stdio", func(t *testing.T) mcp.Server { return everything(t) }},
		{"http", func(t *testing.T) mcp.Server {
			return server(t, "everything", map[string]any{"url": remoteEverything(t, "streamableHttp") + "/mcp", "headers": map[string]string{"X-Test": "1"}})
		}},
		{"sse", func(t *testing.T) mcp.Server {
			return server(t, "everything", map[string]any{"type": "sse", "url": remoteEverything(t, "sse") + "/sse"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var progress []mcp.Progress
			p := pool(t, func(o *mcp.Options) { o.Dir = t.TempDir() })
			sc := scope(t, p, mcp.ScopeOptions{
				Asker: asktest.NewScripted("decline"),
				Progress: func(p mcp.Progress) {
					mu.Lock()
					defer mu.Unlock()
					progress = append(progress, p)
				},
			}, tt.server(t))
			if err := sc.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			exercise(t, sc)
			mu.Lock()
			defer mu.Unlock()
			if len(progress) == 0 {
				t.Error("no progress was told")
			}
			t.Logf("%+v", p.Status())
		})
	}
}

// exercise uses what server-everything has.
func exercise(t *testing.T, sc *mcp.Scope) {
	ctx := t.Context()
	if out, err := call(ctx, sc, "search", `{"query":"add two numbers","top_k":3}`); err != nil || !strings.Contains(out, `"get-sum"`) {
		t.Errorf("search: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "describe", `{"tool":"get-sum"}`); err != nil || !strings.Contains(out, `"required":["a","b"]`) {
		t.Errorf("describe: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"get-sum","arguments":{"a":2,"b":40}}`); err != nil || !strings.Contains(out, "42") {
		t.Errorf("invoke: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"get-sum","arguments":{"a":"x"}}`); err == nil {
		t.Errorf("wrong arguments: %s", out)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"get-tiny-image"}`); err != nil || !strings.Contains(out, "image/png, ") {
		t.Errorf("image: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"get-structured-content","arguments":{"location":"New York"}}`); err != nil || !strings.Contains(out, "temperature") {
		t.Errorf("structured: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"trigger-long-running-operation","arguments":{"duration":1,"steps":2}}`); err != nil {
		t.Errorf("long: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "invoke", `{"tool":"trigger-elicitation-request","arguments":{}}`); err != nil || !strings.Contains(out, "declin") {
		t.Errorf("elicitation: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "resources", `{}`); err != nil || !strings.Contains(out, `"uri":"demo://`) || !strings.Contains(out, `"uri_template"`) {
		t.Errorf("resources: %s, %v", out, err)
	}
	if out, err := call(ctx, sc, "resources", `{"uri":"demo://resource/dynamic/text/1"}`); err != nil || !strings.Contains(out, "Resource 1") {
		t.Errorf("resource: %s, %v", out, err)
	}
	prompts, err := sc.Prompts(ctx, "everything")
	if err != nil || len(prompts) < 2 {
		t.Errorf("prompts: %+v, %v", prompts, err)
	}
	messages, err := sc.Prompt(ctx, "everything", "args-prompt", map[string]string{"city": "Oslo"})
	if err != nil || len(messages) == 0 || messages[0].Role != chat.User || !strings.Contains(messages[0].Text(), "Oslo") {
		t.Errorf("prompt: %+v, %v", messages, err)
	}
	tools, err := sc.List(ctx, "everything")
	if err != nil || len(tools) < 5 || tools[0].Description == "" {
		t.Errorf("tools: %+v, %v", tools, err)
	}
	resources, err := sc.Resources(ctx, "everything")
	if err != nil || len(resources) < 2 || resources[0].URI == "" || resources[len(resources)-1].Template == "" {
		t.Errorf("resources: %+v, %v", resources, err)
	}
	if text, err := sc.Resource(ctx, "everything", "demo://resource/dynamic/text/1"); err != nil || !strings.Contains(text, "Resource 1") {
		t.Errorf("resource: %s, %v", text, err)
	}
}

func TestEverythingLogsAndRoots(t *testing.T) {
	var logged lockedBuffer
	dir := t.TempDir()
	p := pool(t, func(o *mcp.Options) {
		o.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Dir = dir
	})
	sc := scope(t, p, mcp.ScopeOptions{}, everything(t, "expose", "direct"))
	out, err := call(t.Context(), sc, "get-roots-list", `{}`)
	if err != nil || !strings.Contains(out, filepath.ToSlash(dir)) {
		t.Errorf("roots: %s, %v", out, err)
	}
	if _, err := call(t.Context(), sc, "toggle-simulated-logging", `{}`); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(logged.String(), "mcp_server=everything"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing was logged: %s", logged.String())
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestFilesystemAndMemory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := server(t, "files", map[string]any{"command": "node", "args": []string{public(t, "server-filesystem", "index.js"), dir}, "expose": "direct"})
	memory := server(t, "memory", map[string]any{
		"command": "node", "args": []string{public(t, "server-memory", "index.js")},
		"env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")},
	})
	sc := scope(t, pool(t, func(o *mcp.Options) { o.Dir = dir }), mcp.ScopeOptions{}, files, memory)
	tools, err := sc.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	read, ok := set.Lookup("mcp__files__read_text_file")
	if !ok || !read.Hints().ReadOnly {
		t.Fatalf("tools: %v", set.Names())
	}
	write, _ := set.Lookup("mcp__files__write_file")
	if !write.Hints().Destructive {
		t.Error("writing a file is not destructive")
	}
	arguments, _ := json.Marshal(map[string]string{"path": filepath.Join(dir, "hello.txt")})
	if r, err := read.Call(t.Context(), tool.Call{Arguments: arguments}); err != nil || !strings.Contains(r.Output, "hello from a file") {
		t.Errorf("read: %v, %v", r, err)
	}
	arguments, _ = json.Marshal(map[string]string{"path": "/etc/passwd"})
	if _, err := read.Call(t.Context(), tool.Call{Arguments: arguments}); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("outside of the directory: %v", err)
	}
	create := `{"tool":"create_entities","arguments":{"entities":[{"name":"Ada","entityType":"person","observations":["likes engines"]}]}}`
	if out, err := call(t.Context(), sc, "invoke_memory", create); err != nil {
		t.Errorf("create: %s, %v", out, err)
	}
	if out, err := call(t.Context(), sc, "invoke_memory", `{"tool":"search_nodes","arguments":{"query":"engines"}}`); err != nil || !strings.Contains(out, "Ada") {
		t.Errorf("search: %s, %v", out, err)
	}
}
