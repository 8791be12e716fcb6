//go:build unix

// Package flow_test plays what users do in the REPL, with the program itself in a real terminal.
package flow_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/frontend/cli"
	"loki/internal/frontend/repl"
)

var update = flag.Bool("update", false, "rewrite the screens that tests compare with")

// programs is a directory with what users of the tests have in their path: this test binary under the names of
// programs that it then is, and an editor.
var programs string

// editor is a program that users edit files with: it notes the file's name, and puts the text that a test has prepared in its place.
const editor = `#!/bin/sh
basename "$1" >> "$HOME/edited"
if [ -f "$HOME/edit" ]; then mv "$HOME/edit" "$1"; fi
`

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "loki":
		if repl.Guard(os.Args[1:]) {
			return
		}
		os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{REPL: repl.Run}))
	case "mcp-server":
		mcpServer(os.Args[1])
		return
	}
	os.Exit(play(m))
}

// play runs the tests.
func play(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "flow")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	programs = dir
	self, err := os.Executable()
	for _, name := range []string{"loki", "mcp-server"} {
		if err == nil {
			err = os.Symlink(self, filepath.Join(dir, name))
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "edit-file"), []byte(editor), 0o700)
	}
	if err != nil {
		panic(err)
	}
	return m.Run()
}

// mcpServer is an MCP server with one tool, one prompt and one resource, all called by its name. It leaves a
// line in the file "servers" of the user's home when it starts and when it ends.
func mcpServer(name string) {
	note := func(what string) {
		file, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), "servers"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(file, what, name)
			file.Close()
		}
	}
	note("starts")
	for len(os.Args) > 2 { // until the test goes on, or the program gives up
		if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "go")); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer note("stops")
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	type person struct {
		Name string `json:"name" jsonschema:"who to greet"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet_" + name, Description: "Greet a person by name"},
		func(_ context.Context, _ *mcp.CallToolRequest, p person) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " greets " + p.Name}}}, nil, nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "review_" + name, Description: "Review a text", Arguments: []*mcp.PromptArgument{{Name: "topic", Required: true}, {Name: "tone"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := fmt.Sprintf("Review %s in a %s tone.", r.Params.Arguments["topic"], r.Params.Arguments["tone"])
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
	server.AddResource(&mcp.Resource{URI: "text://" + name, Name: "motto of " + name},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "the motto of " + name}}}, nil
		})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // ends when its client does
}

// masks are what differs from run to run in a screen. A line may end within what is long.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f](\n?[0-9a-f]){7}(\n?-(\n?[0-9a-f]){4}){3}\n?-(\n?[0-9a-f]){12}`), "ID"},
	{regexp.MustCompile(`loki \d+\.\d+\.\d+\S*`), "loki VERSION"},
	{regexp.MustCompile(`20\d{6}T\d{6}`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`), "TIME"},
	{regexp.MustCompile(`/\n?t\n?m\n?p\n?/\n?f\n?l\n?o\n?w(\n?\d){6}`), "~"},
}

// still is how long a screen that is not the wanted one may stay unchanged.
const still = 15 * time.Second

// golden waits until what the window shows and has shown is the file testdata/NAME.screen.
func (u *user) golden(name string) {
	u.t.Helper()
	file := filepath.Join("testdata", name+".screen")
	if *update {
		time.Sleep(200 * time.Millisecond) // the last bytes of a screen may still come
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			u.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(u.masked()), 0o644); err != nil {
			u.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	timer := time.NewTimer(still)
	defer timer.Stop()
	for {
		screen := u.masked()
		if screen == string(want) {
			return
		}
		select {
		case <-u.changed:
			timer.Reset(still)
		case <-timer.C:
			u.t.Errorf("the screen is not that of %s:\n%s", file, screen)
			return
		}
	}
}

// masked returns what the window shows and has shown, without what differs from run to run.
func (u *user) masked() string {
	u.t.Helper()
	screen := u.all()
	for _, m := range masks {
		screen = m.pattern.ReplaceAllString(screen, m.with)
	}
	return screen
}
