package process

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
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
