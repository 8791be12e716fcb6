//go:build unix

package flow_test

import (
	"os"
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	x := newTerminal(t, 80, 24, t.TempDir(), append(os.Environ(), "PS1=> "), "bash", "--norc")
	x.wait("prompt", func(s string) bool { return strings.HasSuffix(s, "#\n") })
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
