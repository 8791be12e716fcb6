//go:build unix

package permission_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/permission"
)

// pieces are what the texts of FuzzShells are made of: harmless commands, one that makes a
// file, and what shells and parsers may read differently. Nothing else can be run.
var pieces = []string{
	"ls", "echo a", "cat a.txt", "touch PWN", " ", "\n", ";", "&&", "||", "|", "#", "# x", "\\", "\\\n", "'", "\"", "`", "$(", ")", "(", "{ ", "; }",
	"<<E\n", "\nE\n", "<<-'E'\n", "$'", "\\'", "${x:-", "}", "$((", "))", "[[ a ]]", "x=", "eval ", "sh -c ", "if true; then ", "; fi", "for i in a; do ",
	"; done", "case a in a) ", ";; esac", "f() { ", "trap ", " EXIT", "\t", "!", "~", "*", "[a]", "&", ">", "</dev/null", "@", "%", "^", "COLUMNS=", "command ",
	"time ", "\\\\", "a\\\n", "#\\\n", " #", "\"$(", ")\"", "$\"", "<(", "=",
}

// FuzzShells runs what the judge allows in the shells that are there. A text that makes the
// file has been read differently by the judge and the shell.
func FuzzShells(f *testing.F) {
	seed := func(parts ...string) {
		var data []byte
		for _, part := range parts {
			for i, p := range pieces {
				if p == part {
					data = append(data, byte(i))
				}
			}
		}
		f.Add(data)
	}
	seed("ls", " ", "#", "\\\n", "touch PWN")
	seed("ls", " #", "\\\n", " ", "touch PWN")
	seed("echo a", ";", "#\\\n", "touch PWN")
	seed("$(", "ls", " #", "\\\n", "touch PWN", "\n", ")")
	seed("echo a", " ", "\"$(", "touch PWN", ")\"")
	seed("cat a.txt", "<<E\n", "`", "touch PWN", "`", "\nE\n")
	seed("echo a", "'", "\\'", "touch PWN", "'")
	seed("ls", "|", "cat a.txt", " # x", "\n", "echo a")
	var shells []string
	for _, name := range []string{"bash", "dash", "zsh", "busybox"} {
		if path, err := exec.LookPath(name); err == nil {
			shells = append(shells, path)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 40 {
			return
		}
		var text strings.Builder
		for _, b := range data {
			text.WriteString(pieces[int(b)%len(pieces)])
		}
		if !strings.Contains(text.String(), "touch PWN") {
			return
		}
		for _, path := range shells {
			name := strings.Replace(filepath.Base(path), "dash", "sh", 1)
			root := project(t)
			j := judge(t, permission.Options{Root: root, Shell: name})
			if j.Judge(shellCall(text.String())).Action != permission.Allow {
				continue
			}
			args := []string{"-c", text.String()}
			if name == "busybox" {
				args = append([]string{"sh"}, args...)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Dir, cmd.WaitDelay = root, time.Second
			_ = cmd.Run() // its status says nothing
			cancel()
			if _, err := os.Stat(filepath.Join(root, "PWN")); err == nil {
				t.Errorf("%s: %q is allowed, and ran the command in it", name, text.String())
			}
		}
	})
}
