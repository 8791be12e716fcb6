// Package servertest starts servers for tests: in the process of the test, or as the program of its own that
// users have. Both have a configuration directory of their own and listen at a free port of this machine.
package servertest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"loki/internal/app"
	"loki/internal/frontend/server"
	"loki/internal/llm/event"
)

// Files are the files of a configuration directory, by their paths below it, such as config.yaml.
type Files map[string]string

// Server is a server that a test has started. It ends with the test.
type Server struct {
	URL string // without a slash at the end
	Dir string // the configuration directory; its directory state holds the state
	Key string // is sent with each request, unless it is empty

	// App is what the server works with; nil if it is a program of its own.
	App *app.App

	t      *testing.T
	work   string // the working directory of a program
	cmd    *exec.Cmd
	mu     sync.Mutex // guards what follows
	stderr bytes.Buffer
	status chan int
}

// Start starts a server in this process. When the test ends, the server has left no goroutine behind. observers get its
// events.
func Start(t *testing.T, files Files, observers ...event.Emitter) *Server {
	t.Helper()
	before := runtime.NumGoroutine()
	s := &Server{t: t, Dir: Directory(t, files)}
	var err error
	if s.App, err = app.New(app.Options{Environ: s.environ()}); err != nil {
		t.Fatal(err)
	}
	started, err := server.Start(context.WithoutCancel(t.Context()), server.Options{App: s.App, Address: "127.0.0.1:0", Observer: event.Tee(observers...)})
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + started.Addr()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no time to finish for requests at work
		if err := started.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := s.App.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		checkGoroutines(t, before)
	})
	return s
}

// checkGoroutines reports the goroutines that are left.
func checkGoroutines(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
			return
		}
		runtime.Gosched()
		time.Sleep(5 * time.Millisecond) // for goroutines of net/http, which nobody can wait for
	}
}

const asProgram = "LOKI_SERVERTEST_PROGRAM"

// Main runs the tests, or program instead of them in a process that [Program] has started. A package whose
// tests use Program calls it in TestMain. program is cli.Main with the arguments and the environment of the
// process.
func Main(m *testing.M, program func() int) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program())
	}
	os.Exit(m.Run())
}

// Program starts loki --serve with further arguments as a program of its own.
func Program(t *testing.T, files Files, args ...string) *Server {
	t.Helper()
	return ProgramIn(t, "", files, args...)
}

// ProgramIn is Program in a working directory, "" for the configuration directory.
func ProgramIn(t *testing.T, work string, files Files, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, Dir: Directory(t, files)}
	s.work = cmp.Or(work, s.Dir)
	s.Begin(args...)
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.Kill()
		}
		if t.Failed() {
			t.Logf("standard error of the server:\n%s", s.Stderr())
		}
	})
	return s
}

// Begin starts the program, again and at the same address if it was ended before, and waits until it accepts connections.
func (s *Server) Begin(args ...string) {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(exe, append([]string{"--serve", cmp.Or(strings.TrimPrefix(s.URL, "http://"), "127.0.0.1:0")}, args...)...)
	s.cmd.Env, s.cmd.Dir = append(s.environ(), asProgram+"=1"), s.work
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	listening := make(chan string, 1)
	read := make(chan struct{})
	go func() { // ends with the program
		defer close(read)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			s.mu.Lock()
			s.stderr.WriteString(line)
			s.mu.Unlock()
			if address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
				listening <- address
			}
			if err != nil {
				return
			}
		}
	}()
	s.status = make(chan int, 1)
	cmd, status := s.cmd, s.status
	go func() { // ends with the program
		<-read
		_ = cmd.Wait()
		status <- cmd.ProcessState.ExitCode()
	}()
	select {
	case s.URL = <-listening:
	case <-read:
		s.t.Fatalf("the server did not start:\n%s", s.Stderr())
	case <-time.After(30 * time.Second):
		s.t.Fatalf("the server does not accept connections:\n%s", s.Stderr())
	}
}

// Run runs the program with other arguments beside a server that [Program] has started, on the same files, and returns what it prints.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), exe, args...)
	cmd.Env, cmd.Dir = append(s.environ(), asProgram+"=1"), s.work
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

// PID returns the id of the process of a program.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Signal sends a program a signal.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends a program at once, as a crash does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	s.Wait()
}

// Wait waits until a program has ended and returns its exit status, -1 if a signal ended it.
func (s *Server) Wait() int {
	s.t.Helper()
	select {
	case status := <-s.status:
		s.status <- status
		return status
	case <-time.After(time.Minute):
		s.t.Fatalf("the server does not end:\n%s", s.Stderr())
		return 0
	}
}

// Stderr returns what a program has written on standard error so far.
func (s *Server) Stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// Key returns the key of a subject and its entry in api.auth.keys, whose hash takes no time. Scopes are as in a
// list of YAML: read, write. n, from 1, differs between the keys of a server.
func Key(subject string, n int, scopes string) (key, entry string) {
	id := fmt.Sprintf("%012x", n)
	key = "loki_" + id + "_" + subject
	b64 := base64.RawStdEncoding.EncodeToString
	salt := []byte("salt of the test")
	sum := argon2.IDKey([]byte(key), salt, 1, 8, 1, 32)
	return key, fmt.Sprintf("      - {subject: %s, key_id: %q, key_hash: %q, scopes: [%s]}\n", subject, id, "$argon2id$v=19$m=8,t=1,p=1$"+b64(salt)+"$"+b64(sum), scopes)
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// JSON reads the body into v.
func (a Answer) JSON(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
}

// Code returns the code of an error.
func (a Answer) Code() string {
	var e struct {
		Error struct{ Code string }
	}
	_ = json.Unmarshal([]byte(a.Body), &e)
	return e.Error.Code
}

// Request returns a request. body is JSON text, or empty. headers are names and values in turn.
func (s *Server) Request(method, path, body string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.Key != "" {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Do sends a request and reads the whole answer.
func (s *Server) Do(method, path, body string, headers ...string) Answer {
	s.t.Helper()
	res, err := http.DefaultClient.Do(s.Request(method, path, body, headers...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{res.StatusCode, res.Header, string(text)}
}

// Get sends a GET request.
func (s *Server) Get(path string, headers ...string) Answer {
	s.t.Helper()
	return s.Do(http.MethodGet, path, "", headers...)
}

// Post sends a POST request.
func (s *Server) Post(path, body string, headers ...string) Answer {
	s.t.Helper()
	return s.Do(http.MethodPost, path, body, headers...)
}

// environ returns the environment of the server: this one's without what would reach the user's files.
func (s *Server) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + os.TempDir(), "LOKI_CONFIG_DIR=" + s.Dir, "LOKI_STATE_DIR=" + filepath.Join(s.Dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(s.Dir, "cache"), "GORACE=atexit_sleep_ms=0", "NO_COLOR=1",
	}
}

// Directory returns a configuration directory with these files. Those that begin with #! can be run.
func Directory(t *testing.T, files Files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
