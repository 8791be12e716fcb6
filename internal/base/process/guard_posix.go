//go:build linux || darwin

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guard sees to it that no leader outlives this process, however that ends. It is a
// /bin/sh in another session, which reads from a pipe whose other end only this process
// holds. It reads the id of each leader that starts, and of each that has ended. When the pipe
// ends, it kills the groups and sessions of the leaders that are left, and ends too.
//
// There is one for all leaders, as starting it takes a millisecond and a line to it takes
// a few microseconds. A system without /bin/sh has none.
type guard struct {
	mu      sync.Mutex // guards what follows
	cmd     *exec.Cmd  // nil while there is no shell
	pipe    *os.File   // our end
	leaders map[int]struct{}
}

// theGuard is started with the first leader, and again if it was killed.
var theGuard = guard{leaders: make(map[int]struct{})}

// guardScript reads lines of + or - and the id of a leader. Groups are killed first. Jobs
// that have groups of their own are in the leader's session, which Linux can list.
const guardScript = `
pids=
while read -r op pid; do
  case $op in
  +) pids="$pids $pid" ;;
  -) left=; for p in $pids; do [ "$p" = "$pid" ] || left="$left $p"; done; pids=$left ;;
  esac
done
[ -n "$pids" ] || exit 0
for p in $pids; do kill -9 -"$p"; done
for f in /proc/[0-9]*/stat; do
  read -r line <"$f" || continue
  rest=${line##*") "}
  [ "$rest" != "$line" ] || continue
  set -- $rest
  f=${f#/proc/}
  for p in $pids; do [ "$4" != "$p" ] || kill -9 "${f%/stat}"; done
done`

// guardPatience bounds the wait for a guard that does not read, as one that was stopped.
const guardPatience = time.Second

// ready starts the guard if there is none yet, so that it is there before the leader is. The error says that a limit of the
// system is reached.
func (g *guard) ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		if err := g.start(); IsLimit(err) {
			return fmt.Errorf("the guard of its processes: %w", err)
		}
	}
	return nil
}

// add has the leader guarded until it is removed.
func (g *guard) add(pid int) (remove func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leaders[pid] = struct{}{}
	if g.cmd == nil || !g.send('+', pid) {
		_ = g.start() // it was killed, or could not be started before
	}
	return func() { g.remove(pid) }
}

func (g *guard) remove(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leaders, pid)
	if g.cmd != nil {
		g.send('-', pid)
	}
}

// send writes one line. It reports false where that fails: there is no guard any more then.
func (g *guard) send(op byte, pid int) bool {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardPatience))
	if _, err := fmt.Fprintf(g.pipe, "%c %d\n", op, pid); err == nil {
		return true
	}
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	_ = g.pipe.Close()
	g.cmd, g.pipe = nil, nil
	return false
}

// start starts the shell and sends it all leaders.
func (g *guard) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", strings.TrimSpace(guardScript), "loki-guard"},
		Dir: "/", Env: []string{}, Stdin: r, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	g.cmd, g.pipe = cmd, w
	for pid := range g.leaders {
		if !g.send('+', pid) {
			break
		}
	}
	return nil
}
