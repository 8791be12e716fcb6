package permission_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/tool/permission"
)

// TestReach is about the tools that a rule with a path holds for beside those that it names.
func TestReach(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	if err := os.MkdirAll(filepath.Join(root, "secret"), 0o755); err != nil {
		t.Fatal(err)
	}
	const file = "secret/s.txt"
	if err := os.WriteFile(filepath.Join(root, file), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := map[string]permission.Call{
		"fs_cat": {ReadOnly: true}, "fs_read": {ReadOnly: true}, "fs_grep": {ReadOnly: true},
		"execute_sql_code": {Destructive: true, Opens: []string{file}, Use: permission.Reading},
	}
	write := map[string]permission.Call{"fs_write": {}, "fs_patch": {}, "fs_rm": {}, "fs_mkdir": {}, "mine": {}}
	for _, tt := range []struct {
		tool          string
		access        permission.Access
		reads, writes bool // that are denied
		server        bool // so are tools of MCP servers
	}{
		{tool: "*", reads: true, writes: true, server: true},
		{tool: "fs_*", reads: true, writes: true},
		{tool: "fs_cat", reads: true, writes: true},
		{tool: "fs_ls", reads: true, writes: true},
		{tool: "execute_*", reads: true, writes: true},
		{tool: "execute_command", reads: true, writes: true},
		{tool: "execute_py_code", reads: true, writes: true},
		{tool: "fs_cat", access: permission.Reading, reads: true},
		{tool: "fs_*", access: permission.Writing, writes: true},
		{tool: "execute_command", access: permission.Writing, writes: true},
		{tool: "fs_write", writes: true},
		{tool: "fs_rm", writes: true},
		{tool: "mcp__files__*", server: true},
		{tool: "other"},
	} {
		rules := permission.Rules{List: []permission.Rule{{Tool: tt.tool, Action: permission.Deny, Paths: []string{"secret/**"}, Access: tt.access}, {Tool: "*", Action: permission.Allow}}}
		j := judge(t, permission.Options{Root: root, Rules: rules, Shell: "bash", Sandboxed: true})
		check := func(name string, c permission.Call, denied bool) {
			c.Tool = name
			if c.Arguments == nil {
				c.Arguments, _ = json.Marshal(map[string]string{"path": file}) // cannot fail
			}
			if v := j.Judge(c); (v.Action == permission.Deny) != denied {
				t.Errorf("deny %s %s: %s: %s", tt.tool, tt.access, name, v.Action)
			}
		}
		for name, c := range read {
			check(name, c, tt.reads)
		}
		for name, c := range write {
			check(name, c, tt.writes)
		}
		check("mcp__files__read", permission.Call{}, tt.server)
		code := permission.Call{Arguments: json.RawMessage(`{"code":"x"}`), Destructive: true, Opens: []string{file}}
		code.Sandbox.Level = sandbox.Full
		check("execute_py_code", code, tt.reads || tt.writes)
		text := levelCall("cat "+file, sandbox.Full)
		check("execute_command", text, tt.reads)
		if got := len(closed(j)) > 0; got != tt.reads {
			t.Errorf("deny %s %s: closed to commands in the sandbox: %v", tt.tool, tt.access, got)
		}
		if got := j.Unreadable() != nil; got != tt.reads {
			t.Errorf("deny %s %s: not attached: %v", tt.tool, tt.access, got)
		}
		// A rule that asks reaches as far.
		rules.List[0].Action = permission.Ask
		j = judge(t, permission.Options{Root: root, Rules: rules, Shell: "bash", Sandboxed: true})
		if denied, asked := j.ClosedPatterns(); len(denied) > 0 || len(asked) > 0 != tt.reads {
			t.Errorf("ask %s %s: closed to commands in the sandbox: %v and %v", tt.tool, tt.access, denied, asked)
		}
		if v := j.Judge(levelCall("cat "+file, sandbox.Read)); v.Files != tt.reads || (v.Action == permission.Ask) != tt.reads {
			t.Errorf("ask %s %s: a command: %s, %v", tt.tool, tt.access, v.Action, v.Files)
		}
		if v := j.Judge(levelCall("ls >x", sandbox.Write)); v.Files {
			t.Errorf("ask %s %s: a command that does not name the file opens it", tt.tool, tt.access)
		}
		code.Sandbox.Level, code.Use = sandbox.Read, permission.Reading
		code.Tool = "execute_py_code"
		if v := j.Judge(code); v.Files != tt.reads || (v.Action == permission.Ask) != tt.reads {
			t.Errorf("ask %s %s: code: %s, %v", tt.tool, tt.access, v.Action, v.Files)
		}
		var kept *permission.KeptError
		if u := j.Unreadable(); u != nil && (!errors.As(u(filepath.Join(root, file)), &kept) || !kept.Asks) || (u != nil) != tt.reads {
			t.Errorf("ask %s %s: attached: %+v", tt.tool, tt.access, kept)
		}
	}
}

// closed returns what rules deny to commands in the sandbox.
func closed(j *permission.Judge) []pattern.Branch {
	denied, _ := j.ClosedPatterns()
	return denied
}
