package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/service/auth/audit"
)

// memory is a sink that a test controls.
type memory struct {
	mu     sync.Mutex
	text   bytes.Buffer
	err    error         // of all writes
	stuck  chan struct{} // writes wait until it is closed; nil for no waiting
	closed bool
}

func (m *memory) Write(p []byte) (int, error) {
	if m.stuck != nil {
		<-m.stuck
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	return m.text.Write(p)
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// entries returns the lines so far.
func (m *memory) entries(t *testing.T) []audit.Entry {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	return entries(t, m.text.Bytes())
}

func entries(t *testing.T, text []byte) (list []audit.Entry) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var e audit.Entry
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, e)
	}
	return list
}

func add(l *audit.Log, n int) {
	for i := range n {
		l.Add(audit.Entry{RequestID: strconv.Itoa(i), Subject: "alice", Action: audit.RunStart, Target: "run:x", Result: audit.Success})
	}
}

func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		l := audit.Start(audit.Options{Sink: m, Hide: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***PASSWORD***") }})
		l.Add(audit.Entry{RequestID: "r", Subject: "alice", KeyID: "k", Action: audit.SessionRead, Target: "session:<hunter2>\n", Result: audit.Denied, Reason: "not_found", Details: map[string]any{"status": 404}})
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		const want = `{"timestamp":"2000-01-01T00:00:00Z","request_id":"r","subject":"alice","key_id":"k","action":"session_read","target":"session:<***PASSWORD***>\n","result":"denied","reason":"not_found","details":{"status":404}}` + "\n"
		if got := m.text.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !m.closed {
			t.Error("the sink is open")
		}
	})
}

// TestFailingSink: what a sink does not take waits, is counted when there is no room any more, and is said once the sink
// works. Meanwhile no caller waits.
func TestFailingSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{err: errors.New("no space left on device")}
		l := audit.Start(audit.Options{Sink: m})
		add(l, 1)
		time.Sleep(10 * time.Millisecond)
		if err := l.Err(); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("the error is %v", err)
		}
		add(l, 6000)
		lost := l.LostLines()
		if lost < 1500 || lost > 2000 {
			t.Errorf("%d lines are lost", lost)
		}
		time.Sleep(time.Minute)
		m.fail(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.Err() != nil {
			t.Errorf("the error is %v", l.Err())
		}
		got := m.entries(t)
		said := slices.IndexFunc(got, func(e audit.Entry) bool {
			return e.Action == "audit_lines_lost" && e.Details["lines"] == float64(lost)
		})
		if len(got) != 6001-int(lost)+1 || said < 0 {
			t.Errorf("%d lines, and what says how many are lost at %d", len(got), said)
		}
		add(l, 1)
		if err := l.Close(t.Context()); err == nil || !strings.Contains(err.Error(), strconv.Itoa(int(lost))) {
			t.Errorf("the error is %v", err)
		}
		if again := m.entries(t); len(again) != len(got)+1 {
			t.Errorf("%d lines at the end", len(again))
		}
	})
}

// TestStuckSink: a sink that does not return is a failure, and does not keep the program from ending.
func TestStuckSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{stuck: make(chan struct{})}
		l := audit.Start(audit.Options{Sink: m})
		add(l, 10)
		time.Sleep(time.Second)
		if l.Err() != nil {
			t.Errorf("after a second: %v", l.Err())
		}
		time.Sleep(10 * time.Second)
		if l.Err() == nil {
			t.Error("a sink that does not return is none that failed")
		}
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		if l.Close(ctx) == nil {
			t.Error("the log was closed")
		}
		close(m.stuck) // and the goroutine ends
	})
}

func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, next := &memory{err: errors.New("read-only file system")}, new(memory)
		l := audit.Start(audit.Options{Sink: broken})
		add(l, 3)
		time.Sleep(10 * time.Millisecond)
		if err := l.Replace(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !broken.closed || l.Err() != nil || len(next.entries(t)) != 3 {
			t.Errorf("closed %v, error %v, %d lines", broken.closed, l.Err(), len(next.entries(t)))
		}
		if err := l.Close(t.Context()); err != nil || !next.closed {
			t.Errorf("closed %v, error %v", next.closed, err)
		}
	})
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "audit.log")
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	f := audit.File(path, 20, 2)
	for n := range 9 {
		if _, err := f.Write([]byte("line " + strconv.Itoa(n) + "\n")); err != nil { // of 7 bytes
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{path: "line 8\n", path + ".1": "line 6\nline 7\n", path + ".2": "line 4\nline 5\n"} {
		if got := read(name); got != want {
			t.Errorf("%s has %q, want %q", filepath.Base(name), got, want)
		}
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(name), info.Mode(), err)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("too many files are kept")
	}
	// A batch is divided between files, a line never is.
	if n, err := f.Write([]byte("a\nb\nthis line is longer than any file may be\nc\n")); n != 47 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := read(path+".2") + "|" + read(path+".1") + "|" + read(path); got != "line 8\na\nb\n|this line is longer than any file may be\n|c\n" {
		t.Errorf("got %q", got)
	}
	// What logrotate does, and what fewer files mean.
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	f = audit.File(path, 20, 0)
	for _, line := range []string{"new\n", "123456789012345678\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := filepath.Glob(path + ".*"); read(path) != "123456789012345678\n" || len(names) != 1 {
		t.Errorf("%q, and %q", read(path), names)
	}
}
