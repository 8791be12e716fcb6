package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/bundle/remote"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// sample is a bundle with something of everything.
func sample() map[string]string {
	return map[string]string{
		"agents/dep/graph.yaml": "name: dep\n", "agents/dep/scripts/run.sh": "echo hi\n", "agents/dep/README.md": "# dep\n",
		"roles/kind.md": "Be kind.\n", "macros/m.yaml": "steps: ['!make', .exit]\n", "functions/tools/t.sh": "echo t\n",
		"functions/utils/u.sh": "ignored", "functions/mcp.json": `{"mcpServers": {"gh": {"command": "gh-server", "args": ["a b"], "env": {"T": "{{GH}}"}}}}`,
		"README.md": "ignored", "src/main.go": "ignored",
	}
}

const sampleServers = `{
  "mcpServers": {
    "gh": {
      "command": "gh-server",
      "args": [
        "a b"
      ],
      "env": {
        "T": "{{GH}}"
      }
    }
  }
}
`

func TestInstall(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	id := r.commit(sample())
	p := newPlace(t)
	report := p.install(r)
	want := map[string]string{
		"agents/dep/graph.yaml": "name: dep\n", "agents/dep/scripts/run.sh": "echo hi\n", "agents/dep/README.md": "# dep\n",
		"roles/kind.md": "Be kind.\n", "macros/m.yaml": "steps: ['!make', .exit]\n", "functions/tools/t.sh": "echo t\n", "functions/mcp.json": sampleServers,
	}
	p.has(want)
	if got := states(report); strings.Count(got, "new ") != 7 || report.Commit != id {
		t.Errorf("%s, %+v", got, report)
	}
	if shown := p.shown.String(); !strings.Contains(shown, "  agents           new=3  identical=0  conflict=0\n  roles            new=1") {
		t.Errorf("shown: %s", shown)
	}
	for _, word := range []string{"agent       dep", "graph.yaml", "scripts/run.sh", "tool        functions/tools/t.sh (7 bytes)", "macros/m.yaml\n                !make\n", "MCP server  gh: gh-server 'a b'", "env: {\"T\":\"{{GH}}\"}"} {
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], word) {
			t.Errorf("%q is not in the question %q", word, p.asked)
		}
	}
	if info, err := os.Stat(filepath.Join(p.root, "functions", "tools", "t.sh")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	records, err := p.List()
	if err != nil || len(records) != 1 || records[0].Name != "tools" || records[0].Commit != id || records[0].Pending || len(records[0].Files) != 6 || len(records[0].Servers) != 1 {
		t.Errorf("%+v, %v", records, err)
	}
	before := p.files()
	again := p.install(r) // nothing comes, so nothing is asked
	if got := states(again); strings.Count(got, "identical") != 7 || len(p.asked) != 1 {
		t.Errorf("%s, asked %q", got, p.asked)
	}
	p.has(before)
}

func TestRefs(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	first := r.commit(map[string]string{"roles/a.md": "one"})
	r.git("", "tag", "v1")
	r.git("", "branch", "feature/x")
	r.commit(map[string]string{"roles/a.md": "two"})
	for ref, want := range map[string]string{"": "two", "#main": "two", "#v1": "one", "#feature/x": "one", "#" + first: "one", "#" + first[:8]: "one"} {
		p := newPlace(t)
		if _, err := p.Install(t.Context(), r.dir+ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
		p.has(map[string]string{"roles/a.md": want})
	}
	for _, ref := range []string{"#", "#-x", "#a..b", "#a b", "#a;b", "#../x", "#--upload-pack=x", "#a#b$"} {
		p := newPlace(t)
		_, err := p.Install(t.Context(), r.dir+ref)
		wantCode(t, err, fault.Usage)
	}
	for _, ref := range []string{"#gone", "#deadbeef"} {
		p := newPlace(t)
		if _, err := p.Install(t.Context(), r.dir+ref); err == nil {
			t.Errorf("%s was installed", ref)
		}
		p.has(map[string]string{})
	}
}

// TestAddresses refuses addresses that would have git start a program, and never repeats secrets.
func TestAddresses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	made := filepath.Join(p.root, "made")
	for _, address := range []string{
		"ext::sh -c 'touch " + made + "'", "-u", "--upload-pack=touch " + made, "fd::17", "ssh://-oProxyCommand=touch " + made + "/x",
		"https://u:s3cr3t@h.test/x?token=s3cr3t", "nowhere", "", "#x", "ftp://u:s3cr3t@h.test/x",
	} {
		_, err := p.Install(t.Context(), address)
		wantCode(t, err, fault.Usage)
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", address, err)
		}
	}
	_, err := p.Install(t.Context(), "file://u:s3cr3t@/nowhere/x.git")
	wantCode(t, err, fault.Tool, "cannot be cloned")
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err)
	}
	p.has(map[string]string{})
}

// TestPassword: a password in an address is used, and neither shown nor kept.
func TestPassword(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"roles/a.md": "x"})
	backend := filepath.Join(r.git("", "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git comes without git-http-backend")
	}
	handler := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "s3cr3t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	p := newPlace(t)
	p.Git.Environ = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.Contains(strings.ToLower(e), "proxy") })
	report, err := p.Install(t.Context(), strings.Replace(server.URL, "://", "://me:s3cr3t@", 1)+"/.git")
	if err != nil {
		t.Fatal(err)
	}
	p.has(map[string]string{"roles/a.md": "x"})
	record, err := os.ReadFile(filepath.Join(p.Dirs.Records, report.Bundle+".json"))
	if err != nil || strings.Contains(string(record)+p.shown.String()+report.Text(), "s3cr3t") || report.URL != server.URL+"/.git" {
		t.Errorf("%v, %s\n%s", err, record, p.shown.String())
	}
	_, err = p.Update(t.Context(), report.Bundle) // without the password
	wantCode(t, err, fault.Tool, "cannot be cloned")
}

func TestFilter(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(sample())
	for category, want := range map[remote.Category][]string{
		remote.Agents: {"agents/dep/README.md", "agents/dep/graph.yaml", "agents/dep/scripts/run.sh"}, remote.Roles: {"roles/kind.md"},
		remote.Macros: {"macros/m.yaml"}, remote.Functions: {"functions/tools/t.sh"}, remote.MCPConfig: {"functions/mcp.json"},
	} {
		p := newPlace(t)
		p.install(r, category)
		got := p.files()
		for _, file := range want {
			if _, ok := got[file]; !ok {
				t.Errorf("%s: %s is missing", category, file)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %q", category, got)
		}
	}
	p := newPlace(t)
	p.install(r, remote.Roles)
	p.install(r, remote.Macros) // adds to it
	files := sample()
	files["roles/kind.md"], files["agents/dep/graph.yaml"] = "Be kinder.\n", "changed"
	r.commit(files)
	if got := states(p.update("tools")); got != "identical macros/m.yaml, updated roles/kind.md" {
		t.Error(got)
	}
	p.has(map[string]string{"roles/kind.md": "Be kinder.\n", "macros/m.yaml": "steps: ['!make', .exit]\n"})
}

func TestConsent(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(sample())
	for _, answer := range []string{"no", "n", "why?", ""} {
		p := newPlace(t)
		p.Asker = ask.Func(func(_ context.Context, q ask.Question) (string, error) {
			if !q.Consent || q.HasDefault {
				t.Errorf("an answer is preselected: %+v", q)
			}
			return answer, nil
		})
		report := p.install(r)
		if !report.Declined || !strings.Contains(report.Text(), "Nothing was changed") {
			t.Errorf("%q: %+v", answer, report)
		}
		p.has(map[string]string{})
		if records, _ := p.List(); len(records) > 0 {
			t.Errorf("%q: %+v", answer, records)
		}
	}
	p := newPlace(t)
	p.Asker = ask.Unavailable{}
	_, err := p.Install(t.Context(), r.dir)
	wantCode(t, err, fault.Usage, "no user can be asked", "Nothing was changed")
	if !strings.Contains(fault.HintOf(err), "--yes") {
		t.Error(fault.HintOf(err))
	}
	p.has(map[string]string{})
	p.install(r, remote.Roles) // nothing of it runs
	p.Yes = true
	p.install(r)
	if len(p.files()) != 7 {
		t.Errorf("%q", p.files())
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(sample())
	p := newPlace(t)
	p.DryRun = true
	write(t, filepath.Join(p.root, "roles", "kind.md"), "mine")
	report := p.install(r)
	if got := states(report); !strings.Contains(got, "conflict roles/kind.md") || !strings.Contains(got, "new gh") || len(p.asked) > 0 {
		t.Errorf("%s, asked %q", got, p.asked)
	}
	if text := report.Text(); !strings.Contains(text, "Nothing was changed") || !strings.Contains(text, "! roles/kind.md") || !strings.Contains(text, "+ functions/tools/t.sh") {
		t.Error(text)
	}
	if shown := p.shown.String(); !strings.Contains(shown, "MCP server  gh") {
		t.Error(shown)
	}
	p.has(map[string]string{"roles/kind.md": "mine"})
	if _, err := os.Stat(p.Dirs.Records); err == nil {
		t.Error("there is a directory of records")
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	files := map[string]string{"roles/a.md": "A", "roles/b.md": "B", "roles/c.md": "C", "roles/d.md": "D"}
	r.commit(files)
	mine := map[string]string{"roles/a.md": "a", "roles/b.md": "b", "roles/c.md": "C"}
	for name, tt := range map[string]struct {
		force   bool
		answers []string
		want    string // what a, b, c and d are
		code    fault.Code
	}{
		"keep":        {answers: []string{"keep"}, want: "abCD"},
		"replace":     {answers: []string{"replace", "keep"}, want: "AbCD"},
		"keep_all":    {answers: []string{"keep-all", "replace"}, want: "abCD"},
		"replace_all": {answers: []string{"replace-all", "keep"}, want: "ABCD"},
		"abort":       {answers: []string{"replace", "abort"}, want: "abC", code: fault.Canceled},
		"nobody":      {want: "abC", code: fault.Usage},
		"force":       {force: true, want: "ABCD"},
	} {
		p := newPlace(t)
		for file, text := range mine {
			write(t, filepath.Join(p.root, filepath.FromSlash(file)), text)
		}
		p.answers["bundle-file"], p.Force = tt.answers, tt.force
		_, err := p.Install(t.Context(), r.dir)
		wantCode(t, err, tt.code)
		got := p.files()
		if s := got["roles/a.md"] + got["roles/b.md"] + got["roles/c.md"] + got["roles/d.md"]; s != tt.want {
			t.Errorf("%s: %q", name, s)
		}
		if err != nil {
			continue
		}
		if _, err := p.Remove(t.Context(), "tools"); err != nil {
			t.Error(err)
		}
		got = p.files() // what was the user's stays: kept ones, and the one that was the same
		if got["roles/d.md"] != "" || got["roles/c.md"] != "C" || strings.HasPrefix(tt.want, "a") != (got["roles/a.md"] == "a") {
			t.Errorf("%s: after the removal: %q", name, got)
		}
	}
}

// TestUpdate is the three-way comparison: the user's side is set up by hand, and what the bundle
// has changes.
func TestUpdate(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{
		"roles/same.md": "1", "roles/theirs.md": "1", "roles/mine.md": "1", "roles/both.md": "1", "roles/agree.md": "1",
		"roles/gone.md": "1", "roles/gonemine.md": "1", "roles/deleted.md": "1", "roles/deletedchanged.md": "1", "roles/sub/gone.md": "1",
	})
	p := newPlace(t)
	p.install(r)
	role := func(name string) string { return filepath.Join(p.root, "roles", name+".md") }
	write(t, role("mine"), "user")
	write(t, role("both"), "user")
	write(t, role("agree"), "2")
	write(t, role("gonemine"), "user")
	for _, name := range []string{"deleted", "deletedchanged"} {
		if err := os.Remove(role(name)); err != nil {
			t.Fatal(err)
		}
	}
	r.commit(map[string]string{
		"roles/same.md": "1", "roles/theirs.md": "2", "roles/mine.md": "1", "roles/both.md": "2", "roles/agree.md": "2",
		"roles/deleted.md": "1", "roles/deletedchanged.md": "2", "roles/new.md": "2",
	})
	p.DryRun = true
	before := p.files()
	if got := states(p.update("tools")); !strings.Contains(got, "conflict roles/both.md, conflict roles/deletedchanged.md, identical") {
		t.Error(got)
	}
	p.has(before)
	p.DryRun = false
	p.answers["bundle-file"] = []string{"replace", "keep"}
	report := p.update("tools")
	want := "identical roles/agree.md, identical roles/same.md, kept roles/deleted.md, kept roles/deletedchanged.md, kept roles/mine.md, " +
		"left roles/gonemine.md, new roles/new.md, removed roles/gone.md, removed roles/sub/gone.md, replaced roles/both.md, updated roles/theirs.md"
	if got := states(report); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.has(map[string]string{
		"roles/same.md": "1", "roles/theirs.md": "2", "roles/mine.md": "user", "roles/both.md": "2", "roles/agree.md": "2", "roles/gonemine.md": "user", "roles/new.md": "2",
	})
	if _, err := os.Stat(filepath.Join(p.root, "roles", "sub")); err == nil {
		t.Error("an empty directory stays")
	}
	asked := len(p.asked)
	if got := states(p.update("tools")); strings.Contains(got, "new ") || strings.Contains(got, "conflict") || len(p.asked) != asked {
		t.Errorf("a second update: %s, asked %q", got, p.asked[asked:])
	}
	removed, err := p.Remove(t.Context(), "tools")
	if err != nil || !strings.Contains(removed.Text(), "= roles/mine.md") {
		t.Errorf("%v\n%s", err, removed.Text())
	}
	p.has(map[string]string{"roles/mine.md": "user", "roles/gonemine.md": "user"})
	if _, err := p.Update(t.Context(), "tools"); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"functions/mcp.json": `{"mcpServers": {
		"new": {"command": "a"}, "same": {"args": ["x"], "command": "b"}, "both": {"url": "https://h.test/?token=secret", "headers": {"K": "secret"}}}}`})
	local := `{"other": 1, "mcpServers": {"mine": {"command": "m"}, "same": {"command": "b", "args": ["x"]}, "both": {"command": "c", "env": {"K": "private"}}}}`
	for name, tt := range map[string]struct {
		answer string
		force  bool
		want   string
		code   fault.Code
	}{
		"keep":   {answer: "keep local", want: "identical same, kept both, new new"},
		"take":   {answer: "take remote", want: "identical same, new new, replaced both"},
		"rename": {answer: `rename remote as "both-remote"`, want: "identical same, new new, renamed both>both-remote"},
		"abort":  {answer: "abort merge", code: fault.Canceled},
		"nobody": {code: fault.Usage},
		"force":  {force: true, want: "identical same, new new, replaced both"},
	} {
		p := newPlace(t)
		write(t, p.Dirs.Servers, local)
		if p.Force = tt.force; tt.answer != "" {
			p.answers["bundle-server"] = []string{tt.answer}
		}
		report, err := p.Install(t.Context(), r.dir)
		wantCode(t, err, tt.code)
		if asked := strings.Join(p.asked, "\n"); strings.Contains(asked, "private") || strings.Contains(asked, "token=secret") {
			t.Errorf("%s: asked %s", name, asked)
		}
		if err != nil {
			if got := p.files()["functions/mcp.json"]; got != local {
				t.Errorf("%s: %s", name, got)
			}
			continue
		}
		if got := states(report); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
		merged := p.files()["functions/mcp.json"]
		if !strings.HasPrefix(merged, "{\n  \"other\": 1,\n  \"mcpServers\": {\n    \"mine\": {\n      \"command\": \"m\"") {
			t.Errorf("%s: %s", name, merged)
		}
		p.answers["bundle-server"] = nil
		p.update("tools")
		if again := p.files()["functions/mcp.json"]; again != merged {
			t.Errorf("%s: a second merge changes\n%s\nto\n%s", name, merged, again)
		}
		if _, err := p.Remove(t.Context(), "tools"); err != nil {
			t.Error(err)
		}
		got := p.files()["functions/mcp.json"]
		if strings.Contains(got, `"new"`) || !strings.Contains(got, `"mine"`) || !strings.Contains(got, `"same"`) || strings.Contains(got, "both-remote") {
			t.Errorf("%s: after the removal: %s", name, got)
		}
	}
}

func TestBrokenServers(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no_json": "{", "incomplete": `{"mcpServers": {"a": {}}}`, "both": `{"mcpServers": {"a": {"command": "x", "url": "y"}}}`, "escape": `{"mcpServers": {"a\u001b[2J": {"command": "x"}}}`,
		"list": `[]`, "twice": `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, "stdio_url": `{"mcpServers": {"a": {"type": "stdio", "url": "x"}}}`,
	} {
		r := newRepo(t)
		r.commit(map[string]string{"functions/mcp.json": text, "roles/a.md": "x"})
		p := newPlace(t)
		_, err := p.Install(t.Context(), r.dir)
		if fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: %v", name, err)
		}
		p.has(map[string]string{})
	}
}

// TestKilled takes an installation up that ended anywhere: at each write in turn.
func TestKilled(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"roles/a.md": "1", "roles/b.md": "1", "roles/gone.md": "1", "functions/mcp.json": `{"mcpServers": {"s": {"command": "1"}}}`})
	whole := newPlace(t)
	whole.install(r)
	next := map[string]string{"roles/a.md": "2", "roles/b.md": "2", "roles/new.md": "2", "functions/mcp.json": `{"mcpServers": {"s": {"command": "2"}}}`}
	id := r.commit(next)
	whole.update("tools")
	want := whole.files()
	for n := range 7 {
		p := newPlace(t)
		p.Git = whole.Git
		if _, err := p.Install(t.Context(), r.dir+"#"+r.git("", "rev-parse", "HEAD~1")); err != nil {
			t.Fatal(err)
		}
		ctx := &countdown{Context: t.Context(), left: n}
		answer := p.Asker
		p.Asker = ask.Func(func(_ context.Context, q ask.Question) (string, error) { // the last thing before it writes
			ctx.count()
			return answer.Ask(t.Context(), q)
		})
		if _, err := p.Install(ctx, r.dir+"#main"); n < 5 && !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", n, err)
		}
		p.Asker = answer
		records, err := p.List()
		if err != nil || len(records) != 1 {
			t.Fatalf("%d: %+v, %v", n, records, err)
		}
		if n%2 == 0 {
			p.update("tools")
		} else {
			p.install(r)
		}
		p.has(want)
		if records, _ := p.List(); records[0].Pending || records[0].Commit != id || len(p.asked) > 3 {
			t.Errorf("%d: %+v, asked %q", n, records[0], p.asked)
		}
		if _, err := p.Remove(t.Context(), "tools"); err != nil {
			t.Error(err)
		}
		p.has(map[string]string{"functions/mcp.json": "{\n  \"mcpServers\": {}\n}\n"})
	}
}

// countdown is a context that ends after its error was asked for so often since count was called.
type countdown struct {
	context.Context
	mu       sync.Mutex
	counting bool
	left     int
}

func (c *countdown) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = true
}

func (c *countdown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counting {
		return c.Context.Err()
	}
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(sample())
	p := newPlace(t)
	p.Yes = true
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			one := *p.Installer
			one.Show = func(string) {}
			if _, err := one.Install(t.Context(), r.dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(p.files()) != 7 {
		t.Errorf("%q", p.files())
	}
	unlock, err := atomicfile.Lock(t.Context(), filepath.Join(p.Dirs.Records, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	p.Show = func(text string) {
		p.shown.WriteString(text)
		cancel()
	}
	if _, err := p.Remove(ctx, "tools"); !errors.Is(err, context.Canceled) || !strings.Contains(p.shown.String(), "Waiting for another process") {
		t.Errorf("%v, shown %s", err, p.shown.String())
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for range 2 { // two repositories called tools
		r := newRepo(t)
		r.commit(map[string]string{"roles/a.md": "x"})
		p.install(r)
	}
	records, err := p.List()
	if err != nil || len(records) != 2 || records[0].Name != "tools-2" || records[1].Name != "tools" {
		t.Errorf("%+v, %v", records, err)
	}
	if _, err := p.Remove(t.Context(), "tool"); !strings.Contains(fault.HintOf(err), "did you mean tools") {
		t.Errorf("%v, %s", err, fault.HintOf(err))
	}
	for _, name := range []string{"../x", "", "a/b", "..", "x\x00"} {
		_, err := p.Remove(t.Context(), name)
		wantCode(t, err, fault.NotFound)
	}
	write(t, filepath.Join(p.Dirs.Records, "tools.json"), `{"version": 1, "name": "tools", "url": "x", "files": [{"path": "agents/../../x"}]}`)
	_, err = p.Remove(t.Context(), "tools")
	wantCode(t, err, fault.Config, "damaged", "tools.json")
	if records, err := p.List(); len(records) != 1 || err == nil {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestNothingToInstall(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"README.md": "x", "functions/utils/u.sh": "x"})
	p := newPlace(t)
	report := p.install(r)
	if text := report.Text(); !strings.Contains(text, "functions/tools/") {
		t.Error(text)
	}
	p.has(map[string]string{})
	empty := newRepo(t)
	if _, err := p.Install(t.Context(), empty.dir); err == nil {
		t.Error("a repository without commits")
	}
}

// TestEnvironment: the question names what scripts and agents get from the user's environment.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{
		"functions/tools/t.sh": "# @env MY_TOKEN\n", "agents/a/graph.yaml": "\"environment\": [AWS_SECRET]\n", "agents/a/run.py": "# @env OTHER\n", "agents/b/config.yaml": "name: [\n", "agents/c/graph.yaml": "- x\n",
	})
	p := newPlace(t)
	p.install(r)
	for _, line := range []string{"t.sh (16 bytes), gets from your environment: MY_TOKEN\n", "graph.yaml, gets from your environment: AWS_SECRET\n", "run.py, gets from your environment: OTHER\n"} {
		if !strings.Contains(p.asked[0], line) {
			t.Errorf("%q is not in %s", line, p.asked[0])
		}
	}
}

func TestShipped(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"functions/tools/fs_cat.sh": "x", "agents/coder/graph.yaml": "x", "agents/other/graph.yaml": "x"})
	p := newPlace(t)
	p.Ships = func(c remote.Category, name string) bool {
		return c == remote.Functions && name == "fs_cat" || c == remote.Agents && name == "coder"
	}
	p.install(r)
	if q := p.asked[0]; strings.Count(q, "in place of the ") != 2 || !strings.Contains(q, "agent       coder, in place of the agent that is part of the program") {
		t.Error(q)
	}
}

// A role that models or shells act on needs consent; any other does not.
func TestRolesThatNeedConsent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, content, want string }{
		{"plain", "kind", "Be kind.", ""},
		{"settings", "kind", "---\ntemperature: 0.1\nenabled_tools: ''\n---\nBe kind.", ""},
		{"shell", "shell", "Print rm.", ", in place of the role that is part of the program"},
		{"tools", "kind", "---\nenabled_tools: all\n---\n", ", tools: all"},
		{"list", "below/kind", "---\nenabled_tools: [fs_cat, x]\n---\n", ", tools: fs_cat,x"},
		{"servers", "shell", "---\nenabled_mcp_servers: github\n---\n", ", in place of the role that is part of the program, MCP servers: github"},
		{"invalid", "kind", "---\nenabled_tools: all\ntemperature: [\n---\n", ", which cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.commit(map[string]string{"roles/" + tt.file + ".md": tt.content})
			p := newPlace(t)
			p.Ships = func(c remote.Category, name string) bool { return c == remote.Roles && name == "shell" }
			p.answers = nil
			_, err := p.Install(t.Context(), r.dir)
			if tt.want == "" {
				if err != nil || len(p.asked) > 0 {
					t.Errorf("%v, asked %q", err, p.asked)
				}
				return
			}
			wantCode(t, err, fault.Usage, "no user can be asked")
			if len(p.asked) != 1 || !strings.Contains(p.asked[0], "\n  role        roles/"+tt.file+".md"+tt.want+"\n") {
				t.Errorf("asked %q", p.asked)
			}
			p.has(map[string]string{})
		})
	}
}

func TestSkills(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	files := map[string]string{"skills/pdf/SKILL.md": "---\nname: pdf\n---\n", "skills/pdf/scripts/read.py": "print()\n", "README.md": "ignored"}
	r.commit(files)
	p := newPlace(t)
	p.install(r, remote.Skills)
	delete(files, "README.md")
	p.has(files)
	for _, word := range []string{"skill       skills/pdf/SKILL.md", "script      skills/pdf/scripts/read.py"} {
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], word) {
			t.Errorf("%q is not in the question %q", word, p.asked)
		}
	}
}
