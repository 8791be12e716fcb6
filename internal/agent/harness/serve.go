package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/text"
)

// readFile reads a file, or some of its lines, with the tool fs_cat.
func (t *talk) readFile(ctx context.Context, r *acp.ReadTextFileRequest) (any, error) {
	if !filepath.IsAbs(r.Path) {
		return nil, acp.Invalid("path", "an absolute path is expected")
	}
	content, err := t.make(ctx, "read", judgment{"fs_cat", arguments{Path: r.Path}}, arguments{Path: r.Path})
	if err != nil {
		return nil, err
	}
	if r.Line != nil || r.Limit != nil {
		lines := strings.SplitAfter(content, "\n")
		if r.Line != nil {
			lines = lines[min(max(*r.Line-1, 0), len(lines)):]
		}
		if r.Limit != nil {
			lines = lines[:min(max(*r.Limit, 0), len(lines))]
		}
		content = strings.Join(lines, "")
	}
	return acp.ReadTextFileResponse{Content: content}, nil
}

// writeFile writes a file with the tool fs_write.
func (t *talk) writeFile(ctx context.Context, r *acp.WriteTextFileRequest) error {
	if !filepath.IsAbs(r.Path) {
		return acp.Invalid("path", "an absolute path is expected")
	}
	_, err := t.make(ctx, "write", judgment{"fs_write", arguments{Path: r.Path}}, map[string]string{"path": r.Path, "contents": r.Content})
	return err
}

// terminal is a command that the program has this program run.
type terminal struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the next fields are set
	output string
	cut    bool
	status *acp.ExitStatus

	released bool // guarded by mu of the talk
}

// maxTerminals is how many terminals a program may have that it has not released.
const maxTerminals = 64

// createTerminal begins a command with the tool execute_command. What it prints is known when it has ended.
func (t *talk) createTerminal(ctx context.Context, r *acp.CreateTerminalRequest) (any, error) {
	command, granted := r.Command, r.Command // the second as the program asked for it
	if len(r.Args) > 0 {
		words := append([]string{r.Command}, r.Args...)
		command, granted = quoteWords(words), shellText(words)
	}
	for _, v := range r.Env {
		command = v.Name + "=" + text.Word(v.Value) + "; export " + v.Name + "; " + command
	}
	if r.Cwd != "" && filepath.Clean(r.Cwd) != t.p.Dir {
		command = "cd " + text.Word(r.Cwd) + " && " + command
	}
	args := t.p.command(command)
	// The command outlives the request, and ends with the turn.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &terminal{cancel: cancel, done: make(chan struct{})}
	t.mu.Lock()
	id, open := fmt.Sprintf("term-%d", len(t.terms)+1), 0
	for _, other := range t.terms {
		if !other.released {
			open++
		}
	}
	full := t.terms == nil || open >= maxTerminals
	if !full {
		t.terms[id] = c
	}
	t.mu.Unlock()
	if full {
		cancel()
		return nil, &acp.Error{Code: acp.InternalError, Message: fmt.Sprintf("there are at most %d terminals", maxTerminals)}
	}
	if len(r.Env) > 0 {
		granted = command // the user has not seen all of it
	}
	j := judgment{"execute_command", arguments{Command: granted}}
	go func() { // ends with the command; closeTerminals waits for it
		defer close(c.done)
		defer cancel()
		output, err := t.make(running, "run", j, args)
		code := 0
		if err != nil {
			output, code = err.Error(), 1
			if m := exitCode().FindStringSubmatch(output); m != nil {
				code, _ = strconv.Atoi(m[1])
				output = strings.TrimPrefix(output[len(m[0]):], "; ")
			}
		}
		if r.OutputByteLimit != nil && *r.OutputByteLimit >= 0 && len(output) > *r.OutputByteLimit {
			output, c.cut = strings.ToValidUTF8(output[len(output)-*r.OutputByteLimit:], ""), true
		}
		c.output, c.status = output, &acp.ExitStatus{ExitCode: &code}
	}()
	return acp.CreateTerminalResponse{TerminalID: id}, nil
}

// exitCode finds the exit status at the beginning of what a tool reports, which what the command printed follows.
var exitCode = text.Regexp(`^Tool call '[^']*' exited with code (\d+)`)

// useTerminal does what the program wants with a terminal.
func (t *talk) useTerminal(ctx context.Context, method, id string) (any, error) {
	t.mu.Lock()
	c := t.terms[id]
	if c != nil && method == acp.TerminalRelease {
		c.released = true // what it printed is shown later, too
	}
	t.mu.Unlock()
	if c == nil {
		return nil, acp.Invalid("terminalId", "unknown terminal")
	}
	switch method {
	case acp.TerminalKill, acp.TerminalRelease:
		c.cancel()
		return nil, nil
	case acp.TerminalWait:
		select {
		case <-c.done:
			return c.status, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-c.done:
		return acp.TerminalOutputResponse{Output: c.output, Truncated: c.cut, ExitStatus: c.status}, nil
	default:
		return acp.TerminalOutputResponse{}, nil
	}
}

// terminalOutput returns what the command of a terminal has printed.
func (t *talk) terminalOutput(id string) string {
	t.mu.Lock()
	c := t.terms[id]
	t.mu.Unlock()
	if c == nil {
		return ""
	}
	select {
	case <-c.done:
		return c.output
	default:
		return ""
	}
}

// closeTerminals ends the commands that still run.
func (t *talk) closeTerminals() {
	t.mu.Lock()
	var open sync.WaitGroup
	for _, c := range t.terms {
		c.cancel()
		open.Go(func() { <-c.done })
	}
	t.terms = nil // no more are made
	t.mu.Unlock()
	open.Wait()
}
