package remote_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

// tree makes a tree of entries "MODE TYPE ID\tNAME" and returns its id. Git itself would refuse some of them.
func (r repo) tree(entries ...string) string {
	r.t.Helper()
	var raw strings.Builder
	for _, e := range entries {
		head, name, _ := strings.Cut(e, "\t")
		fields := strings.Fields(head)
		raw.WriteString(strings.TrimPrefix(fields[0], "0") + " " + name + "\x00")
		for i := 0; i < len(fields[2]); i += 2 {
			var b byte
			if _, err := fmt.Sscanf(fields[2][i:i+2], "%02x", &b); err != nil {
				r.t.Fatal(err)
			}
			raw.WriteByte(b)
		}
	}
	return r.git(raw.String(), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
}

func (r repo) blob(text string) string { return r.git(text, "hash-object", "-w", "--stdin") }

// point makes the branch main a commit with the tree.
func (r repo) point(tree string) {
	r.t.Helper()
	r.git("", "update-ref", "refs/heads/main", r.git("", "commit-tree", tree, "-m", "x"))
}

// TestHostile installs bundles that would write elsewhere, or something else than files.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	blob := r.blob("echo evil\n")
	file := func(name string) string { return "100755 blob " + blob + "\t" + name }
	dir := func(id, name string) string { return "040000 tree " + id + "\t" + name }
	link := func(target, name string) string { return "120000 blob " + r.blob(target) + "\t" + name }
	deep := r.tree(file("x"))
	for range 20 {
		deep = r.tree(dir(deep, "d"))
	}
	agents := func(entries ...string) string { return r.tree(dir(r.tree(entries...), "agents")) }
	good := "100644 blob " + blob + "\tok.md"
	for name, tt := range map[string]struct {
		tree string
		code fault.Code
		word string
	}{
		"up":              {agents(dir(r.tree(file("evil.sh")), "..")), fault.Config, ".."},
		"up_file":         {agents(file("..")), fault.Config, ""},
		"slash":           {agents(file("../../evil.sh")), fault.Config, ""},
		"absolute":        {agents(file("/etc/evil.sh")), fault.Config, ""},
		"backslash":       {agents(file(`..\..\evil.sh`)), fault.Config, ""},
		"drive":           {agents(file("C:evil.sh")), fault.Config, ""},
		"dot":             {agents(dir(r.tree(file("evil.sh")), ".")), fault.Config, ""},
		"git":             {agents(dir(r.tree(file("config")), ".git")), fault.Config, "git keeps"},
		"git_upper":       {agents(dir(r.tree(file("config")), ".GIT")), fault.Config, "git keeps"},
		"git_short":       {agents(dir(r.tree(file("config")), "GIT~1")), fault.Config, "git keeps"},
		"git_hidden":      {agents(dir(r.tree(file("config")), ".g\u200cit")), fault.Config, "not shown"},
		"escape":          {agents(file("a\x1b[2J.sh")), fault.Config, `\u001b[2J`},
		"newline":         {agents(file("a\nb.sh")), fault.Config, `a\nb`},
		"tab":             {agents(file("a\tb.sh")), fault.Config, ""},
		"right_to_left":   {agents(file("a\u202ehs.txt")), fault.Config, ""},
		"device":          {agents(file("nul.sh")), fault.Config, "device"},
		"stream":          {agents(file("a:b.sh")), fault.Config, ""},
		"blank_end":       {agents(file("a.sh ")), fault.Config, ""},
		"dot_end":         {agents(file("a.sh.")), fault.Config, ""},
		"bad_utf8":        {agents(file("a\xff.sh")), fault.Config, `\xff`},
		"long":            {agents(file(strings.Repeat("a", 300))), fault.Config, ""},
		"deep":            {agents(dir(deep, "d")), fault.Config, "directories"},
		"same_fold":       {agents(file("A.sh"), file("a.sh")), fault.Config, "same file"},
		"same_fold_dir":   {agents(dir(r.tree(file("x")), "A"), dir(r.tree(file("y")), "a")), fault.Config, "same file"},
		"same_accent":     {agents(file("e\u0301.sh"), file("\u00e9.sh")), fault.Config, "same file"},
		"twice":           {agents(file("a"), file("a")), fault.Config, "same file"},
		"file_and_dir":    {agents(file("a"), dir(r.tree(file("x")), "a")), fault.Config, "same file"},
		"link":            {agents(link("/etc/passwd", "a.sh")), fault.Config, "symbolic link"},
		"link_then_file":  {agents(link("/tmp", "a"), dir(r.tree(file("x")), "a")), fault.Config, ""},
		"linked_category": {r.tree(link("/tmp", "agents")), fault.Config, "not a directory"},
		"file_category":   {r.tree(file("roles")), fault.Config, "not a directory"},
		"linked_tools":    {r.tree(dir(r.tree(link("/tmp", "tools")), "functions")), fault.Config, "not a directory"},
		"linked_servers":  {r.tree(dir(r.tree(link("/etc/passwd", "mcp.json")), "functions")), fault.Config, "symbolic link"},
	} {
		r.point(tt.tree)
		p := newPlace(t)
		p.Yes = true
		_, err := p.Install(t.Context(), r.dir)
		if err == nil {
			t.Errorf("%s was installed: %q", name, p.files())
			continue
		}
		if fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.word) || strings.ContainsAny(err.Error(), "\x1b\u202e") {
			t.Errorf("%s: %v", name, err)
		}
		p.has(map[string]string{})
	}

	// What is left out, and what is harmless elsewhere.
	module := "160000 commit " + strings.Repeat("1", 40) + "\tsub"
	r.point(r.tree(dir(r.tree(good, module), "agents"), link("/etc/passwd", "evil"), file("hooks"), "100644 blob "+r.blob("[submodule \"x\"]\npath = agents/sub\nurl = ext::sh -c evil\n")+"\t.gitmodules"))
	p := newPlace(t)
	report := p.install(r)
	p.has(map[string]string{"agents/ok.md": "echo evil\n"})
	if len(report.Notes) != 1 || !strings.Contains(p.shown.String(), "agents/sub is a submodule") {
		t.Errorf("%+v\n%s", report, p.shown.String())
	}

	// A tree with 10^10 files, made of ten objects.
	bomb := r.tree(file("f"))
	for range 10 {
		var entries []string
		for n := range 10 {
			entries = append(entries, dir(bomb, fmt.Sprint("d", n)))
		}
		bomb = r.tree(entries...)
	}
	r.point(r.tree(dir(bomb, "agents")))
	_, err := p.Install(t.Context(), r.dir)
	wantCode(t, err, fault.Limit, "too many files")
}

// TestAttributes installs what would start a filter, convert text or fetch from elsewhere in a working tree.
func TestAttributes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5\n"
	files := map[string]string{
		"agents/a/.gitattributes": "*.sh filter=lfs ident eol=crlf\n", ".gitattributes": "* filter=evil text eol=crlf\n", "agents/a/x.sh": "$Id$\n", "agents/a/big.sh": pointer,
	}
	r.commit(files)
	home := t.TempDir()
	made := filepath.Join(home, "made")
	write(t, filepath.Join(home, ".gitconfig"), "[filter \"evil\"]\n\tsmudge = touch "+made+"\n[filter \"lfs\"]\n\tsmudge = touch "+made+"\n\trequired = true\n")
	p := newPlace(t)
	p.Git.Environ = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
	p.install(r)
	delete(files, ".gitattributes")
	p.has(files)
	if _, err := os.Stat(made); err == nil {
		t.Error("a filter ran")
	}
}

// TestOccupied finds something else than a file where one of the bundle has to be.
func TestOccupied(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit(map[string]string{"roles/a.md": "x", "roles/b/c.md": "x"})
	for name, make := range map[string]func(p *place) error{
		"dir":  func(p *place) error { return os.MkdirAll(filepath.Join(p.Dirs.Roles, "a.md", "x"), 0o700) },
		"file": func(p *place) error { write(t, filepath.Join(p.Dirs.Roles, "b"), "mine"); return nil },
		"lost_link": func(p *place) error {
			write(t, filepath.Join(p.Dirs.Roles, "x"), "mine")
			return os.Symlink("gone", filepath.Join(p.Dirs.Roles, "a.md"))
		},
	} {
		p := newPlace(t)
		p.Force = true
		if err := make(p); err != nil {
			t.Log(name, err)
			continue
		}
		if _, err := p.Install(t.Context(), r.dir); err == nil {
			t.Errorf("%s: installed", name)
		}
		if _, err := os.Stat(p.Dirs.Records + "/tools.json"); err == nil {
			t.Errorf("%s: there is a record", name)
		}
	}
}
