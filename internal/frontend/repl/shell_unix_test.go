//go:build linux || darwin

package repl_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignalsEndCommands: a signal ends the REPL and the command of the shell that has the terminal, with what
// that has started.
func TestSignalsEndCommands(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"terminated": syscall.SIGTERM, "hung_up": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, map[string]string{"rules.yaml": slow})
			x.types("!sh -c 'echo $$ >child; echo ready.; sleep 1000; :'; :\r")
			x.sees("ready.\r\n")
			x.signal(sig)
			x.leaves(130)
			written, err := os.ReadFile(filepath.Join(x.dir, "child"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
			if err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(patience); alive(pid); {
				if time.Now().After(end) {
					t.Fatalf("process %d lives", pid)
				}
			}
		})
	}
}

// alive reports whether a process runs. One that is dead may wait for its parent to notice.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
