//go:build linux || darwin

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

func start(t *testing.T, script string, onStderr func(string)) *Service {
	t.Helper()
	s, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, OnStderr: onStderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func TestServiceTalks(t *testing.T) {
	var mu sync.Mutex
	var errs []string
	s := start(t, `echo begun >&2; while read -r line; do echo "got $line"; done; echo bye; echo over >&2; exit 4`, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, line)
	})
	out := bufio.NewReader(s.Stdout())
	if _, err := io.WriteString(s.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || line != "got hello\n" {
		t.Fatalf("%q, %v", line, err)
	}
	s.Stop(5 * time.Second) // the end of its input ends it
	if rest, err := io.ReadAll(out); err != nil || string(rest) != "bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
	exit, ok := errors.AsType[*ExitError](s.Outcome())
	if !ok || exit.Code != 4 {
		t.Errorf("outcome %v", s.Outcome())
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(errs, ",") != "begun,over" {
		t.Errorf("stderr %q", errs)
	}
}

func TestServiceIsAskedThenKilled(t *testing.T) {
	for _, tt := range []struct{ name, script, signal string }{
		{"ends_when_asked", `trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done`, ""},
		{"does_not", `trap '' TERM; echo ready; while :; do sleep 0.05; done`, "SIGKILL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.script, nil)
			if _, err := bufio.NewReader(s.Stdout()).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			s.Stop(400 * time.Millisecond)
			signal := ""
			if exit, ok := errors.AsType[*ExitError](s.Outcome()); ok {
				signal = exit.Signal
			}
			if signal != tt.signal {
				t.Errorf("ended by %q", signal)
			}
		})
	}
}

// The leader is dead, and so are those it started.
func TestServiceLeavesNothing(t *testing.T) {
	for name, script := range map[string]string{
		"killed":    `sleep 3600 & echo $!; exec sleep 3600`,
		"own_death": `sleep 3600 & echo $!; read -r line; kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, script, nil)
			line, err := bufio.NewReader(s.Stdout()).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if name == "killed" {
				s.Kill()
			} else if _, err := io.WriteString(s.Stdin(), "\n"); err != nil {
				t.Fatal(err)
			}
			<-s.Done()
			dead(t, fmt.Appendln(nil, line, s.PID()))
		})
	}
}

func TestServiceNotFound(t *testing.T) {
	_, err := Start(Command{Path: "no-such-program-here"})
	if _, ok := errors.AsType[*StartError](err); !ok {
		t.Errorf("got %v", err)
	}
}
