package remote_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/agent/bundle/remote"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
)

// repo is a repository with a working tree.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	r := repo{t, filepath.Join(t.TempDir(), "tools")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("", "init", "-q", "-b", "main")
	return r
}

// git runs git and returns what it prints.
func (r repo) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir, "-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// commit makes the files those of a new commit.
func (r repo) commit(files map[string]string) (id string) {
	r.t.Helper()
	old, _ := filepath.Glob(filepath.Join(r.dir, "[^.]*"))
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			r.t.Fatal(err)
		}
	}
	for name, text := range files {
		write(r.t, filepath.Join(r.dir, filepath.FromSlash(name)), text)
	}
	r.git("", "add", "-A", "-f")
	r.git("", "commit", "-q", "--allow-empty", "-m", "next")
	return r.git("", "rev-parse", "HEAD")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// place is where bundles are installed, with a user who answers.
type place struct {
	*remote.Installer
	t       *testing.T
	root    string
	asked   []string // the questions, by ID
	answers map[string][]string
	shown   strings.Builder
}

// newPlace returns an empty place of a user who consents.
func newPlace(t *testing.T) *place {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	p := &place{t: t, root: root, answers: map[string][]string{"bundle": {"yes"}}}
	p.Installer = &remote.Installer{
		Dirs: remote.Dirs{
			Agents: in("agents"), Roles: in("roles"), Macros: in("macros"), Tools: in("functions/tools"), Skills: in("skills"), Servers: in("functions/mcp.json"),
			Records: in("bundles"), Work: root,
		},
		Git: repository.Git{Environ: os.Environ()}, Asker: ask.Func(p.answer), Secrets: noSecrets{},
		Show: func(text string) { p.shown.WriteString(text + "\n") },
		Now:  func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
	return p
}

// answer gives the next answer to questions of this ID; the last one stays.
func (p *place) answer(_ context.Context, q ask.Question) (string, error) {
	p.asked = append(p.asked, q.ID+": "+q.Text)
	list := p.answers[q.ID]
	if len(list) == 0 {
		return "", ask.ErrUnavailable
	}
	if len(list) > 1 {
		p.answers[q.ID] = list[1:]
	}
	return q.Match(list[0])
}

// files returns the installed files with their contents, without records.
func (p *place) files() map[string]string {
	p.t.Helper()
	found := make(map[string]string)
	err := fs.WalkDir(os.DirFS(p.root), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasPrefix(path, "bundles/") {
			text, readErr := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(path)))
			found[path], err = string(text), readErr
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func (p *place) has(want map[string]string) {
	p.t.Helper()
	if got := p.files(); !maps.Equal(got, want) {
		p.t.Errorf("installed:\n%q\nwant\n%q", got, want)
	}
}

func (p *place) install(r repo, only ...remote.Category) remote.Report {
	p.t.Helper()
	report, err := p.Install(p.t.Context(), r.dir, only...)
	if err != nil {
		p.t.Fatal(err)
	}
	return report
}

func (p *place) update(name string) remote.Report {
	p.t.Helper()
	report, err := p.Update(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return report
}

// states lists what happened: state and path, ascending.
func states(r remote.Report) string {
	var list []string
	for _, t := range r.Items {
		list = append(list, fmt.Sprintf("%s %s", t.State, strings.TrimSuffix(t.Path+">"+t.As, ">")))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

type noSecrets struct{}

func (noSecrets) Missing(string) ([]string, error)                   { return nil, nil }
func (noSecrets) Add(_ context.Context, _ ask.Asker, _ string) error { return nil }

func wantCode(t *testing.T, err error, code fault.Code, words ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%v, want code %s", err, code)
	}
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want %q in it", err, word)
		}
	}
}
