// Package harnesstest is a program that is an agent by the Agent Client Protocol and does what a script says, for tests.
//
// The script is the file that FOREIGN_SCRIPT names, in the directory FOREIGN_STATE if it is not absolute: a line for each action, of which the first word says what it is. The lines after one that
// begins with "---" are for a prompt that continues an interrupted one. FOREIGN_CAN lists abilities: resume, load, http, auth, modes, and also what it does
// wrong: deaf (it ignores cancellations), noload (it says that it loads sessions), early (it sends updates before a session has an id). Sessions are
// files in the directory that FOREIGN_STATE names.
package harnesstest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/harness/acp"
)

// Main is the program. It returns when its input ends.
func Main() {
	a := &scripted{state: os.Getenv("FOREIGN_STATE"), canceled: make(chan struct{})}
	a.conn = acp.New(os.Stdin, os.Stdout, a)
	_ = a.conn.Serve(context.Background())
}

// errBadStop has a prompt answered with what is not of the protocol.
var errBadStop = errors.New("a stop reason that is a number")

type scripted struct {
	conn  *acp.Conn
	state string

	mu       sync.Mutex
	canceled chan struct{}
	servers  []acp.MCPServer
	authed   bool
	mode     string
	late     string // is said after the turn
}

func can(what string) bool {
	return strings.Contains(","+os.Getenv("FOREIGN_CAN")+",", ","+what+",")
}

// Notice implements [acp.Handler].
func (a *scripted) Notice(_ context.Context, method string, _ json.RawMessage) {
	if method == acp.SessionCancel && !can("deaf") {
		a.mu.Lock()
		defer a.mu.Unlock()
		select {
		case <-a.canceled:
		default:
			close(a.canceled)
		}
	}
}

// Request implements [acp.Handler].
func (a *scripted) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	return func() (any, error) {
		switch method {
		case acp.Initialize:
			r := acp.InitializeResponse{ProtocolVersion: acp.Version}
			if can("old") {
				r.AgentInfo = &acp.Implementation{Name: "scripted", Version: "0.49.0"}
			}
			c := &r.AgentCapabilities
			c.LoadSession, c.MCPCapabilities.HTTP = can("load") || can("noload"), can("http")
			if can("resume") {
				c.SessionCapabilities.Resume = new(acp.Supported)
			}
			return r, nil
		case acp.Authenticate:
			a.authed = true
			return nil, nil
		case acp.SessionNew:
			if can("auth") && !a.authed {
				return nil, &acp.Error{Code: acp.AuthRequired, Message: "Authentication required"}
			}
			var r acp.NewSessionRequest
			if err := acp.Decode(params, &r); err != nil {
				return nil, err
			}
			a.servers = r.MCPServers
			id := fmt.Sprintf("s-%d", time.Now().UnixNano())
			if can("early") {
				a.update(id, acp.Commands{Kind: acp.CommandsUpdate, AvailableCommands: []acp.Command{{Name: "init", Description: "x"}}})
				a.update(id, acp.Usage{Kind: acp.UsageUpdate, Used: 1, Size: 2})
			}
			return a.opened(acp.SessionResponse{SessionID: id, ConfigOptions: []acp.ConfigOption{{Type: "select", ID: "model", Name: "Model", Category: "model", CurrentValue: "small"}}}), a.save(id, "")
		case acp.SetMode:
			var r acp.SetModeRequest
			err := acp.Decode(params, &r)
			a.mode = r.ModeID
			return nil, errors.Join(err, os.WriteFile(filepath.Join(a.state, "mode"), []byte(a.mode), 0o600))
		case acp.SetConfigOption:
			return acp.SetConfigOptionResponse{ConfigOptions: []acp.ConfigOption{}}, nil
		case acp.SessionResume, acp.SessionLoad:
			var r acp.LoadSessionRequest
			if err := acp.Decode(params, &r); err != nil {
				return nil, err
			}
			a.servers = r.MCPServers
			said, err := os.ReadFile(filepath.Join(a.state, r.SessionID))
			if err != nil {
				return nil, &acp.Error{Code: acp.ResourceNotFound, Message: "no such session"}
			}
			if method == acp.SessionLoad && can("noload") {
				return nil, &acp.Error{Code: acp.MethodNotFound, Message: "Method not found: session/load"}
			}
			if method == acp.SessionLoad {
				a.update(r.SessionID, acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text("the past: " + string(said))})
			}
			return a.opened(acp.SessionResponse{}), nil
		case acp.SessionPrompt:
			var r acp.PromptRequest
			if err := acp.Decode(params, &r); err != nil {
				return nil, err
			}
			stop, err := a.play(ctx, r)
			if errors.Is(err, errBadStop) {
				return map[string]int{"stopReason": 5}, nil
			}
			return acp.Followed{Result: acp.PromptResponse{StopReason: stop}, Then: func() {
				if a.late != "" {
					a.update(r.SessionID, acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text(a.late)})
				}
			}}, err
		}
		return nil, &acp.Error{Code: acp.MethodNotFound, Message: method}
	}
}

// opened returns the answer about a session, with its modes.
func (a *scripted) opened(r acp.SessionResponse) acp.SessionResponse {
	if can("modes") {
		kept, _ := os.ReadFile(filepath.Join(a.state, "mode"))
		a.mode = cmp.Or(string(kept), "default")
		r.Modes = &acp.SessionModeState{CurrentModeID: a.mode, AvailableModes: []acp.SessionMode{{ID: "default", Name: "Default"}, {ID: "plan", Name: "Plan"}}}
	}
	return r
}

func (a *scripted) save(id, text string) error {
	f, err := os.OpenFile(filepath.Join(a.state, id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func (a *scripted) update(session string, u any) {
	_ = a.conn.Notify(acp.SessionUpdate, acp.SessionNotification{SessionID: session, Update: u})
}

// play does what the script says.
func (a *scripted) play(ctx context.Context, r acp.PromptRequest) (stop string, err error) {
	a.mu.Lock()
	a.canceled = make(chan struct{})
	canceled := a.canceled
	a.mu.Unlock()
	var prompt []string
	for _, b := range r.Prompt {
		prompt = append(prompt, b.Text)
	}
	asked := strings.Join(prompt, "\n")
	_ = a.save(r.SessionID, "> "+asked+"\n")
	path := os.Getenv("FOREIGN_SCRIPT")
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.state, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	data = []byte(strings.NewReplacer("HOME/", os.Getenv("HOME")+"/", "WORK/", filepath.Dir(os.Getenv("HOME"))+"/").Replace(string(data)))
	script, resumed, _ := strings.Cut(string(data), "\n---\n")
	if strings.Contains(asked, "interrupted") {
		script = resumed
	}
	mute := false // only say speaks
	session := r.SessionID
	say := func(text string) {
		if mute {
			return
		}
		_ = a.save(session, text+"\n")
		a.update(session, acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text(text)})
	}
	calls := 0
	lines := bufio.NewScanner(strings.NewReader(script))
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		if verb == "when" { // WORD ACTION: only if the prompt has the word
			word, action, _ := strings.Cut(rest, " ")
			if !strings.Contains(asked, word) {
				continue
			}
			verb, rest, _ = strings.Cut(action, " ")
		}
		switch verb {
		case "":
		case "mute":
			mute = true
		case "say":
			was := mute
			mute = false
			say(strings.ReplaceAll(rest, `\n`, "\n"))
			mute = was
		case "prompt": // what was asked
			say(asked)
		case "mode": // of the session
			say(fmt.Sprintf("mode %s\n", a.mode))
		case "late":
			a.late = rest
		case "environ": // the names of all variables
			var names []string
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			slices.Sort(names)
			say("environ " + strings.Join(names, " ") + "\n")
		case "think":
			a.update(r.SessionID, acp.Chunk{Kind: acp.AgentThoughtChunk, Content: acp.Text(rest)})
		case "cost":
			amount, _ := strconv.ParseFloat(rest, 64)
			a.update(r.SessionID, acp.Usage{Kind: acp.UsageUpdate, Used: 1, Size: 2, Cost: &acp.Cost{Amount: amount, Currency: "USD"}})
		case "plan":
			a.update(r.SessionID, acp.Plan{Kind: acp.PlanUpdate, Entries: []acp.PlanEntry{{Content: rest, Priority: "high", Status: acp.Pending}}})
		case "tool": // KIND INPUT
			calls++
			kind, input, _ := strings.Cut(rest, " ")
			id := fmt.Sprint("call-", calls)
			a.update(r.SessionID, acp.ToolCall{Kind: acp.ToolCallBegins, ToolCallID: id, Title: kind, ToolKind: kind, Status: acp.InProgress, RawInput: json.RawMessage(input)})
			a.update(r.SessionID, acp.ToolCall{Kind: acp.ToolCallChanges, ToolCallID: id, Status: acp.Completed, Content: []acp.ToolCallContent{{Type: "content", Content: new(acp.Text("done"))}}})
		case "ask": // KIND INPUT: asks for permission, and says the answer
			calls++
			kind, input, _ := strings.Cut(rest, " ")
			var answer acp.PermissionResponse
			err := a.conn.Call(ctx, acp.RequestPermission, acp.PermissionRequest{
				SessionID: r.SessionID,
				ToolCall:  acp.ToolCall{ToolCallID: fmt.Sprint("call-", calls), Title: kind, ToolKind: kind, RawInput: json.RawMessage(input)},
				Options: []acp.PermissionOption{
					{OptionID: "always", Name: "Always", Kind: acp.AllowAlways}, {OptionID: "yes", Name: "Yes", Kind: acp.AllowOnce}, {OptionID: "no", Name: "No", Kind: acp.RejectOnce},
				},
			}, &answer)
			say(fmt.Sprintf("%s: %s%s%s\n", rest, answer.Outcome.Outcome, suffix(answer.Outcome.OptionID), suffix(text(err))))
		case "askdiff": // PATH TEXT: asks whether it may replace the text "old"
			calls++
			path, content, _ := strings.Cut(rest, " ")
			var answer acp.PermissionResponse
			err := a.conn.Call(ctx, acp.RequestPermission, acp.PermissionRequest{
				SessionID: r.SessionID, Options: []acp.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: acp.AllowOnce}, {OptionID: "no", Name: "No", Kind: acp.RejectOnce}},
				ToolCall: acp.ToolCall{
					ToolCallID: fmt.Sprint("call-", calls), Title: "Edit", ToolKind: "edit", RawInput: json.RawMessage(`{"x": 1}`),
					Content: []acp.ToolCallContent{{Type: "diff", Path: path, OldText: new("old"), NewText: &content}},
				},
			}, &answer)
			say(fmt.Sprintf("askdiff: %s%s%s\n", answer.Outcome.Outcome, suffix(answer.Outcome.OptionID), suffix(text(err))))
		case "fsread":
			var answer acp.ReadTextFileResponse
			err := a.conn.Call(ctx, acp.ReadTextFile, acp.ReadTextFileRequest{SessionID: r.SessionID, Path: rest}, &answer)
			say(fmt.Sprintf("fsread %s: %s%s\n", rest, answer.Content, failed(err)))
		case "fswrite": // PATH TEXT
			path, content, _ := strings.Cut(rest, " ")
			err := a.conn.Call(ctx, acp.WriteTextFile, acp.WriteTextFileRequest{SessionID: r.SessionID, Path: path, Content: content}, nil)
			say(fmt.Sprintf("fswrite %s:%s\n", path, failed(err)))
		case "term": // COMMAND, or its words in JSON
			req, words := acp.CreateTerminalRequest{SessionID: r.SessionID, Command: rest}, []string(nil)
			if json.Unmarshal([]byte(rest), &words) == nil {
				req.Command, req.Args = words[0], words[1:]
			}
			var made acp.CreateTerminalResponse
			err := a.conn.Call(ctx, acp.TerminalCreate, req, &made)
			var out acp.TerminalOutputResponse
			if err == nil {
				ref := acp.TerminalRequest{SessionID: r.SessionID, TerminalID: made.TerminalID}
				err = errors.Join(a.conn.Call(ctx, acp.TerminalWait, ref, nil), a.conn.Call(ctx, acp.TerminalOutput, ref, &out), a.conn.Call(ctx, acp.TerminalRelease, ref, nil))
			}
			code := -1
			if out.ExitStatus != nil && out.ExitStatus.ExitCode != nil {
				code = *out.ExitStatus.ExitCode
			}
			say(fmt.Sprintf("term %s: %d %s%s\n", rest, code, strings.TrimSpace(out.Output), failed(err)))
		case "elicit": // schema of a form
			var schema acp.ElicitationSchema
			_ = json.Unmarshal([]byte(rest), &schema)
			var answer acp.ElicitationResponse
			err := a.conn.Call(ctx, acp.ElicitationCreate, acp.ElicitationRequest{SessionID: r.SessionID, Mode: acp.ElicitationForm, Message: "What?", RequestedSchema: &schema}, &answer)
			content, _ := json.Marshal(answer.Content)
			say(fmt.Sprintf("elicit: %s %s%s\n", answer.Action, content, failed(err)))
		case "read": // by itself
			data, err := os.ReadFile(rest)
			say(fmt.Sprintf("read %s: %s%s\n", rest, strings.TrimSpace(string(data)), failed(err)))
		case "write": // by itself: PATH TEXT
			path, content, _ := strings.Cut(rest, " ")
			say(fmt.Sprintf("write %s:%s\n", path, failed(os.WriteFile(path, []byte(content+"\n"), 0o600))))
		case "append": // by itself: PATH TEXT
			path, content, _ := strings.Cut(rest, " ")
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString(content + "\n")
				err = errors.Join(err, f.Close())
			}
			say(fmt.Sprintf("append %s:%s\n", path, failed(err)))
		case "env":
			say(fmt.Sprintf("env %s: %q\n", rest, os.Getenv(rest)))
		case "connect":
			c, err := net.DialTimeout("tcp", rest, 5*time.Second)
			if err == nil {
				c.Close()
			}
			say(fmt.Sprintf("connect %s:%s\n", rest, failed(err)))
		case "get":
			resp, err := (&http.Client{Timeout: 5 * time.Second}).Get(rest)
			status := ""
			if err == nil {
				status = " " + resp.Status
				resp.Body.Close()
			}
			say(fmt.Sprintf("get %s:%s%s\n", rest, status, failed(err)))
		case "run":
			out, err := exec.Command("/bin/sh", "-c", rest).CombinedOutput()
			say(fmt.Sprintf("run %s: %s%s\n", rest, strings.TrimSpace(string(out)), failed(err)))
		case "mcp": // TOOL ARGUMENTS
			name, args, _ := strings.Cut(rest, " ")
			out, err := a.mcp(ctx, name, args)
			say(fmt.Sprintf("mcp %s: %s%s\n", name, out, failed(err)))
		case "spawn": // a process that outlives its parent
			_ = exec.Command("/bin/sh", "-c", rest).Start()
		case "waitfile":
			for {
				if _, err := os.Stat(rest); err == nil {
					break
				}
				select {
				case <-canceled:
					return acp.Cancelled, nil
				case <-time.After(5 * time.Millisecond):
				}
			}
		case "hang":
			select {
			case <-canceled:
				return acp.Cancelled, nil
			case <-time.After(5 * time.Minute):
			}
		case "badstop": // answers with a number where a text is expected
			return "", errBadStop
		case "broken": // an error of which only the data say what is wrong
			return "", &acp.Error{Code: acp.InternalError, Message: "Internal error", Data: map[string]string{"details": rest}}
		case "other": // asks in the name of another session from now on
			r.SessionID = "other"
		case "flood": // N lines on standard error
			n, _ := strconv.Atoi(rest)
			for range n {
				fmt.Fprintln(os.Stderr, strings.Repeat("x", 99))
			}
		case "raw":
			_, _ = io.WriteString(os.Stdout, rest+"\n")
		case "long":
			_, _ = io.WriteString(os.Stdout, `{"jsonrpc":"2.0","method":"x","params":"`+strings.Repeat("x", acp.MaxLine)+"\"}\n")
		case "exit":
			fmt.Fprintln(os.Stderr, "the scripted agent ends")
			code, _ := strconv.Atoi(rest)
			os.Exit(code)
		case "stop":
			return rest, nil
		default:
			return "", fmt.Errorf("unknown action %q", verb)
		}
		select {
		case <-canceled:
			return acp.Cancelled, nil
		default:
		}
	}
	return acp.EndTurn, nil
}

// mcp calls a tool of the server that the session has.
func (a *scripted) mcp(ctx context.Context, name, args string) (string, error) {
	if len(a.servers) == 0 {
		return "", errors.New("no server")
	}
	s := a.servers[0]
	id := ""
	post := func(body string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		for _, h := range s.Headers {
			req.Header.Set(h.Name, h.Value)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if id != "" {
			req.Header.Set("Mcp-Session-Id", id)
		}
		resp, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
			id = s
		}
		data, err := io.ReadAll(resp.Body)
		return string(data), err
	}
	if _, err := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); err != nil {
		return "", err
	}
	if _, err := post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return "", err
	}
	out, err := post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`)
	if i := strings.Index(out, `{"jsonrpc"`); i >= 0 {
		out = strings.TrimSpace(out[i:])
	}
	return out, err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func failed(err error) string {
	if err == nil {
		return " ok"
	}
	return " failed: " + err.Error()
}
