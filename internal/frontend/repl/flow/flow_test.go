//go:build unix

package flow_test

import (
	"os"
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	x := newTerminal(t, 80, 24, t.TempDir(), os.Environ(), "sh", "-c", `PS1='ready> ' exec bash --norc --noprofile`)
	x.wait("prompt", func(s string) bool { return strings.HasSuffix(s, "ready>\n") })
	x.typed("echo it's é $((1+1))")
	x.keys("Enter")
	x.wait("answer", func(s string) bool {
		return strings.Contains(s, "\nits é 2\n") || strings.HasSuffix(s, ">\n") && strings.Contains(s, "it's")
	})
	x.keys("C-c")
	x.paste("a $b \"c\"\nd\\e")
	x.wait("paste", func(s string) bool { return strings.Contains(s, "d\\e") })
	t.Log(x.all())
}
