//go:build amd64 || arm64

package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestBlanked: settings that programs need lose the lines with credentials, and nothing else.
func TestBlanked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, text, want string }{
		{"git_address", ".gitconfig", "[user]\n\tname = A\n[url \"https://x:SEC@host/\"]\n\tinsteadOf = https://host/\n", "[user]\n\tname = A\n[blanked]\n\tinsteadOf = https://host/\n"},
		{"git_header", ".gitconfig", "[http]\n\textraHeader = AUTHORIZATION: basic SEC\n\tproxy = http://proxy:1\n", "[http]\n\tproxy = http://proxy:1\n"},
		{"git_plain", ".gitconfig", "[user]\n\tname = A\n\tsigningkey = B\n[credential]\n\thelper = store\n[url \"git@host:\"]\n\tinsteadOf = https://host/\n", ""},
		{"cargo", ".cargo/config.toml", "[registries.x]\nindex = \"sparse+https://host/\"\ntoken = \"SEC\"\n", "[registries.x]\nindex = \"sparse+https://host/\"\n"},
		{"go", ".config/go/env", "GOFLAGS=-mod=mod\nGOPROXY=https://u:SEC@proxy\n", "GOFLAGS=-mod=mod\n"},
		{"conda", "miniconda3/.condarc", "channels: [https://conda.anaconda.org/t/SEC-x/y]\nssl_verify: true\n", "ssl_verify: true\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			path := filepath.Join(home, tt.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			b := New(Options{Workspace: t.TempDir(), Home: home}).Box(Declaration{Level: Read}, Needs{})
			l, _, err := b.limits()
			if err != nil {
				t.Fatal(err)
			}
			if got := l.blanked[resolve(path)]; got != tt.want {
				t.Errorf("it is shown as %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSocketsAreClosed: a socket of a program outside is closed, wherever it is among the places of a child.
func TestSocketsAreClosed(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "h") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir := filepath.Join(home, ".cargo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := New(Options{Workspace: t.TempDir(), Home: home}).Box(Declaration{Level: Write}, Needs{})
	l, _, err := b.limits()
	if err != nil {
		t.Fatal(err)
	}
	if l.closed[resolve(path)] == "" {
		t.Errorf("%s is open", path)
	}
}

// TestInstallations: beside a directory of programs on the PATH, its libraries are read and its settings are not.
func TestInstallations(t *testing.T) {
	t.Parallel()
	root := filepath.Join("/var/tmp", filepath.Base(t.TempDir())+"-loki-installation")
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, name := range []string{"bin", "lib", "config", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{Workspace: t.TempDir(), Home: t.TempDir(), Getenv: func(string) string { return filepath.Join(root, "bin") }})
	got := s.findFixed().read
	for name, want := range map[string]bool{"bin": true, "lib": true, "config": false, "etc": false, "": false} {
		if slices.Contains(got, filepath.Join(root, name)) != want {
			t.Errorf("%s is read: %v", name, !want)
		}
	}
}

// TestFullFindsNoPlaces: a child that is not confined does not wait until all places of the limits are found.
func TestFullFindsNoPlaces(t *testing.T) {
	t.Parallel()
	s := New(Options{Workspace: t.TempDir(), Home: t.TempDir(), State: t.TempDir()})
	b := s.Box(Declaration{Level: Full}, Needs{})
	if _, err := b.Prepare(&exec.Cmd{}); err != nil {
		t.Fatal(err)
	}
	b.End()
	if s.fixed.read != nil {
		t.Error("they were found")
	}
}
