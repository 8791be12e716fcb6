//go:build unix

package flow_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDelete deletes one of each kind, and nothing when the user says no.
func TestDelete(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"config/macros/mine.yaml": "steps: [.help]\n", "boats.md": "A leaking hull is sealed with resin.\n",
		"config/roles/writer.md": "You write letters.", "config/roles/painter.md": "You paint.",
		"config/agents/helper/config.yaml": "name: helper\n",
	}
	eachFace(t, setup{files: files, rows: 100, config: "save_session: true\nrag_embedding_model: builtin:hash\n"}, func(t *testing.T, u *user, name string) {
		u.do(".delete session", `^Error: there is no session to delete$`)
		u.do(".session talk")
		u.do("hello")
		before := u.enter(".delete session")
		u.choose(`Which sessions are deleted`, "talk")
		u.idle(before + 1)
		u.sees(`^Error: session talk is in use, so nothing is deleted$`)
		u.do(".exit session")
		before = u.enter(".rag docs")
		u.answer(`(?i)(document|source)`)
		u.typed("boats.md")
		u.keys("Enter")
		u.answer(`Chunk size`, "Enter")
		u.answer(`(?i)overlap`, "Enter")
		u.idle(before + 1)
		u.do(".exit rag")
		for _, tt := range []struct{ kind, question, name, gone string }{
			{"role", "Which roles are deleted", "painter", "config/roles/painter.md"},
			{"session", "Which sessions are deleted", "talk", ""},
			{"rag", "Which knowledge bases are deleted", "docs", ""},
			{"macro", "Which macros are deleted", "mine", "config/macros/mine.yaml"},
			{"agent-data", "Which agents are deleted, each with its directory", "helper", "config/agents/helper"},
		} {
			before := u.enter(".delete " + tt.kind)
			u.choose(tt.question, tt.name)
			u.answer(`Delete ` + tt.name + `\?(?s:.*)❯ no`)
			u.keys("Up")
			u.answer(`❯ yes`, "Enter")
			u.printed(".delete "+tt.kind, u.idle(before+1), `^✓ Deleted `+tt.kind+` `+tt.name+`$`)
			if tt.gone == "" {
				u.do(".delete "+tt.kind, `^Error: there is no `+tt.kind+` to delete$`)
			} else if _, err := os.Stat(filepath.Join(u.home, tt.gone)); err == nil {
				t.Errorf("%s is still there", tt.gone)
			}
		}
		before = u.enter(".delete role")
		u.choose(`Which roles are deleted`, "writer")
		u.answer(`Delete writer\?(?s:.*)❯ no`, "Enter")
		u.idle(before + 1)
		if u.read("config/roles/writer.md") == "" {
			t.Error("the role was deleted although the user said no")
		}
		u.do(".delete everything", `"everything" cannot be deleted`)
		u.do(".delete", `(?i)usage`)
		u.golden(name)
	})
}

// choose waits for a question with several answers, and chooses the one that the cursor is at.
func (u *user) choose(question, name string) {
	u.t.Helper()
	u.answer(question + `\?\n❯ \[ \] ` + name)
	u.keys("Space")
	u.answer(`❯ \[[^ ]\] `+name, "Enter")
}
