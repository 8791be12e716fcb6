//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// hostile is a text that a terminal would obey: a color, a write to the clipboard, an override of the direction of
// text, a sequence that begins with a single character, and a line of its own.
const hostile = "\x1b[31mX\x1b]52;c;QQ==\x07\u202eeno\u009b2Jtwo\nFORGED"

// obeyed returns the first part of a text that a terminal would obey; "" for none. What a tool says may have colors,
// so the tool of these tests changes the X.
func obeyed(shown string) string {
	for _, part := range []string{"\x1b]52", "\x1b[31mX", "\x07", "\u202e", "\u009b"} {
		if strings.Contains(shown, part) {
			return part
		}
	}
	return ""
}

// hostileHome makes a home in which all that is named or described is called hostile.
func hostileHome(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	q := strings.NewReplacer("HOSTILE", string(quoted), "'OR", string(quoted[:len(quoted)-1])+`OR"`)
	line := strings.ReplaceAll(hostile, "\n", " ")
	for name, content := range map[string]string{
		"config.yaml":                        "model: builtin:echo\nvisible_tools: [shows, HOSTILE]\nclients:\n- {type: builtin, name: builtin}\n- {type: openai-compatible, name: HOSTILE, api_base: 'http://127.0.0.1:1/v1', models: [{name: HOSTILE}]}\n",
		"mcp.json":                           `{"mcpServers": {HOSTILE: {"command": HOSTILE}}}`,
		"agents/" + hostile + "/config.yaml": "name: HOSTILE\ndescription: HOSTILE\ninstructions: hi\n",
		"agents/plain/config.yaml":           "name: plain\ndescription: HOSTILE\ninstructions: hi\nvariables: [{name: HOSTILE, description: HOSTILE, default: HOSTILE}]\nconversation_starters: [HOSTILE]\n",
		"agents/asks/graph.yaml": "name: asks\ndescription: HOSTILE\nstart: first\nnodes:\n" +
			"  first: {type: approval, question: HOSTILE, options: [HOSTILE, 'OR], routes: {HOSTILE: done, 'OR: done}, on_other: done}\n  done: {type: end, output: HOSTILE}\n",
		"roles/" + hostile + ".md":               "---\nmodel: builtin:echo\n---\n" + hostile,
		"roles/plain.md":                         hostile,
		"macros/" + hostile + ".yaml":            "steps: [.info]\nvariables: [{name: HOSTILE}]\n",
		"functions/tools/a" + hostile + ".sh":    "#!/bin/sh\n# @describe " + line + "\nmain() { echo hi; }\n",
		"functions/tools/shows.sh":               "#!/bin/bash\n# @describe shows\nmain() { sed s/X/Y/ \"$HOME/said\"; }\n",
		"agents/asks/tests/" + hostile + ".yaml": "cases: [{name: HOSTILE, prompt: HOSTILE, expect: {output: HOSTILE}}]\n",
	} {
		write(t, filepath.Join(dir, "home", "config", name), q.Replace(content))
	}
	write(t, filepath.Join(dir, "home", "said"), hostile)
	write(t, filepath.Join(dir, "docs", hostile+".txt"), "bees "+hostile)
	return dir
}

// TestHostileNames lists and shows what others have named, described and said: no list has a line that was made up, and a
// terminal obeys nothing.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	dir := hostileHome(t)
	piped := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "loki", args...)
		cmd.Dir, cmd.Env = dir, emptyHome(dir)
		out, _ := cmd.CombinedOutput() // some are mistakes
		if ctx.Err() != nil {
			t.Fatalf("loki %q does not end", args)
		}
		return string(out)
	}
	// What is listed below comes from here.
	piped("-s", "kept", "prompt "+hostile)
	piped("-a", hostile, "prompt "+hostile)
	piped("-a", "asks", "prompt "+hostile)
	piped("--rag", "base", "--rag-add", "docs", "--rag-set", "embedding_model=builtin:hash")
	var runs []struct{ ID, Status string }
	if err := json.Unmarshal([]byte(piped("--runs", "--output", "json")), &runs); err != nil || len(runs) != 2 || runs[0].Status != "suspended" {
		t.Fatalf("the runs are %+v, %v", runs, err)
	}
	for _, args := range [][]string{
		{"--list-agents"},
		{"--list-roles"},
		{"--list-macros"},
		{"--list-sessions"},
		{"--list-models"},
		{"--list-rags"},
		{"--list-secrets"},
		{"--list-bundles"},
		{"--list-api-keys"},
		{"--runs"},
		{"--usage"},
		{"--info"},
		{"--search", "prompt"},
		{"--run", runs[0].ID},
		{"--diff", runs[0].ID + "@0", runs[0].ID + "@0"},
	} {
		for _, more := range [][]string{nil, {"--output", "json"}} {
			out := piped(append(args, more...)...)
			if part := obeyed(out); part != "" {
				t.Errorf("loki %q prints %q:\n%q", append(args, more...), part, out)
			}
			if strings.Contains("\n"+out, "\nFORGED") {
				t.Errorf("loki %q has a line that was made up:\n%q", append(args, more...), out)
			}
		}
	}
	for _, args := range [][]string{
		{"--validate", hostile},
		{"--validate", "asks"},
		{"--graph", "asks", "--format", "text"},
		{"--graph", "asks", "--format", "dot"},
		{"--graph", "asks", "--format", "svg"},
		{"--run", runs[0].ID, "--state"},
		{"--resume", runs[0].ID},
		{"--test", "asks"},
		{"--test", "asks", "--output", "json"},
		{"-a", "asks", "-vv", "x"},
		{"--build-tools"},
		{"--call-tool", "shows", "{}"},
		{"--call-tool", "fs_ls", `{"path": "docs"}`},
		{"--call-tool", "fs_grep", `{"pattern": "bees"}`},
		{"--tool-schema", "home/config/functions/tools/a" + hostile + ".sh"},
		{"--rag", "base", "--info"},
		{"--rag", "base", "--rag-query", "bees"},
		{"-a", hostile + "1", "x"},
		{"-r", hostile + "1", "x"},
		{"-m", hostile + "1", "x"},
		{"-f", hostile, "x"},
		{"--macro", hostile},
		{"--run", hostile},
		{"--call-tool", hostile, "{}"},
		{"--get-secret", hostile},
		{"--remove-bundle", hostile},
		{"--server", "http://" + hostile, "--runs"},
		{"--" + hostile},
		{"-a", "plain", "--info"},
		{"-a", "plain", "--info", "--output", "json"},
		{"-s", "kept", "--info"},
		{"--rename-session", "kept", hostile},
	} {
		if out := piped(args...); obeyed(out) != "" {
			t.Errorf("loki %q prints %q:\n%q", args, obeyed(out), out)
		}
	}

	// What goes to a pipe as it is does not go so to a terminal.
	for _, tt := range []struct {
		name  string
		args  []string
		until string // is shown before
		typed string // is typed
	}{
		{name: "answer", args: []string{"prompt " + hostile}},
		{name: "answer_in_one_piece", args: []string{"-S", "prompt " + hostile}},
		{name: "dry_run", args: []string{"--dry-run", "prompt " + hostile}},
		{name: "role", args: []string{"-r", "plain", "--info"}},
		{name: "session", args: []string{"-s", "kept", "--info"}},
		{name: "tool", args: []string{"--call-tool", "shows", "{}"}},
		{name: "agents", args: []string{"--list-agents"}},
		{name: "macros", args: []string{"--list-macros"}},
		{name: "question", args: []string{"-a", "asks", "x"}, until: "OR", typed: "\x03"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "loki", tt.args...)
			cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=", "COLORFGBG=15;0")
			screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			var shown bytes.Buffer
			buf, typed := make([]byte, 1<<16), tt.typed
			for {
				n, err := screen.Read(buf)
				shown.Write(buf[:n])
				if err != nil {
					break
				}
				if typed != "" && strings.Contains(shown.String(), tt.until) {
					if _, err := screen.WriteString(typed); err != nil {
						t.Fatal(err)
					}
					typed = ""
				}
			}
			_ = cmd.Wait() // a question is interrupted
			if ctx.Err() != nil {
				t.Fatalf("it does not end:\n%q", shown.String())
			}
			if typed != "" || shown.Len() == 0 {
				t.Errorf("it shows nothing to answer:\n%q", shown.String())
			}
			if part := obeyed(shown.String()); part != "" {
				t.Errorf("the terminal gets %q:\n%q", part, shown.String())
			}
		})
	}
}
