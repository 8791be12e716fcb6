//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"config/agents/.shared/x.sh":    "",
		"config/macros/mine.yaml":       "steps: [.help]\n",
		"config/functions/mcp.json":     `{"mcpServers": {"greeter": {"command": "mcp-server", "args": ["a"], "sandbox": "full"}, "other": {"command": "mcp-server", "args": ["b"], "sandbox": "full"}}}`,
		"notes/first.txt":               "the first\n",
		"notes/second.txt":              "the second\n",
		"config/roles/writer.md":        "You write letters.",
		"config/roles/wordsmith.md":     "You write better.",
		"config/agents/one/config.yaml": "name: one\ndescription: the first agent\nvariables: [{name: who, description: Who it is, default: Ann}, {name: what, description: What it does}]\n",
	}
	for name, text := range helpers {
		files[name] = text
	}
	config := "save_session: true\nmapping_mcp_servers: {both: 'greeter,other'}\nmapping_tools: {fs: 'fs_cat,fs_ls'}\n"
	eachFace(t, setup{files: files, config: config}, func(t *testing.T, u *user, name string) {
		u.do(".session mysession")
		u.do("hello")
		u.do(".exit session")
		u.do(".session yoursession")
		u.do("hello")
		u.do(".exit session")
		for _, tt := range []struct{ typed, want, not string }{
			{".role w", "wordsmith|writer", "painter"},
			{".agent o", "one|the first agent", ".shared"},
			{".agent ", "boss|coder|demo", ".shared"},
			{".agent one ", "who=|Who it is|Ann|what=", ""},
			{".session ", "mysession|yoursession", ""},
			{".macro ", "generate-commit-message|mine", ""},
			{".model builtin", "builtin:echo|builtin:extract", ""},
			{".set ", "auto_continue|dry_run", ""},
			{".set enabled_tools ", "all|fs_cat|fs_ls", "user__|mcp__|todo__|agent__"},
			{".set enabled_mcp_servers ", "all|both|greeter|other", ""},
			{".set enabled_mcp_servers greeter,", "both|other", "all"},
			{".set save_session ", "false|null", ""},
			{".delete ", "role|session|rag|macro|agent-data", ""},
			{".vault ", "add|get|update|delete|list", ""},
			{".file notes/", "first.txt|second.txt", ""},
			{"see @notes/", "first.txt|second.txt", ""},
		} {
			u.typed(tt.typed)
			u.sees(`[)>] ` + strings.NewReplacer(".", `\.`).Replace(strings.TrimRight(tt.typed, " ")) + ` *$`)
			u.keys("Tab")
			wanted := strings.Split(tt.want, "|")
			u.until("menu for "+tt.typed+": "+tt.want, func(all string) bool {
				_, menu, _ := cutLast(all, "\nbuiltin:script)")
				for _, w := range wanted {
					if !strings.Contains(menu, w) {
						return false
					}
				}
				return true
			})
			_, menu, _ := cutLast(u.joined(), "\nbuiltin:script)")
			for _, n := range strings.Split(tt.not, "|") {
				if n != "" && strings.Contains(menu, n) {
					t.Errorf("%s offers %s:\n%s", tt.typed, n, menu)
				}
			}
			before := prompts(u.joined())
			u.keys("C-c")
			u.idle(before + 1)
		}
		// A single candidate is put in place at once, and a command gets a blank.
		u.typed(".rol")
		u.sees(`> \.rol$`)
		u.keys("Tab")
		u.sees(`> \.role`)
		u.typed("smith")
		u.sees(`> \.role +smith$`)
		u.keys("Tab")
		u.sees(`> \.role +wordsmith$`)
	})
}
