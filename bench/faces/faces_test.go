//go:build unix

// Package faces_test measures how long the first piece of a reply takes from the provider to a user of each face. Provider and user are this
// process, so that there is one clock.
//
//	go test -bench . -benchtime 50x ./bench/faces
package faces_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"

	"loki/internal/agent/harness/acp"
)

const piece = "firstpiece"

// user is a place with a configuration, and a provider that waits for a moment before the first piece.
type user struct {
	program, dir, provider string
	sent                   atomic.Int64 // when the last first piece was sent
}

func newUser(b *testing.B) *user {
	u := &user{dir: b.TempDir()}
	u.program = filepath.Join(u.dir, "loki")
	if out, err := exec.Command("go", "build", "-o", u.program, "loki/cmd/loki").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
		u.sent.Store(time.Now().UnixNano())
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"`+piece+` "}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"and the rest."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	b.Cleanup(server.Close)
	u.provider = server.URL
	config := "model: up:m\nprompt_log: false\ntheme: dark\nclients:\n- {type: openai-compatible, name: up, api_base: " + server.URL + "/v1, api_key: none, models: [{name: m, max_input_tokens: 100000}]}\n"
	if err := os.WriteFile(filepath.Join(u.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	return u
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(u.program, args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "LOKI_CONFIG_DIR=" + u.dir, "LOKI_STATE_DIR=" + filepath.Join(u.dir, "state"), "TERM=xterm-256color"}
	return cmd
}

// arrival reads until the piece is there, and returns how long it took since it was sent.
func (u *user) arrival(b *testing.B, r io.Reader) time.Duration {
	var seen []byte
	buf := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(piece)) {
		n, err := r.Read(buf)
		if seen = append(seen, buf[:n]...); err != nil && !bytes.Contains(seen, []byte(piece)) {
			b.Fatalf("%v: %s", err, seen)
		}
	}
	return time.Duration(time.Now().UnixNano() - u.sent.Load())
}

// post returns a face that is an endpoint.
func (u *user) post(url, body string) func(b *testing.B) time.Duration {
	return func(b *testing.B) time.Duration {
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		defer io.Copy(io.Discard, resp.Body)
		return u.arrival(b, resp.Body)
	}
}

// atTerminal asks a question at a terminal.
func (u *user) atTerminal(b *testing.B) time.Duration {
	cmd := u.command("how are you")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		b.Fatal(err)
	}
	defer screen.Close()
	took := u.arrival(b, screen)
	_, _ = io.Copy(io.Discard, screen)
	_ = cmd.Wait()
	return took
}

// piped asks a question whose answer another program reads.
func (u *user) piped(args ...string) func(b *testing.B) time.Duration {
	return func(b *testing.B) time.Duration {
		cmd := u.command(append(args, "how are you")...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		took := u.arrival(b, out)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		return took
	}
}

// editor is a client of ACP.
type editor struct {
	*acp.Conn
	u    *user
	took chan time.Duration
}

func (e *editor) Notice(_ context.Context, _ string, params json.RawMessage) {
	if bytes.Contains(params, []byte(piece)) {
		e.took <- time.Duration(time.Now().UnixNano() - e.u.sent.Load())
	}
}

func (e *editor) Request(context.Context, string, json.RawMessage) acp.Answer { return nil }

// inEditor returns the face of an editor.
func (u *user) inEditor(b *testing.B) func(b *testing.B) time.Duration {
	cmd := u.command("--acp")
	out, err := cmd.StdoutPipe()
	in, err2 := cmd.StdinPipe()
	if err != nil || err2 != nil || cmd.Start() != nil {
		b.Fatal(err, err2)
	}
	e := &editor{u: u, took: make(chan time.Duration, 1)}
	e.Conn = acp.New(out, in, e)
	go func() { _ = e.Serve(context.Background()) }() // ends with the program
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var session acp.SessionResponse
	if err := e.Call(b.Context(), acp.Initialize, json.RawMessage(`{"protocolVersion": 1, "clientCapabilities": {}}`), nil); err != nil {
		b.Fatal(err)
	}
	if err := e.Call(b.Context(), acp.SessionNew, acp.NewSessionRequest{Cwd: u.dir, MCPServers: []acp.MCPServer{}}, &session); err != nil {
		b.Fatal(err)
	}
	return func(b *testing.B) time.Duration {
		if err := e.Call(b.Context(), acp.SessionPrompt, acp.PromptRequest{SessionID: session.SessionID, Prompt: []acp.ContentBlock{acp.Text("how are you")}}, nil); err != nil {
			b.Fatal(err)
		}
		return <-e.took
	}
}

// BenchmarkFirstPiece reports the median and the 90th percentile of each face, in milliseconds since the provider sent the piece.
func BenchmarkFirstPiece(b *testing.B) {
	u := newUser(b)
	serve := u.command("--serve", "127.0.0.1:0")
	log, err := serve.StderrPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	var seen []byte
	for buf := make([]byte, 4096); !bytes.Contains(seen, []byte("listening on ")) || !bytes.HasSuffix(seen, []byte("\n")); {
		n, err := log.Read(buf)
		if seen = append(seen, buf[:n]...); err != nil {
			b.Fatalf("%v: %s", err, seen)
		}
	}
	_, url, _ := strings.Cut(string(seen), "listening on ")
	url, _, _ = strings.Cut(url, "\n")
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the server
	question := `"messages": [{"role": "user", "content": "how are you"}], "stream": true}`
	faces := []struct {
		name string
		ask  func(b *testing.B) time.Duration
	}{
		{"provider", u.post(u.provider, "")},
		{"terminal", u.atTerminal},
		{"pipe", u.piped()},
		{"json", u.piped("--output", "ndjson")},
		{"rest", u.post(url+"/v1/completions", `{"model": "up:m", "prompt": "how are you", "stream": true}`)},
		{"openai", u.post(url+"/v1/chat/completions", `{"model": "up:m", `+question)},
		{"acp", u.inEditor(b)},
	}
	took := make(map[string][]time.Duration)
	for b.Loop() {
		for _, f := range faces {
			took[f.name] = append(took[f.name], f.ask(b))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, f := range faces {
		list := took[f.name]
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, f.name+"-p50-ms")
		b.ReportMetric(float64(list[len(list)*9/10].Microseconds())/1000, f.name+"-p90-ms")
	}
}
