package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
)

// Program is the program of an agent on this machine.
type Program struct {
	*Setting
	Agent   string // name of the agent
	Version string // of this program
	Dir     string // in which it works, absolute
	Home    string // what ~ means
	Env     []string
	Path    string // of the program; empty if it is missing
	Refused string // path of the program if it is missing but for the workspace, whose programs are not looked for

	Sandbox *sandbox.Sandbox
	// Held is what the process may do. If it only Looks, it changes nothing in Dir.
	Held  sandbox.Declaration
	Looks bool

	Snapshot bool // answers have the files that their turns changed

	Stderr func(line string) // gets what it prints for people; may be nil
}

// CheckInstalled returns the error of a program that is not installed, nil if it is.
func (p *Program) CheckInstalled() error {
	if p.Path != "" {
		return nil
	}
	if p.Refused != "" {
		return fault.New(fault.NotFound, "agent %s: the program %s is only in the workspace, at %s, and is not started by its name there: others may have written it", p.Agent, p.Command[0], p.Refused).
			WithHint("install it outside of the workspace (%s), or write its absolute path in acp under harness in the agent's config.yaml, with env, hosts and state", cmp.Or(p.Install, "and add it to PATH"))
	}
	err := fault.New(fault.NotFound, "agent %s: the program %s is not installed", p.Agent, p.Command[0])
	if p.Install != "" {
		return err.WithHint("install it: %s", p.Install)
	}
	return err.WithHint("install it, or correct acp under harness in the agent's config.yaml")
}

// Confined reports whether the kernel holds the process.
func (p *Program) Confined() bool { return p.Sandbox.Support().Files }

// places returns the places of the program, absolute.
func (p *Program) places() []string {
	var places []string
	for _, place := range p.State {
		if below, ok := strings.CutPrefix(place, "~/"); ok && p.Home != "" {
			place = filepath.Join(p.Home, below)
		}
		if filepath.IsAbs(place) {
			places = append(places, place)
		}
	}
	return places
}

// maxLogged is how much of what a process prints for people is passed on, in bytes.
const maxLogged = 1 << 20

// child is the program while it runs.
type child struct {
	*process.Service
	box  *sandbox.Box // nil without a sandbox
	last func() string
}

// start starts the program. reach leads it to servers of this program, by ports.
func (p *Program) start(reach map[int]sandbox.Dialer) (*child, error) {
	c := new(child)
	var mu sync.Mutex
	last, logged := "", 0
	c.last = func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	command := process.Command{
		Path: p.Path, Args: p.Command[1:], Dir: p.Dir, Env: p.Env,
		OnStderr: func(line string) {
			if line = text.Printable(line); strings.TrimSpace(line) == "" {
				return
			}
			mu.Lock()
			last = text.OneLine(line, 200)
			before := logged
			logged += len(line)
			full := logged > maxLogged
			mu.Unlock()
			switch {
			case p.Stderr == nil || before > maxLogged:
			case full:
				p.Stderr(fmt.Sprintf("(it printed more than %d MiB on standard error: the rest is not logged)", maxLogged>>20))
			default:
				p.Stderr(line)
			}
		},
	}
	if p.Confined() {
		for _, place := range p.places() { // what is not there cannot be opened to it
			if _, err := os.Lstat(place); os.IsNotExist(err) && !strings.HasSuffix(place, ".json") {
				_ = os.MkdirAll(place, 0o700) // the program reports what it misses
			}
		}
		needs := sandbox.Needs{Read: p.files(), Write: p.places(), Looks: p.Looks, Reach: reach}
		c.box = p.Sandbox.Box(p.Held, needs)
		command.Confinement = c.box
	}
	var err error
	if c.Service, err = process.Start(command); err != nil {
		return nil, fault.Wrap(fault.Tool, err, "agent %s: the program %s cannot be started", p.Agent, p.Command[0])
	}
	return c, nil
}

// files returns what the program needs to start, wherever it is: itself, and the packages of Node.js beside the one that a link leads into.
func (p *Program) files() []string {
	files := []string{p.Path}
	real, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return files
	}
	const modules = string(filepath.Separator) + "node_modules"
	if before, _, ok := strings.Cut(real, modules+string(filepath.Separator)); ok {
		return append(files, before+modules)
	}
	return append(files, real)
}

// stopGrace is how long a program may take to end after it was asked to.
const stopGrace = 5 * time.Second

// end stops the program and returns what the sandbox stopped, for people; empty for nothing.
func (c *child) end() string {
	c.Stdin().Close()
	select {
	case <-c.Done():
	case <-time.After(stopGrace / 5):
	}
	c.Terminate(stopGrace)
	if c.box == nil {
		return ""
	}
	if refused := c.box.Refusals("", false); len(refused) > 0 {
		return sandbox.Refusals(refused)
	}
	return ""
}

// lines passes on the messages that a program prints, and ends at the first line that is not one.
type lines struct {
	in   *bufio.Scanner
	rest []byte

	mu  sync.Mutex
	err error
}

// errLine is what is wrong with a line of a program.
var errLine = errors.New("it printed a line on its standard output that is not a message of the protocol")

func newLines(r io.Reader) *lines {
	in := bufio.NewScanner(r)
	in.Buffer(nil, acp.MaxLine)
	in.Split(func(data []byte, _ bool) (int, []byte, error) { return bufio.ScanLines(data, false) }) // a line without an end was cut off
	return &lines{in: in}
}

// Read implements [io.Reader].
func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.next()
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.err = err
			return 0, io.EOF
		}
		l.rest = line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next returns the next message with a line feed.
func (l *lines) next() ([]byte, error) {
	for l.in.Scan() {
		message := bytes.TrimSpace(l.in.Bytes())
		switch {
		case len(message) == 0:
		case message[0] != '{' || !json.Valid(message):
			return nil, fmt.Errorf("%w: %s", errLine, text.OneLine(text.Printable(string(message[:min(len(message), 200)])), 80))
		default:
			return append(bytes.Clone(message), '\n'), nil
		}
	}
	if errors.Is(l.in.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("it printed a line that is longer than %d MiB", acp.MaxLine>>20)
	}
	return nil, io.EOF
}

// mistake returns why nothing more is read, nil for the end of the program.
func (l *lines) mistake() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// within calls f with a limit of time, which is named in the error.
func within(ctx context.Context, limit time.Duration, what string, f func(context.Context) error) error {
	late := fault.New(fault.Tool, "%s took longer than %s", what, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		return late
	}
	return err
}
