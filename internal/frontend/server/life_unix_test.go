//go:build unix

package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/frontend/server/servertest"
)

func TestSignalEndsAnIdleServer(t *testing.T) {
	s := servertest.Program(t, nil)
	if a := s.Get("/healthz/ready"); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	s.Signal(syscall.SIGTERM)
	if status := s.Wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, s.Stderr())
	}
	if strings.Count(s.Stderr(), "warning:") != 1 || !strings.Contains(s.Stderr(), "asks for no key") {
		t.Errorf("one warning is expected:\n%s", s.Stderr())
	}
}

func TestConfigurationIsReadAgain(t *testing.T) {
	s := servertest.Program(t, servertest.Files{"config.yaml": "clients: []\napi: {limits: {max_body_bytes: 1000}}\n"})
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(s.Stderr(), "read again")
		s.Signal(syscall.SIGHUP)
		until(t, "SIGHUP", func() bool { return strings.Count(s.Stderr(), "read again") > before })
	}
	write("clients: []\napi: {limits: {max_body_bytes: 2000}}\n")
	if got := s.Get("/v1/info").Body; !strings.Contains(got, `"max_body_bytes":2000`) {
		t.Errorf("the limit has not changed: %s", got)
	}
	write("clients: []\napi: {limits: {max_body_bytes: 3000, max_concurrent_requests: 0}}\n")
	if got := s.Get("/v1/info").Body; !strings.Contains(got, `"max_body_bytes":2000`) || !strings.Contains(s.Stderr(), "nothing has changed") {
		t.Errorf("a part of a file with a mistake was taken: %s\n%s", got, s.Stderr())
	}
	write("clients: []\napi: {listen_addr: \"127.0.0.1:1\"}\n")
	if !strings.Contains(s.Stderr(), "needs a restart: api.listen_addr") {
		t.Errorf("what needs a restart is not named:\n%s", s.Stderr())
	}
}

// TestAuditSinkIsReadAgain: SIGHUP has the audit record go elsewhere, and a file with a mistake changes nothing.
func TestAuditSinkIsReadAgain(t *testing.T) {
	s := servertest.Program(t, servertest.Files{"config.yaml": "api: {audit: {sink: file, path: one.log}}\n"})
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(s.Dir, name))
		return string(text)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(s.Stderr(), "read again")
		s.Signal(syscall.SIGHUP)
		until(t, "SIGHUP", func() bool { return strings.Count(s.Stderr(), "read again") > before })
	}
	n := 0
	acts := func(file string) { // and waits for the line, which is in that file only
		t.Helper()
		n++
		id := fmt.Sprintf("request-%d.", n)
		s.Post("/v1/mcp/reload", "", "X-Request-Id", id)
		until(t, "the line of "+id, func() bool { return strings.Contains(read(file), id) })
		for _, other := range []string{"one.log", "two.log", "three.log"} {
			if other != file && strings.Contains(read(other), id) {
				t.Errorf("%s is in %s, too", id, other)
			}
		}
	}
	acts("one.log")
	write("api: {audit: {sink: file, path: two.log, max_bytes: 1000000, keep: 2}}\n")
	acts("two.log")
	if !strings.Contains(read("two.log"), `"action":"config_reload"`) {
		t.Errorf("the reload is not in the new file:\n%s", read("two.log"))
	}
	if runtime.GOOS == "linux" {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
		for _, fd := range fds {
			if target, _ := os.Readlink(fd); strings.HasSuffix(target, "one.log") {
				t.Errorf("the old file is open: %s", fd)
			}
		}
		if err != nil || len(fds) < 3 {
			t.Error(fds, err)
		}
	}
	for _, wrong := range []string{
		"api: {audit: {sink: file, path: three.log}, limits: {max_body_bytes: 0}}\n", // a mistake elsewhere
		"api: {audit: {sink: file}, limits: {max_body_bytes: 7777777}}\n",
		"api: {audit: {sink: nowhere, path: three.log}, limits: {max_body_bytes: 7777777}}\n",
		"api: {audit: {sink: file, path: three.log, keep: -1}, limits: {max_body_bytes: 7777777}}\n",
		"api: {audit: [three.log]}\n",
		"api: {audit:",
	} {
		before := strings.Count(s.Stderr(), "nothing has changed")
		write(wrong)
		if strings.Count(s.Stderr(), "nothing has changed") != before+1 {
			t.Errorf("%s: is taken:\n%s", wrong, s.Stderr())
		}
		acts("two.log")
	}
	if got := s.Get("/v1/info").Body; strings.Contains(got, "7777777") {
		t.Errorf("a part of a file with a mistake was taken: %s", got)
	}
	if got := strings.Count(read("two.log"), `"action":"config_reload","target":"config","result":"error"`); got != 6 {
		t.Errorf("%d reloads that failed are on record:\n%s", got, read("two.log"))
	}
	write("api: {}\n") // no record any more
	s.Post("/v1/mcp/reload", "", "X-Request-Id", "unrecorded")
	write("api: {audit: {sink: file, path: one.log}}\n")
	acts("one.log")
	if strings.Contains(read("one.log")+read("two.log"), "unrecorded") || read("three.log") != "" {
		t.Errorf("what was not to be recorded is:\n%s\n%s\n%s", read("one.log"), read("two.log"), read("three.log"))
	}
}

// TestConnectionsWithoutRequest: the end of a server does not wait for clients that have connected and asked nothing yet,
// as browsers do, or a part of a header only.
func TestConnectionsWithoutRequest(t *testing.T) {
	s := servertest.Program(t, nil)
	for _, sent := range []string{"", "GET /healthz/ready HTTP/1.1\r\nHo"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.Get("/healthz/ready"); a.Status != http.StatusOK { // by then it has seen the connections
		t.Errorf("%d %s", a.Status, a.Body)
	}
	s.Signal(syscall.SIGTERM)
	if status := s.Wait(); status != 0 || strings.Contains(s.Stderr(), "error:") {
		t.Errorf("status %d:\n%s", status, s.Stderr())
	}
}

// TestKeysAreReadAgain: a key that is not in the file any more is not valid, and what it watches ends.
func TestKeysAreReadAgain(t *testing.T) {
	key, entry := servertest.Key("alice", 1, `"*"`)
	s := servertest.Program(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\napi:\n  auth:\n    keys:\n" + entry,
		"agents/asks/graph.yaml": askAgent,
	})
	s.Key = key
	var begun struct{ ID string }
	s.Post("/v1/agents/asks/runs", `{"prompt": "x", "wait": 60}`).JSON(t, &begun)
	watch, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/runs/"+begun.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch.Header.Set("Authorization", "Bearer "+key)
	stream, err := http.DefaultClient.Do(watch)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("the stream is %s", stream.Status)
	}
	file := filepath.Join(s.Dir, "config.yaml")
	for i, lose := range []func() error{func() error { return os.Remove(file) }, func() error { return os.WriteFile(file, []byte("# nothing\n\n"), 0o600) }} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		s.Signal(syscall.SIGHUP)
		until(t, "a file that is gone is a mistake", func() bool { return strings.Count(s.Stderr(), "missing or empty") > i })
		if a := s.Get("/v1/runs"); a.Status != http.StatusOK {
			t.Errorf("the key after the file was lost: %d %s", a.Status, a.Body)
		}
	}
	if err := os.WriteFile(file, []byte("model: builtin:echo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Signal(syscall.SIGHUP)
	seen, err := io.ReadAll(stream.Body) // ends
	if err != nil || !strings.Contains(string(seen), "the key was revoked") {
		t.Errorf("the stream ends with %v:\n%s", err, seen)
	}
	if a := s.Get("/v1/runs"); a.Status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestSystemdIsNotified(t *testing.T) {
	dir, err := os.MkdirTemp("", "loki") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := servertest.Program(t, servertest.Files{".env": "NOTIFY_SOCKET=" + socket + "\n"})
	s.Signal(syscall.SIGINT)
	s.Wait()
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []string
	buf := make([]byte, 100)
	for range 2 {
		n, err := l.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(buf[:n]))
	}
	if strings.Join(got, " ") != "READY=1 STOPPING=1" {
		t.Errorf("%q", got)
	}
}

// sleeper is an agent whose script sleeps. It writes the id of a child's process to the file pid.
var sleeper = servertest.Files{
	"config.yaml":                 "model: builtin:echo\nclients: []\napi: {shutdown_grace_seconds: %d}\n",
	"agents/sleeper/graph.yaml":   "version: \"1.0\"\nname: sleeper\nstart: a\nnodes:\n  a: {type: script, script: scripts/a.sh, next: b}\n  b: {type: end, output: \"{{said}}\"}\n",
	"agents/sleeper/scripts/a.sh": "#!/bin/sh\nsleep %d &\necho $! > \"$HOME/pid.new\"\nmv \"$HOME/pid.new\" \"$HOME/pid\"\nwait\necho '{\"said\": \"slept well\"}'\n",
}

// busy starts a server whose only request has started a process that sleeps.
func busy(t *testing.T, grace, sleep int) (s *servertest.Server, child int, answer <-chan string) {
	t.Helper()
	files := servertest.Files{}
	for name, text := range sleeper {
		files[name] = text
	}
	files["config.yaml"] = fmt.Sprintf(sleeper["config.yaml"], grace)
	files["agents/sleeper/scripts/a.sh"] = fmt.Sprintf(sleeper["agents/sleeper/scripts/a.sh"], sleep)
	s = servertest.Program(t, files)
	answers := make(chan string, 1)
	request := s.Request(http.MethodPost, "/v1/completions", `{"prompt":"go","agent":"sleeper"}`)
	go func() { // ends with the request
		res, err := http.DefaultClient.Do(request)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answers <- string(body)
	}()
	until(t, "the script", func() bool {
		text, err := os.ReadFile(filepath.Join(s.Dir, "pid"))
		if err != nil {
			if len(answers) > 0 {
				t.Fatalf("the request has ended: %s", <-answers)
			}
			return false
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return s, child, answers
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestRequestsMayFinish(t *testing.T) {
	s, _, answer := busy(t, 30, 2)
	s.Signal(syscall.SIGTERM)
	until(t, "not ready", func() bool { return s.Get("/healthz/ready").Status == http.StatusServiceUnavailable })
	if a := s.Post("/v1/completions", `{"prompt":"x"}`); a.Status != http.StatusServiceUnavailable || a.Code() != "overloaded" {
		t.Errorf("a new request: %d %s", a.Status, a.Body)
	}
	if text := <-answer; !strings.Contains(text, "slept well") {
		t.Error(text)
	}
	if status := s.Wait(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestRequestsAreCanceledAfterTheGrace(t *testing.T) {
	s, child, answer := busy(t, 0, 600)
	s.Signal(syscall.SIGTERM)
	if status := s.Wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	until(t, "the child ends", func() bool { return !alive(child) }) // it is init's to reap
	if text := <-answer; !strings.Contains(text, "shutting down") || strings.Contains(text, `"internal"`) {
		t.Error(text)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	s, child, _ := busy(t, 600, 600)
	s.Signal(syscall.SIGTERM)
	until(t, "stopping", func() bool { return strings.Contains(s.Stderr(), "stopping") })
	s.Signal(syscall.SIGTERM)
	if status := s.Wait(); status == 0 {
		t.Error("status 0")
	}
	until(t, "the child ends", func() bool { return !alive(child) })
}

func TestNoChildOutlivesAKilledServer(t *testing.T) {
	s, child, _ := busy(t, 30, 600)
	s.Kill()
	until(t, "the child ends", func() bool { return !alive(child) })
}
