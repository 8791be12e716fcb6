//go:build amd64 || arm64

package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// TestEverydayWork: the commands of docs/sandbox.md go through at the levels that it names.
func TestEverydayWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command string
		d             sandbox.Declaration
		needs         string // programs, and hosts that are to be found
		heavy         bool
	}{
		{"git_commit", "git -c user.name=a -c user.email=a@b.c commit -qm x --allow-empty && git log --oneline", write, "git", false},
		{"make", "make -f sub/Makefile && cat made", write, "make", false},
		{"go_vet_and_test", "go vet ./... && go test ./...", read, "go", true},
		{"go_build", "go build -o out . && ./out", write, "go", true},
		{"venv", "python3 -m venv env && env/bin/pip --version", write, "python3", true},
		{"protected_venv", "python3 -m venv .venv && .venv/bin/pip --version", sandbox.Declaration{Level: sandbox.Network}, "python3", true},
		{"npm", "npm install left-pad@1.3.0 && npm ci && ls node_modules/left-pad", sandbox.Declaration{Level: sandbox.Network, Hosts: []string{"registry.npmjs.org"}}, "npm registry.npmjs.org", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.heavy && os.Getenv("LOKI_TEST") != "full" {
				t.Skip("LOKI_TEST=full runs it")
			}
			for need := range strings.FieldsSeq(tt.needs) {
				if strings.Contains(need, ".") {
					if _, err := net.DefaultResolver.LookupHost(t.Context(), need); err != nil {
						t.Skip(err)
					}
				} else if _, err := exec.LookPath(need); err != nil {
					t.Skip(err)
				}
			}
			w := newWorld(t, false)
			if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
				t.Skip("needs namespaces")
			}
			w.options.State = filepath.Join(w.home, "state", "loki")
			w.write(t, "src/project/sub/Makefile", "all:\n\techo x >made\n")
			w.write(t, "src/project/main.go", "package main\n\nfunc main() {}\n")
			if out, err := exec.Command("git", "init", "-q", w.workspace).CombinedOutput(); err != nil && tt.needs == "git" {
				t.Fatal(string(out), err)
			}
			b := w.box(tt.d, sandbox.Needs{})
			r, err := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{"-c", tt.command}, Dir: w.workspace, Confinement: b, Env: os.Environ()})
			if err != nil {
				t.Errorf("%v: %s%s", err, r.Stdout, r.Stderr)
			}
			if refused := b.Refusals(r.Stderr, err != nil); len(refused) > 0 {
				t.Errorf("the sandbox stopped %v", refused)
			}
		})
	}
}
