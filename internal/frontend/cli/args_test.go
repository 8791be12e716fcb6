package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// FuzzArgs reads command lines, words separated by line feeds: whatever they are, the
// text is the end of the words as they were, and pairs keep both their values.
func FuzzArgs(f *testing.F) {
	for _, seed := range []string{
		"-m\nbuiltin:echo\nhello\n-S", "-s\nx\nhello", "-Ssx\n-s", "-s=\n--\n-s", "--\n-S", "-Sm\nx\ny", "-mx\n-v\n-v\ntext", "--agent-variable\na\n-b\nx",
		"--agent-variable\n1:2\n3:4", "-f\n-\n--file=x\n-", "--output=json\n", "-a\n\n", "-", "--agent-variable\nä\n\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		var o options
		cmd := newCommand(&o, func(*cobra.Command) error { return nil })
		cmd.SetOut(io.Discard) // it may ask for help
		expanded, err := expandArgs(cmd.Flags(), args)
		if err != nil {
			return
		}
		cmd.SetArgs(expanded)
		if cmd.Execute() != nil {
			return
		}
		if len(o.text) > len(args) || !slices.Equal(o.text, args[len(args)-len(o.text):]) {
			t.Errorf("%q: the text is %q", args, o.text)
		}
		for _, v := range o.variables {
			if !slices.Contains(args, v[0]) || !slices.Contains(args, v[1]) {
				t.Errorf("%q: variable %q", args, v)
			}
		}
	})
}
