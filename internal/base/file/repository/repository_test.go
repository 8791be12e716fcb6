package repository_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://h.test/a/b.git":             "https://h.test/a/b.git",
		"https://user:secret@h.test/a":       "https://h.test/a",
		"https://token@h.test/a":             "https://h.test/a",
		"ssh://git@h.test:22/a":              "ssh://git@h.test:22/a",
		"ssh://git:secret@h.test/a":          "ssh://git@h.test/a",
		"git@h.test:team/a.git":              "git@h.test:team/a.git",
		"file:///srv/a":                      "file:///srv/a",
		"git://x:secret@h.test/a":            "git://h.test/a",
		"http://h.test":                      "http://h.test",
		"h.test:a":                           "h.test:a",
		"-u":                                 "",
		"--upload-pack=touch x":              "",
		"ext::sh -c 'touch x'":               "",
		"fd::17":                             "",
		"h.test::x":                          "",
		"ssh://-oProxyCommand=x/a":           "",
		"ssh://git@-oProxyCommand=x/a":       "",
		"ssh://-o@h.test/a":                  "",
		"git@-h:a":                           "",
		"git@h.test:-a":                      "",
		"ftp://h.test/a":                     "",
		"https://h.test/a\nhost=evil.test":   "",
		"https://h.test/\x1b[31m":            "",
		"relative/path":                      "",
		"":                                   "",
		"https://user:secret@h.test/a?x=y#z": "https://h.test/a?x=y#z",
	} {
		a, err := repository.ParseAddress(text)
		if (err != nil) != (want == "") || a.String() != want {
			t.Errorf("%q: %q, %v, want %q", text, a, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("https://user:secret@h.test/a.git")
	f.Add("git@h.test:a")
	f.Add("ext::sh -c x")
	f.Add("-u")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := repository.ParseAddress(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(a.String(), "-") || strings.ContainsAny(a.String(), "\n\x00") || strings.Contains(strings.SplitN(a.String(), "/", 2)[0], "::") {
			t.Errorf("%q becomes %q", text, a)
		}
		if again, err := repository.ParseAddress(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("%q becomes %q, and that %q, %v", text, a, again, err)
		}
	})
}

// git runs git in dir and returns what it prints.
func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a repository with one file.
func commit(t *testing.T, name, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	git(t, dir, "", "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "", "add", "-A")
	git(t, dir, "", "commit", "-qm", "one")
	return dir
}

func parse(t *testing.T, text string) repository.Address {
	t.Helper()
	a, err := repository.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestBare(t *testing.T) {
	t.Parallel()
	dir := commit(t, "a b\tc.txt", "text\n")
	git(t, dir, "", "tag", "v1")
	g := repository.Git{Environ: append(os.Environ(), "GIT_DIR=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.bare", "GIT_CONFIG_VALUE_0=x")}
	clone := filepath.Join(t.TempDir(), "c.git")
	if err := g.Clone(t.Context(), parse(t, dir), clone, repository.CloneOptions{Bare: true, Branch: "v1"}); err != nil {
		t.Fatal(err)
	}
	id, err := g.Commit(t.Context(), clone, "")
	if err != nil || id != git(t, dir, "", "rev-parse", "HEAD") {
		t.Errorf("%s, %v", id, err)
	}
	if _, err := g.Commit(t.Context(), clone, "abcdef"); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	files, err := g.List(t.Context(), clone, id)
	if err != nil || len(files) != 1 || files[0].Path != "a b\tc.txt" || files[0].Size != 5 || files[0].Kind != repository.Regular {
		t.Fatalf("%+v, %v", files, err)
	}
	contents, err := g.Read(t.Context(), clone, append(files, files[0]))
	if err != nil || string(contents[0]) != "text\n" || !bytes.Equal(contents[0], contents[1]) {
		t.Errorf("%q, %v", contents, err)
	}
	files[0].Size++
	if _, err := g.Read(t.Context(), clone, files); err == nil {
		t.Error("a size that is not that of the file")
	}
}

func TestCloneFails(t *testing.T) {
	t.Parallel()
	dir := commit(t, "a", strings.Repeat("x", 100))
	for name, tt := range map[string]struct {
		from    string
		options repository.CloneOptions
		code    fault.Code
	}{
		"nowhere":   {"/nowhere", repository.CloneOptions{}, fault.Tool},
		"no_branch": {dir, repository.CloneOptions{Branch: "gone"}, fault.Tool},
		"too_large": {dir, repository.CloneOptions{MaxBytes: 1}, fault.Limit},
	} {
		g := repository.Git{Environ: os.Environ()}
		err := g.Clone(t.Context(), parse(t, tt.from), filepath.Join(t.TempDir(), "c"), tt.options)
		if fault.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := repository.Git{Environ: os.Environ()}.Clone(ctx, parse(t, dir), filepath.Join(t.TempDir(), "c"), repository.CloneOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// backend serves the repository at dir as web servers do.
func backend(t *testing.T, dir string) *cgi.Handler {
	t.Helper()
	program := filepath.Join(git(t, dir, "", "--exec-path"), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		t.Skip("git comes without git-http-backend")
	}
	return &cgi.Handler{Path: program, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
}

func withoutProxy() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.Contains(strings.ToLower(e), "proxy") })
}

// TestEndless clones from a server that sends more than is allowed, and does not end: the clone is given up.
func TestEndless(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it never fails
	dir := commit(t, "a", string(noise))
	handler := backend(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(&stalled{ResponseWriter: w, left: 2 << 20, gone: r.Context().Done()}, r)
	}))
	defer server.Close()
	to := filepath.Join(t.TempDir(), "c")
	err := repository.Git{Environ: withoutProxy()}.Clone(t.Context(), parse(t, server.URL+"/.git"), to, repository.CloneOptions{Bare: true, MaxBytes: 1 << 20})
	if fault.CodeOf(err) != fault.Limit || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Error(err)
	}
}

// stalled sends so many bytes, and then nothing until the client is gone.
type stalled struct {
	http.ResponseWriter
	left int
	gone <-chan struct{}
}

func (s *stalled) Write(data []byte) (int, error) {
	if s.left -= len(data); s.left < 0 {
		s.ResponseWriter.(http.Flusher).Flush()
		<-s.gone
		return 0, errors.New("the client is gone")
	}
	return s.ResponseWriter.Write(data)
}

// TestPassword checks that a password in an address reaches the server, in a header, and no
// argument or message.
func TestPassword(t *testing.T) {
	t.Parallel()
	dir := commit(t, "a", "text")
	handler := backend(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "s/cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	g := repository.Git{Environ: withoutProxy()}
	if err := g.Clone(t.Context(), parse(t, "http://me:s%2Fcret@"+host+"/.git"), filepath.Join(t.TempDir(), "c"), repository.CloneOptions{Bare: true}); err != nil {
		t.Error(err)
	}
	err := g.Clone(t.Context(), parse(t, "http://me:wrong-one@"+host+"/.git"), filepath.Join(t.TempDir(), "d"), repository.CloneOptions{Bare: true})
	if fault.CodeOf(err) != fault.Tool || strings.Contains(err.Error(), "wrong-one") || strings.Contains(err.Error(), "me:") {
		t.Error(err)
	}
}

// TestHooksDoNotRun clones with settings of the user that would run programs.
func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	dir := commit(t, "a", "text")
	home := t.TempDir()
	ran := filepath.Join(home, "ran")
	for _, hook := range []string{"hooks/post-checkout", "hooks/reference-transaction", "template/hooks/post-checkout"} {
		file := filepath.Join(home, filepath.FromSlash(hook))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := "[core]\n\thooksPath = " + home + "/hooks\n\tfsmonitor = touch " + ran + "\n[init]\n\ttemplateDir = " + home + "/template\n[protocol \"ext\"]\n\tallow = always\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g := repository.Git{Environ: append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)}
	for _, bare := range []bool{true, false} {
		if err := g.Clone(t.Context(), parse(t, dir), filepath.Join(t.TempDir(), "c"), repository.CloneOptions{Bare: bare}); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
}
