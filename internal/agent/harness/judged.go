package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin/patch"
)

// judged is what a call that a program makes itself is judged as: a tool of this program with the same name, which does nothing when it is called.
type judged struct {
	name   string
	hints  tool.Hints
	schema string // members of the arguments
	// question returns the question whether the call may be made, empty if it needs no consent.
	question func(p *Program, a arguments) string
	p        *Program
}

// arguments are those of all tools that are judged.
type arguments struct {
	Agent    string          `json:"agent,omitempty"`
	Path     string          `json:"path,omitempty"`
	Contents string          `json:"contents,omitempty"`
	Command  string          `json:"command,omitempty"`
	Sandbox  sandbox.Level   `json:"sandbox,omitempty"` // of a command
	Hosts    []string        `json:"hosts,omitempty"`
	URL      string          `json:"url,omitempty"`
	Title    string          `json:"title,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Before   *string         `json:"before,omitempty"`
}

// otherCall is the tool as which calls of an unknown shape are judged.
const otherCall = "foreign_call"

// JudgedTools returns the tools as which the calls of the program are judged.
func (p *Program) JudgedTools() []tool.Tool {
	const path = `"path":{"type":"string"}`
	tools := []*judged{
		{name: "fs_cat", hints: tool.Hints{ReadOnly: true}, schema: path},
		{name: "fs_write", hints: tool.Hints{Destructive: true}, schema: path + `,"contents":{"type":"string"},"before":{"type":"string"}`, question: writeQuestion},
		{name: "fs_rm", hints: tool.Hints{Destructive: true}, schema: path, question: func(p *Program, a arguments) string {
			return fmt.Sprintf("May %s remove or move %s?", p.Agent, p.displayPath(a.Path))
		}},
		{name: "execute_command", hints: tool.Hints{Destructive: true}, schema: `"command":{"type":"string"},"sandbox":{"type":"string"},"hosts":{"type":"array"}`, question: func(p *Program, a arguments) string {
			return fmt.Sprintf("May %s run this command?\n\n%s", p.Agent, indentText(a.Command))
		}},
		{name: "fetch_url_via_curl", hints: tool.Hints{ReadOnly: true}, schema: `"url":{"type":"string"}`},
		{name: otherCall, hints: tool.Hints{Destructive: true}, schema: `"agent":{"type":"string"},"title":{"type":"string"},"input":{}`, question: func(p *Program, a arguments) string {
			q := fmt.Sprintf("May %s do this: %s?", p.Agent, text.Visible(text.OneLine(a.Title, 200)))
			if len(a.Input) > 0 && string(a.Input) != "null" {
				q += "\n\n" + indentText(text.Cut(string(a.Input), maxShown))
			}
			return q
		}},
	}
	list := make([]tool.Tool, 0, len(tools))
	for _, t := range tools {
		t.p = p
		switch t.name {
		case "execute_command":
			list = append(list, judgedCommand{t})
		case "fetch_url_via_curl":
			list = append(list, judgedFetch{t})
		default:
			list = append(list, t)
		}
	}
	return list
}

// maxShown is how much of a text a question shows, in bytes.
const maxShown = 8 << 10

func indentText(s string) string {
	return "    " + strings.ReplaceAll(text.Visible(strings.TrimRight(s, "\n")), "\n", "\n    ")
}

// displayPath returns a path for people: from the workspace, if it is in it.
func (p *Program) displayPath(path string) string {
	if rel, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return text.Visible(path)
}

// writeQuestion asks about a file that is changed. One that is made in the workspace needs no consent.
func writeQuestion(p *Program, a arguments) string {
	path := a.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	rel, err := filepath.Rel(p.Dir, path)
	inside := err == nil && filepath.IsLocal(rel)
	if _, err := os.Lstat(path); inside && os.IsNotExist(err) {
		return ""
	}
	q := fmt.Sprintf("May %s change %s?", p.Agent, p.displayPath(a.Path))
	if a.Contents != "" || a.Before != nil {
		diff, _ := patch.Diff(*cmp.Or(a.Before, new("")), a.Contents)
		q += "\n\n" + indentText(text.Cut(diff, maxShown))
	}
	return q
}

// Declaration implements [tool.Tool].
func (t *judged) Declaration() chat.Tool {
	return chat.Tool{Name: t.name, Parameters: json.RawMessage(`{"type":"object","properties":{` + t.schema + `}}`)}
}

// Hints implements [tool.Tool].
func (t *judged) Hints() tool.Hints { return t.hints }

// Call implements [tool.Tool].
func (t *judged) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// Consent implements [tool.Guard].
func (t *judged) Consent(call tool.Call) string {
	a, err := tool.Decode[arguments](call)
	switch {
	case t.question == nil:
		return ""
	case err != nil:
		return tool.PlainQuestion(call)
	}
	return t.question(t.p, a)
}

// judgedCommand is a command that the program runs in its own sandbox.
type judgedCommand struct{ *judged }

// Request implements [tool.Confined].
func (t judgedCommand) Request(call tool.Call) (tool.Request, error) {
	a, err := tool.Decode[arguments](call)
	if t.p.Looks {
		a.Sandbox = sandbox.Read
	}
	return tool.Request{
		Text: a.Command, Missing: t.p.Sandbox.Support().Missing, Declaration: sandbox.Declaration{Level: a.Sandbox, Hosts: a.Hosts},
	}, err
}

// Reading implements [tool.Reading].
func (t judgedCommand) Reading() (chat.Tool, bool) { return t.Declaration(), t.p.Confined() }

// judgedFetch is a request that the program sends.
type judgedFetch struct{ *judged }

// Host implements [tool.Reacher].
func (t judgedFetch) Host(call tool.Call) string {
	a, err := tool.Decode[arguments](call)
	if err != nil {
		return ""
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// command returns the arguments of a command that runs as the program does.
func (p *Program) command(text string) arguments {
	a := arguments{Command: text}
	if p.Confined() && !p.Looks {
		if a.Sandbox = p.Held.Level; a.Sandbox == sandbox.Network {
			a.Hosts = p.Held.Hosts
		}
	}
	return a
}

// judgment is a call as it is judged.
type judgment struct {
	tool string
	args arguments
}

// rawInput is what is known of the inputs of calls of the programs: the same things have several names.
type rawInput struct {
	Command  json.RawMessage `json:"command"` // a text, or a list of words
	URL      string          `json:"url"`
	Path     string          `json:"path"`
	FilePath string          `json:"file_path"`
	AbsPath  string          `json:"abs_path"`
	AbsPaths string          `json:"absolute_path"`
	Source   string          `json:"source"`
}

// judgments returns the calls of tools that a call of the program is judged as, all of which must be allowed.
func judgments(p *Program, c *acp.ToolCall) []judgment {
	var in rawInput
	_ = json.Unmarshal(c.RawInput, &in) // what is not known stays empty
	var paths []string
	for _, l := range c.Locations {
		paths = append(paths, l.Path)
	}
	paths = append(paths, in.Path, in.FilePath, in.AbsPath, in.AbsPaths, in.Source)
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == "" })
	slices.Sort(paths)
	paths = slices.Compact(paths)
	each := func(name string) (list []judgment) {
		for _, path := range paths {
			list = append(list, judgment{name, arguments{Path: path}})
		}
		return list
	}
	var list []judgment
	switch c.ToolKind {
	case "execute":
		if command := commandOf(in.Command); command != "" {
			list = []judgment{{"execute_command", p.command(command)}}
		}
	case "edit":
		for _, d := range c.Content {
			if d.Type == "diff" && d.Path != "" && d.NewText != nil {
				list = append(list, judgment{"fs_write", arguments{Path: d.Path, Contents: *d.NewText, Before: d.OldText}})
				paths = slices.DeleteFunc(paths, func(path string) bool { return path == d.Path })
			}
		}
		list = append(list, each("fs_write")...)
	case "delete", "move":
		list = append(each("fs_rm"), each("fs_write")...)
		if c.ToolKind == "delete" {
			list = each("fs_rm")
		}
	case "read", "search":
		if list = each("fs_cat"); len(list) == 0 && c.ToolKind == "search" {
			list = []judgment{{"fs_cat", arguments{Path: p.Dir}}}
		}
	case "fetch":
		if in.URL != "" {
			list = []judgment{{"fetch_url_via_curl", arguments{URL: in.URL}}}
		}
	}
	if len(list) == 0 {
		list = []judgment{{otherCall, arguments{Agent: p.Agent, Title: cmp.Or(c.Title, c.Name, c.ToolKind, "a call without a title"), Input: c.RawInput}}}
	}
	return list
}

// commandOf returns a command as a text for a shell: it may be a text, or a list of words.
func commandOf(raw json.RawMessage) string {
	var command string
	var words []string
	if json.Unmarshal(raw, &command) == nil {
		return command
	}
	if json.Unmarshal(raw, &words) != nil {
		return ""
	}
	return shellText(words)
}

// shellText returns the text for a shell that words mean: what a shell among them is given, or the words themselves.
func shellText(words []string) string {
	if len(words) == 3 && slices.Contains([]string{"bash", "sh", "zsh"}, filepath.Base(words[0])) && slices.Contains([]string{"-c", "-lc"}, words[1]) {
		return words[2]
	}
	return quoteWords(words)
}

// quoteWords returns words as a text for a shell.
func quoteWords(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = text.Word(w)
	}
	return strings.Join(list, " ")
}
