//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

func TestSeveralLines(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{}, func(t *testing.T, u *user, name string) {
		u.typed(":::")
		u.keys("Enter")
		u.typed("one")
		u.keys("Enter")
		u.typed("two :::")
		u.sees(`two :::$`)
		u.keys("Enter")
		u.idle(2)
		u.sees(`^You said: one$`, `^two$`)
		u.paste("three\nfour")
		u.sees(`four$`)
		if all := u.joined(); prompts(all) != 2 || strings.Contains(all, "You said: three") {
			t.Errorf("what is pasted was sent:\n%s", all)
		}
		u.keys("Enter")
		u.idle(3)
		u.sees(`^You said: three$`, `^four$`)
		u.typed("five")
		u.keys("C-j")
		u.typed("six")
		u.sees(`six$`)
		u.keys("Enter")
		u.idle(4)
		u.sees(`^You said: five$`, `^six$`)
		u.golden(name)
	})
}
