package process

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRunAtTerminal: the end of the context ends a program and what it has started, also if they ignore that
// they are asked to end.
func TestRunAtTerminal(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{"asked": "", "ignored": "trap '' HUP; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			cmd := exec.CommandContext(ctx, "sh", "-c", trap+"sh -c 'echo $$; sleep 1000; :'; :")
			cmd.WaitDelay = 100 * time.Millisecond
			r, w := io.Pipe()
			cmd.Stdout = w
			child := make(chan string, 1)
			go func() { // ends with the first line, or when w is closed
				line, _ := bufio.NewReader(r).ReadString('\n')
				child <- strings.TrimSpace(line)
				end()
				_, _ = io.Copy(io.Discard, r)
			}()
			if err := RunAtTerminal(cmd); err == nil {
				t.Error("a program that was ended succeeded")
			}
			w.Close()
			pid, err := strconv.Atoi(<-child)
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := stat(pid); ok && !p.zombie {
				t.Errorf("process %d lives: %+v", pid, p)
			}
		})
	}
}

// TestHangUpWhileForking: what a program starts in the moment in which it is asked to end is asked, too.
func TestHangUpWhileForking(t *testing.T) {
	t.Parallel()
	for range 10 {
		cmd := exec.Command("sh", "-c", "echo ready; i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Error(err)
		}
		kill, err := hangUp(cmd.Process)
		if err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the signal is its end
		kill()
		for _, p := range processes() {
			if pgid, err := unix.Getpgid(p.pid); err == nil && pgid == cmd.Process.Pid && !p.zombie {
				_ = unix.Kill(-pgid, unix.SIGKILL)
				t.Fatalf("process %d was forgotten", p.pid)
			}
		}
	}
}
