//go:build unix

package permission_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool/permission"
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

// writers are more pieces, of texts that run in the sandbox: they change files in the workspace and outside.
var writers = []string{
	"touch PWN", "> PWN", ">> a.txt", "rm -rf a.txt sub", "cp a.txt PWN", "mkdir PWN", "ln -s / PWN", "mv a.txt PWN", "touch $OUT/PWN", "echo x >| $OUT/PWN", "chmod 777 a.txt",
	"sed -i s/f/g/ a.txt", "cd $OUT; ", "exec > PWN; ", "tee PWN", "PATH=.:$PATH ", "export OUT=.; ", "ls -la", "$X", "find . -delete", "xargs rm -f", "env touch PWN", "coproc ",
}

// TestShells runs texts that are allowed unasked in the shells that are there: without a sandbox those of the short list, with it
// whatever the text is. No file in the workspace or outside may change. LOKI_TEXTS is how many texts are run, in all
// shells together.
func TestShells(t *testing.T) {
	t.Parallel()
	texts := 60
	if n, err := strconv.Atoi(os.Getenv("LOKI_TEXTS")); err == nil {
		texts = n
	}
	names := []string{"bash", "dash", "zsh", "mksh"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			root, outside := project(t), t.TempDir()
			plant(t, outside, map[string]string{"file": "outside\n"})
			box := sandbox.New(sandbox.Options{Workspace: root, Home: outside, Getenv: os.Getenv})
			held := box.Support().Files
			if !held {
				t.Logf("without a sandbox: %s", box.Support().Missing)
			}
			bare := judge(t, permission.Options{Root: root, Shell: name})
			sandboxed := judge(t, permission.Options{Root: root, Shell: name, Sandboxed: true})
			before := snapshot(t, root) + snapshot(t, outside)
			random := rand.New(rand.NewPCG(1, uint64(len(name)+int(name[0]))))
			ran, confined := 0, 0
			for tried := 0; ran < texts/len(names) && tried < texts*1000; tried++ {
				var b strings.Builder
				for range 1 + random.IntN(9) {
					list := pieces
					if random.IntN(2) == 0 {
						list = writers
					}
					b.WriteString(list[random.IntN(len(list))])
				}
				text := b.String()
				c := process.Command{Path: path, Args: []string{"-c", text}, Dir: root, MaxStdout: 1 << 20, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "OUT=" + outside}}
				if v := bare.Judge(shellCall(text)); v.Action != permission.Allow {
					if v := sandboxed.Judge(shellCall(text)); v.Action != permission.Allow || v.Level != sandbox.Read {
						t.Fatalf("%q: %+v", text, v)
					}
					if !held {
						continue
					}
					c.Confinement = box.Box(sandbox.Declaration{Level: sandbox.Read}, sandbox.Needs{})
					confined++
				}
				ran++
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				_, _ = process.Run(ctx, c) // how it ends says nothing
				cancel()
				if ran%20 == 0 || texts < 200 {
					if after := snapshot(t, root) + snapshot(t, outside); after != before {
						t.Fatalf("%q, or one of the 20 texts before it, changed files: %s", text, after)
					}
				}
			}
			if after := snapshot(t, root) + snapshot(t, outside); after != before {
				t.Fatalf("files changed: %s", after)
			}
			t.Logf("%d texts, %d of them in the sandbox", ran, confined)
		})
	}
}
