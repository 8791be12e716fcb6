//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - match: {system: letters}\n    reply: 'Dear {{text}}'\n" + answers
	eachFace(t, setup{rules: rules, files: coder}, func(t *testing.T, u *user, name string) {
		u.do(".role writer")
		u.prompted("builtin:script)writer>")
		u.do("Ann", `^Dear Ann$`)
		u.do(".info role", `You write letters\.`)
		u.do(".exit role")
		u.prompted("builtin:script)>")
		u.do(".role writer to Bob", `^Dear to Bob$`)
		u.prompted("builtin:script)>")
		u.do("Ann", `^You said: Ann$`)
		u.do(".prompt You write letters too.")
		u.prompted("builtin:script)temp>")
		u.do(".save role poet")
		u.do(".exit role")
		u.golden(name)
		if got := u.read("config/roles/poet.md"); !strings.Contains(got, "You write letters too.") {
			t.Errorf("the role is %q", got)
		}
	})
}

func TestEditRole(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - match: {system: poems}\n    reply: 'Roses for {{text}}'\n" + answers
	u := begin(t, setup{rules: rules, files: coder})
	u.do(".role writer")
	u.write("edit", "You write poems.")
	u.do(".edit role")
	u.do("Ann", `^Roses for Ann$`)
	u.do(".exit role")
	// A role that does not exist is made, if the user wants it.
	u.write("edit", "You write poems, too.")
	u.enter(".role poet")
	u.answer(`\? .*poet`, "Enter")
	u.idle(6)
	u.prompted("builtin:script)poet>")
	u.do("Eve", `^Roses for Eve$`)
	if got := u.read("edited"); got != "writer.md\npoet.md\n" {
		t.Errorf("edited were %q", got)
	}
}

func TestRoleInSession(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{files: coder})
	u.do(".session test")
	u.do(".role writer")
	u.prompted("builtin:script)test/writer)")
	u.do("hello")
	u.do(".role painter", `(?i)session test has messages`)
	u.prompted("builtin:script)test/writer)")
}
