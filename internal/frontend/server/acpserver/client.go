package acpserver

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/process"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// clientTime bounds a request about a file of the client.
const clientTime = 10 * time.Second

// client returns what the client does for tools.
func (s *sess) client() (c builtin.Client) {
	can, set := s.server.capabilities(), s.app.Config.ACP
	if set.ClientFiles && (can.FS.ReadTextFile || can.FS.WriteTextFile) {
		c.Files = files{s}
	}
	if set.ClientTerminals && can.Terminal {
		c.Terminal = s.terminal
	}
	return c
}

// files are those of the client.
type files struct{ s *sess }

// path returns a path as the client knows it: below the directory of the session as it was given.
func (f files) path(real string) string {
	if rel, err := filepath.Rel(f.s.server.dir, real); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(f.s.place.cwd, rel)
	}
	return real
}

// ReadText implements fsys.Files.
func (f files) ReadText(ctx context.Context, path string) (string, error) {
	if !f.s.server.capabilities().FS.ReadTextFile {
		return "", context.Canceled // the file on the disk counts
	}
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	var r acp.ReadTextFileResponse
	err := f.s.server.conn.Call(ctx, acp.ReadTextFile, acp.ReadTextFileRequest{SessionID: f.s.id, Path: f.path(path)}, &r)
	return r.Content, err
}

// WriteText implements fsys.Files.
func (f files) WriteText(ctx context.Context, path, text string) (bool, error) {
	if !f.s.server.capabilities().FS.WriteTextFile {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	return true, f.s.server.conn.Call(ctx, acp.WriteTextFile, acp.WriteTextFileRequest{SessionID: f.s.id, Path: f.path(path), Content: text}, nil)
}

// terminal runs a command in a terminal of the client, which shows it.
func (s *sess) terminal(ctx context.Context, call tool.Call, c process.Command) (r tool.Result, err error) {
	conn := s.server.conn
	create := acp.CreateTerminalRequest{SessionID: s.id, Command: c.Path, Args: c.Args, Cwd: s.place.cwd, OutputByteLimit: new(int(c.MaxStdout))}
	set := make(map[string]string)
	call.Identify(set)
	for name, value := range set {
		create.Env = append(create.Env, acp.EnvVariable{Name: name, Value: value})
	}
	var made acp.CreateTerminalResponse
	if err := conn.Call(ctx, acp.TerminalCreate, create, &made); err != nil {
		return r, err
	}
	of := acp.TerminalRequest{SessionID: s.id, TerminalID: made.TerminalID}
	end := func(method string) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientTime)
		defer cancel()
		_ = conn.Call(last, method, of, nil) // or the client has gone
	}
	defer end(acp.TerminalRelease)
	s.view.showTerminal(call.Key, made.TerminalID)
	var status acp.ExitStatus
	if err := conn.Call(ctx, acp.TerminalWait, of, &status); err != nil {
		end(acp.TerminalKill)
		return r, err
	}
	var out acp.TerminalOutputResponse
	if err := conn.Call(ctx, acp.TerminalOutput, of, &out); err != nil {
		return r, err
	}
	r.Output = out.Output
	switch {
	case status.Signal != nil && *status.Signal != "":
		err = &process.ExitError{Program: filepath.Base(c.Path), Code: -1, Signal: *status.Signal}
	case status.ExitCode != nil && *status.ExitCode != 0:
		err = &process.ExitError{Program: filepath.Base(c.Path), Code: *status.ExitCode}
	}
	return r, err
}

// showTerminal has the client show a terminal in the call with a key.
func (v *view) showTerminal(key, terminal string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	place := callPlace().FindStringSubmatch(key)
	for _, c := range v.calls {
		if place != nil && c.tool == "execute_command" && !c.over && strconv.Itoa(c.place) == place[1] {
			c.Content = append(c.Content, acp.ToolCallContent{Type: "terminal", TerminalID: terminal})
			v.s.send(acp.ToolCall{Kind: acp.ToolCallChanges, ToolCallID: c.ToolCallID, Content: c.Content})
			return
		}
	}
}
