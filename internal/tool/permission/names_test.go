package permission_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/base/text/sample"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag/source"
	"loki/internal/tool/permission"
)

// The parts of random names.
var nameParts = []string{
	"[", "]", "{", "}", "*", "?", "**", ",", "!", "^", "-", `\`, " ", ".", "~", "#", "$", "'", `"`, "`", ";", "&", "|", "(", ")", "<", "@", "=", ":", "%", "+",
	"a", "b", "id", "x", "0", "é", "e\u0301", "ü", "你", "\U0001f600", "\u200d", "[id]", "{a,b}", "[a-z]", "[!x]", "{x}", "[]", "{}", "\n", "\t", ".env", "--",
}

func randomName(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(8) {
		b.WriteString(nameParts[r.IntN(len(nameParts))])
	}
	return b.String()
}

// denied is a file that a rule denies.
type denied struct{ rule, path string }

// oddTree makes a workspace with random names, and rules for them.
func oddTree(t *testing.T, r *rand.Rand, count int) (root string, files []denied, rules permission.Rules) {
	t.Helper()
	root = resolved(t, t.TempDir())
	write := func(path string) bool {
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
			return false
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return false
		}
		_, err = f.WriteString("SECRET\n")
		return errors.Join(err, f.Close()) == nil
	}
	if err := os.WriteFile(filepath.Join(root, "open.txt"), []byte("open\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := 0; len(files) < count; i++ {
		name := randomName(r)
		top := fmt.Sprintf("d%d", i)
		d := denied{rule: top + "/" + name, path: filepath.Join(root, top, name)}
		if bare := strings.ReplaceAll(name, `\`, ""); bare == "." || bare == ".." || name == "~" { // as patterns, they are no names
			continue
		}
		switch r.IntN(6) {
		case 0: // a directory
			d.path = filepath.Join(d.path, "f.txt")
		case 1:
			d.path = filepath.Join(d.path, randomName(r)+"f")
			d.rule += []string{"/", "/**"}[r.IntN(2)]
		case 2:
			d.rule = "./" + strings.ReplaceAll(d.rule, "/", "//")
		case 3:
			d.rule = root + "/" + d.rule
		}
		if !write(d.path) {
			continue
		}
		if _, err := pattern.CompileBoth(d.rule); err != nil { // such a rule is an error, and the user escapes the name
			d.rule = root + "/" + top + "/" + pattern.Escape(name)
		}
		switch r.IntN(8) {
		case 0: // the rule names a link to the file
			link := filepath.Join(root, top+"-link")
			if os.Symlink(d.path, link) == nil {
				d.rule = top + "-link"
			}
		case 1: // and the directory of another name for the file
			twin := filepath.Join(root, top+"-twin")
			if os.Link(d.path, twin) == nil {
				d.path = twin
			}
		}
		files = append(files, d)
		rules.List = append(rules.List, permission.Rule{Tool: "*", Action: permission.Deny, Paths: []string{d.rule}, Origin: fmt.Sprint("rule ", i)})
	}
	outside := resolved(t, t.TempDir()) // a file elsewhere with a name in the workspace
	twin := filepath.Join(root, "inside", "twin")
	if write(filepath.Join(outside, "f")) && os.Mkdir(filepath.Dir(twin), 0o755) == nil && os.Link(filepath.Join(outside, "f"), twin) == nil {
		files = append(files, denied{rule: outside + "/*", path: twin})
		rules.List = append(rules.List, permission.Rule{Tool: "*", Action: permission.Deny, Paths: []string{outside + "/*"}})
	}
	rules.List = append(rules.List, permission.Rule{Tool: "*", Action: permission.Allow})
	return root, files, rules
}

// TestOddNames is about 20,000 files with random names, each of which a rule denies as it is written. Neither native tools nor shell
// commands of any level, attachments or knowledge bases get at one.
func TestOddNames(t *testing.T) {
	t.Parallel()
	const batches, size = 500, 40
	var touched, names atomic.Int64
	t.Cleanup(func() { t.Logf("%d names, %d touched", names.Load(), touched.Load()) })
	for batch := 0; batch < batches; batch += sample.Step(batches) {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(batch), 7))
			root, files, rules := oddTree(t, r, size)
			names.Add(int64(len(files)))
			fail := func(d denied, format string, args ...any) {
				touched.Add(1)
				t.Errorf("rule %q, file %q: %s", d.rule, strings.TrimPrefix(d.path, root), fmt.Sprintf(format, args...))
			}
			j := judge(t, permission.Options{Root: root, Home: "/home/user", Shell: "bash", Sandboxed: true, Rules: rules})
			oddNamesInTools(t, j, root, files, fail)
			oddNamesAttached(t, j, root, files, fail)
			oddNamesInTheSandbox(t, j, root, files, fail)
		})
	}
}

func oddNamesInTools(t *testing.T, j *permission.Judge, root string, files []denied, fail func(denied, string, ...any)) {
	t.Helper()
	listing := j.Judge(permission.Call{Tool: "fs_grep", Arguments: json.RawMessage(`{"path":".","pattern":"SECRET"}`), ReadOnly: true})
	for i, d := range files {
		if listing.Hidden == nil || !listing.Hidden(d.path) {
			fail(d, "fs_grep, fs_glob and fs_ls find it")
		}
		rel, _ := filepath.Rel(root, d.path)
		around := rel
		if top, _, ok := strings.Cut(rel, "/"); ok {
			around = top + "/../" + rel
		}
		for k, tool := range []string{"fs_cat", "fs_read", "fs_write", "fs_patch", "fs_rm", "fs_ls", "fs_mkdir", "mcp__files__read"} {
			path := []string{rel, d.path, "./" + rel, around, root + "//" + rel}[(i+k)%5]
			args, _ := json.Marshal(map[string]any{"path": path, "contents": "x"}) // cannot fail
			if v := j.Judge(permission.Call{Tool: tool, Arguments: args, ReadOnly: k < 2}); v.Action != permission.Deny {
				fail(d, "%s of %q: %s", tool, path, v.Action)
			}
		}
		for _, quoted := range []string{"'" + strings.ReplaceAll(rel, "'", `'\''`) + "'", backslashed(rel)} {
			v := j.Judge(levelCall("cat ./"+quoted, sandbox.Full))
			if strings.ContainsAny(rel, "\n\t\u200d") && v.Action == permission.Ask { // such a text is asked about
				continue
			}
			if v.Action != permission.Deny {
				fail(d, "cat %s at level full: %s", quoted, v.Action)
			}
			if v := j.Judge(levelCall("echo x >./"+quoted, sandbox.Write)); v.Action != permission.Deny && v.Action != permission.Ask {
				fail(d, "a redirection to %s: %s", quoted, v.Action)
			}
		}
	}
}

// backslashed quotes a name with a backslash before each character that could be special.
func backslashed(name string) string {
	if strings.Contains(name, "\n") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && !('a' <= r && r <= 'z') && !('0' <= r && r <= '9') && r != '/' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func oddNamesAttached(t *testing.T, j *permission.Judge, root string, files []denied, fail func(denied, string, ...any)) {
	t.Helper()
	loader := &input.Loader{Dir: root, Denied: j.Unreadable()}
	a, err := loader.Load(t.Context(), []string{"**"})
	if err != nil || strings.Contains(a.Text(""), "SECRET") || !strings.Contains(a.Text(""), "open") {
		fail(denied{path: root}, "attached: %v, %d documents", err, len(a.Documents))
	}
	for _, d := range files {
		if a, err := loader.Load(t.Context(), []string{d.path}); err == nil || strings.Contains(a.Text(""), "SECRET") {
			fail(d, "attached by its name")
		}
	}
	bases := &source.Loader{Input: loader}
	sources := []string{root}
	for _, d := range files {
		sources = append(sources, d.path)
	}
	read := 0
	for doc, err := range bases.Documents(t.Context(), sources) {
		if err != nil {
			continue
		}
		content, err := doc.Read(t.Context())
		if err != nil {
			continue
		}
		if body, err := content.Text(t.Context()); err == nil {
			if read++; strings.Contains(body.Text, "SECRET") {
				fail(denied{path: doc.Path}, "in a knowledge base")
			}
		}
	}
	if read == 0 {
		t.Error("a knowledge base has not even the open file")
	}
}

func oddNamesInTheSandbox(t *testing.T, j *permission.Judge, root string, files []denied, fail func(denied, string, ...any)) {
	t.Helper()
	box := sandbox.New(sandbox.Options{Workspace: root, Home: "/home/user", Denied: closed(j), Getenv: os.Getenv})
	if !box.Support().Files {
		t.Log("there is no sandbox")
		return
	}
	const text = `cat open.txt; grep -ra SECRET . | sed "s/^/FOUND /"
mapfile -d "" -t names < <(find . -mindepth 2 \( -type f -o -type l \) -print0)
cat "${names[@]}"; for f in "${names[@]}"; do echo changed >>"$f"; done
mkdir moved; mv -t moved "${names[@]}"; find moved -type f -exec cat {} +; rm -f "${names[@]}"; true`
	for _, level := range []sandbox.Level{sandbox.Read, sandbox.Write} {
		out, err := process.Run(t.Context(), process.Command{
			Path: "bash", Args: []string{"-c", text}, Dir: root, Confinement: box.Box(sandbox.Declaration{Level: level}, sandbox.Needs{}), Env: os.Environ(),
		})
		if err != nil || !strings.Contains(string(out.Stdout), "open") {
			t.Fatalf("level %s: %v\n%.2000s", level, err, out.Stderr)
		}
		if shown := string(out.Stdout); strings.Contains(shown, "SECRET") {
			at := strings.Index(shown, "SECRET")
			fail(denied{path: root}, "a command at level %s reads %.300q", level, shown[max(at-100, 0):])
		}
	}
	for _, d := range files {
		if text, err := os.ReadFile(d.path); err != nil || string(text) != "SECRET\n" {
			fail(d, "a command at level write leaves %q, %v", text, err)
		}
		if _, err := os.Lstat(d.path); errors.Is(err, fs.ErrNotExist) {
			fail(d, "a command at level write removes it")
		}
	}
}

// TestSpellings is about the ways to name a file that a rule denies, and about files beside it.
func TestSpellings(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	home := resolved(t, t.TempDir())
	for _, name := range []string{"closed/deep/f", "app/[id]/f", "app/i/f", "app/x/f", "real/f", "one", "other", "de/compose\u0301/f", "a b/f", "~/f"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "real", "there": "closed/deep", "up": "app/x"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Link(filepath.Join(root, "one"), filepath.Join(root, "twin")); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ rule, denied, allowed string }{
		{"closed", "closed closed/deep/f closed/new ./closed//deep/../deep/f there/f there/new " + root + "/closed/x x/../closed/f", "closed2 real/f"},
		{"closed/", "closed/deep/f", "real/f"},
		{"./closed/./**", "closed closed/deep/f", "real/f"},
		{"app/[id]/**", "app/[id]/f app/[id] app/i/f app/d/new", "app/x/f"},
		{"app/{x,[id]}/f", "app/x/f app/[id]/f app/i/f app/{x,[id]}/f", "app/i/g"},
		{`app/\[id\]/f`, "app/[id]/f", "app/i/f"},
		{"link/f", "link/f real/f", "one"},
		{"link", "link/f real/f real/new", "one"},
		{"*/f", "real/f link/f", "app/i/f one"},
		{"one", "one twin ./twin", "other"},
		{"o?e", "one twin", "other"},
		{"de/compos\u00e9/**", "de/compose\u0301/f de/compos\u00e9/f", "real/f"},
		{"a b", "a#b/f", "real/f"},
		{"~/f", "~/f ./~/f " + home + "/f", "real/f"},
		{root + "/real", "real/f link/f", "one"},
		{"app/f", "up/../f", "one"}, // tools go up from the name, programs from where the link leads
		{"f", "up/../f", "one"},
	} {
		rules := permission.Rules{List: []permission.Rule{{Tool: "*", Action: permission.Allow, Paths: []string{"**", home + "/**"}}, {Tool: "*", Action: permission.Deny, Paths: []string{tt.rule}}}}
		j := judge(t, permission.Options{Root: root, Home: home, Rules: rules})
		for want, paths := range map[permission.Action]string{permission.Deny: tt.denied, permission.Allow: tt.allowed} {
			for path := range strings.FieldsSeq(paths) {
				args, _ := json.Marshal(map[string]string{"path": strings.ReplaceAll(path, "#", " ")}) // cannot fail
				if v := j.Judge(permission.Call{Tool: "fs_cat", Arguments: args, ReadOnly: true}); v.Action != want {
					t.Errorf("the rule %s and %s: %s, want %s", tt.rule, path, v.Action, want)
				}
			}
		}
	}
}

// TestAllowedNames is about rules that allow: a name that exists is meant, and else the pattern.
func TestAllowedNames(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	if err := os.MkdirAll(filepath.Join(root, "app", "[id]"), 0o755); err != nil {
		t.Skip(err)
	}
	rules := permission.Rules{Default: permission.Ask, List: []permission.Rule{{Tool: "fs_write", Action: permission.Allow, Paths: []string{"app/[id]/*", "lib/[ab]/*", "dir"}}}}
	j := judge(t, permission.Options{Root: root, Rules: rules})
	for path, want := range map[string]permission.Action{"app/[id]/f": permission.Allow, "app/i/f": permission.Ask, "lib/a/f": permission.Allow, "lib/[ab]/f": permission.Ask, "dir": permission.Allow, "dir/f": permission.Ask} {
		args, _ := json.Marshal(map[string]string{"path": path}) // cannot fail
		if v := j.Judge(permission.Call{Tool: "fs_write", Arguments: args, Destructive: true}); v.Action != want {
			t.Errorf("%s: %s, want %s", path, v.Action, want)
		}
	}
}
