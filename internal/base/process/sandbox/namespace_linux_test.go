//go:build amd64 || arm64

package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// TestEndsOfCommands: a command in a process namespace ends as it would without one, and nothing that it starts outlives it, however
// it left its session.
func TestEndsOfCommands(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		for i, tt := range []struct {
			name, script, out, signal string
			code                      int
		}{
			{"success", "echo out", "out\n", "", 0},
			{"status", "exit 7", "", "", 7},
			{"signal", "kill -TERM $$", "", "SIGTERM", -1},
			{"killed", "kill -KILL $$", "", "SIGKILL", -1},
			{"handled_signal", "trap 'echo got; exit 3' USR1; kill -USR1 $$; true", "got\n", "", 3},
			{"status_of_a_job", "set -m; (exit 5) & wait $! || echo $?", "5\n", "", 0},
			{"own_process", `test /proc/self/exe -ef /proc/$BASHPID/exe && echo same`, "same\n", "", 0},
			{"standard_input", "cat /dev/stdin; cat <(echo substituted)", "input\nsubstituted\n", "", 0},
			{"broken_pipe", "yes | head -1", "y\n", "", 0},
			{"in_the_background", "MARK & echo out", "out\n", "", 0},
			{"nohup", "nohup MARK >/dev/null 2>&1 & echo out", "out\n", "", 0},
			{"session", "setsid MARK >/dev/null 2>&1 & echo out", "out\n", "", 0},
			{"double_fork", "(setsid bash -c 'MARK & disown' >/dev/null 2>&1 &); echo out", "out\n", "", 0},
		} {
			t.Run(tt.name, func(t *testing.T) {
				mark := []string{"sleep", "98" + strconv.Itoa(os.Getpid()) + map[bool]string{false: "0", true: "1"}[plain] + strconv.Itoa(100+i)}
				b := w.box(write, sandbox.Needs{})
				r, err := process.Run(t.Context(), process.Command{
					Path: "bash", Args: []string{"-c", strings.ReplaceAll(tt.script, "MARK", strings.Join(mark, " "))}, Dir: w.workspace, Env: os.Environ(), Confinement: b, Stdin: strings.NewReader("input\n"),
				})
				exit, _ := errors.AsType[*process.ExitError](err)
				if string(r.Stdout) != tt.out || r.Signal != tt.signal || r.ExitCode != tt.code || (exit == nil) != (tt.code == 0) {
					t.Errorf("got %q, %q, %d, %v: %s", r.Stdout, r.Signal, r.ExitCode, err, r.Stderr)
				}
				running, _ := filepath.Glob("/proc/[0-9]*/cmdline")
				for _, file := range running {
					if text, _ := os.ReadFile(file); slices.Equal(strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00"), mark) {
						t.Errorf("%s lives", file)
					}
				}
			})
		}
	})
}

// TestServiceInNamespace: a program that runs until it is stopped gets the signal to end, and reads and prints until then.
func TestServiceInNamespace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		s, err := process.Start(process.Command{
			Path: "bash", Args: []string{"-c", "trap 'echo ended >sub/ended; exit 0' TERM; echo ready; sleep 600 & while true; do wait; done"}, Dir: w.workspace, Env: os.Environ(),
			Confinement: w.box(write, sandbox.Needs{Lasting: true}),
		})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 6)
		if _, err := s.Stdout().Read(buf); err != nil || string(buf) != "ready\n" {
			t.Errorf("got %q, %v", buf, err)
		}
		s.Stop(process.Grace)
		if text, err := os.ReadFile(filepath.Join(w.workspace, "sub", "ended")); err != nil || string(text) != "ended\n" {
			t.Errorf("got %q, %v", text, err)
		}
		if err := s.Outcome(); err != nil {
			t.Error(err)
		}
	})
}
