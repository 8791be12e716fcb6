package source_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bare makes a bare repository with two branches.
func bare(t *testing.T) (dir, repo string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	dir = makeTree(t, map[string]string{
		"work/README.md": "# Read me", "work/docs/a.md": "a", "work/docs/b.bin": "\x00", "work/src/x.go": "package x", "work/.gitignore": "*.md\n",
		"secret": "private", "work/.gitattributes": "*.go filter=evil\n",
	})
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(dir, "work"), "-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "work/link.txt")); err != nil {
		noLinks(t, err)
	}
	git("init", "-q", "-b", "main")
	git("add", "-f", ".")
	git("commit", "-q", "-m", "one")
	git("checkout", "-q", "-b", "dev")
	if err := os.WriteFile(filepath.Join(dir, "work/docs/a.md"), []byte("dev a"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("commit", "-q", "-a", "-m", "two")
	git("checkout", "-q", "main")
	repo = filepath.Join(dir, "r.git")
	git("clone", "-q", "--bare", ".", repo)
	return dir, repo
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	dir, repo := bare(t)
	l := loaderAt(dir)
	sameList(t, texts(t, l, "git+file://"+repo, "git+file://"+repo),
		".gitattributes (txt with lines): *.go filter=evil", ".gitignore (txt with lines): *.md", "README.md (md with lines): # Read me", "docs/a.md (md with lines): a",
		"docs/b.bin is skipped", "link.txt (txt with lines): "+dir+"/secret", "src/x.go (go with lines): package x")
	sameList(t, texts(t, l, "git+file://"+repo, "git+file://"+repo+"#dev:docs"), "#dev/docs/a.md (md with lines): dev a", "#dev/docs/b.bin is skipped")
	sameList(t, list(t, l, dir, "r.git#:docs"), "r.git/docs/a.md", "r.git/docs/b.bin")
	if got := list(t, l, dir, "r.git"); len(got) != 7 {
		t.Errorf("%q", got)
	}
	for d := range l.Documents(t.Context(), []string{"git+file://" + repo, dir + "/secret"}) {
		if cloned := strings.HasSuffix(d.Path, ".md"); cloned != (d.Held > 0) && (cloned || d.Path == dir+"/secret") {
			t.Errorf("%s holds %d bytes", d.Path, d.Held)
		}
	}
	got := list(t, l, dir, "git+file://"+repo+"#gone", "git+file://"+repo+"#main:nowhere", "git+file://u:secret@/nowhere/r.git")
	if len(got) != 3 || !strings.Contains(got[0], "cannot be cloned") || !strings.Contains(got[1], "does not exist") || !strings.Contains(got[2], "cannot be cloned") || strings.Contains(got[2], "secret") {
		t.Errorf("%q", got)
	}
}

// TestRepositoriesRunNothing checks sources that would have git start a program.
func TestRepositoriesRunNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := loaderAt(dir)
	made := filepath.Join(dir, "made")
	for _, s := range []string{
		"git+ext::sh -c 'touch " + made + "'", "git+ext::touch% " + made, "git+-u", "git+--upload-pack=touch " + made, "ssh://-oProxyCommand=touch " + made + "/x",
		"ssh://u@-oProxyCommand=x/x", "git@-x", "git+https://h.test/x#--upload-pack=touch", "git+fd::17", "git+https://h.test/x#main:../..", "git+relative",
	} {
		for d, err := range l.Documents(t.Context(), []string{s}) {
			if err == nil {
				t.Errorf("%s: %+v", s, d)
			}
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a source ran a program")
	}
}

func TestWithoutGit(t *testing.T) {
	t.Parallel()
	l := loaderAt(t.TempDir())
	l.Input.Programs.Environ = []string{"PATH=/nowhere"}
	for _, err := range l.Documents(t.Context(), []string{"https://x.test/r.git"}) {
		if err == nil || !strings.Contains(err.Error(), "git is needed to read repositories") {
			t.Error(err)
		}
	}
}
