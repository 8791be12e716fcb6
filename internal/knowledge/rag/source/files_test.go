package source_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"loki/internal/knowledge/rag/source"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{
		"a.md": "a", "b.txt": "b", ".hidden.md": "h", ".git/x.md": "x", ".hg/x.md": "x", ".svn/x.md": "x", "Makefile": "all:",
		".gitignore": "*.log\nbuild/\n", "noise.log": "n", "build/out.md": "o", ".config/c.md": "c", "x.tar.gz": "z",
		"sub/a.md": "sa", "sub/d.md": "sd", "sub/deep/a.md": "da", "sub/deep/e.txt": "e", "sub.md": "s", "literal[1]*.md": "l",
	})
	l := loaderAt(dir)
	for _, tt := range []struct{ name, sources, want string }{
		{"file", "a.md", "a.md"},
		{"absolute_and_not_clean", dir + "/sub/../a.md", "a.md"},
		{"ignored_but_named", "noise.log", "noise.log"},
		{"directory", "sub", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"slash", "sub/", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"stars", "sub/**", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"dot_files_count", ".", ".config/c.md .gitignore .hidden.md Makefile a.md b.txt literal[1]*.md sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt sub.md x.tar.gz"},
		{"extension", "*.txt", "b.txt"},
		{"extension_below", "**/*.txt", "b.txt sub/deep/e.txt"},
		{"extensions", "sub/**/*.{md,txt}", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"double_extension", "*.tar.gz", "x.tar.gz"},
		{"star_of_nothing", "*.gitignore", ".gitignore"},
		{"name_one_down", "*/a.md", "sub/a.md"},
		{"name_below", "sub/**/a.md", "sub/a.md sub/deep/a.md"},
		{"level", "*/*.md", ".config/c.md sub/a.md sub/d.md"},
		{"star", "sub/*", "sub/a.md sub/d.md"},
		{"a_name_is_no_pattern_if_it_exists", "literal[1]*.md", "literal[1]*.md"},
		{"several", "b.txt;sub/*.md;b.txt;a.md;**/*.txt", "b.txt sub/a.md sub/d.md a.md sub/deep/e.txt"},
		{"blanks", "  a.md  ", "a.md"},
		{"missing", "gone;a.md", "error: /gone: file does not exist a.md"},
		{"missing_base", "gone/*.md", "error: /gone: file does not exist"},
		{"braces", "sub/**/*.{md", "error: /sub/**/*.{md is neither a path nor a pattern: malformed pattern \"**/*.{md\": a { without its }; \\{ is the character itself"},
		{"braces_of_a_name", "sub/**/a.{md,txt}", "sub/a.md sub/deep/a.md"},
		{"file_with_something_below", "a.md/*.md", "error: a.md/*.md: /a.md is a file and has nothing below it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(list(t, l, dir, strings.Split(tt.sources, ";")...), " "); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSymbolicLinks(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"in/z.md": "z", "in/sub/a.md": "a", "out/b.md": "b", "out/.gitignore": "no.md", "out/no.md": "n", "c.md": "c"})
	for link, to := range map[string]string{
		"in/loop": "in", "in/up": ".", "in/root": "/", "in/out": "out", "in/again": "out", "in/a.md": "in/sub/a.md", "in/c.md": "c.md",
		"in/nowhere": "gone", "in/sub/self": "in/sub/self", "out/back": "in", "link": "in",
	} {
		target := to
		if to != "/" {
			target = filepath.Join(dir, to)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			noLinks(t, err)
		}
	}
	const z, a, again = "in/z.md (md with lines): z", "in/sub/a.md (md with lines): a", "in/again/b.md (md with lines): b"
	sameList(t, texts(t, loaderAt(dir), dir, "in"),
		"in/again is skipped", "in/c.md is skipped", "in/out is skipped", "in/root is skipped", a, "in/up is skipped", z)
	sameList(t, list(t, loaderAt(dir), dir, "link/*.md", "c.md"), "link/a.md", "link/c.md", "link/z.md", "c.md")
	// A link that is named is followed, before and after the directory that it is in.
	named := []string{again, "in/c.md (md with lines): c"}
	below := []string{"in/out is skipped", "in/root is skipped", a, "in/up is skipped", z}
	sameList(t, texts(t, loaderAt(dir), dir, "in/again/*.md", "in/c.md", "in"), slices.Concat(named, below)...)
	sameList(t, texts(t, loaderAt(dir), dir, "in", "in/again/*.md", "in/c.md"), slices.Concat(below, named)...)
}

func TestReading(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{
		"a.GO": "package a\n", "b": "no extension", ".bashrc": "dot", "bin/x.bin": "\x00\x01", "bin/y.md": "# y", "u.txt": "\xff\xfeh\x00i\x00", "latin.txt": "caf\xe9",
		"empty.md": "", "up.up": "shout",
	})
	l := loaderAt(dir)
	l.Input.Loaders["up"] = "tr a-z A-Z $1"
	if runtime.GOOS != "windows" {
		l.Input.Loaders["up"] = `sh -c 'tr a-z A-Z <"$0"' $1`
		sameList(t, texts(t, l, dir, "up.up"), "up.up (txt): SHOUT")
	}
	sameList(t, texts(t, l, dir, "a.GO", "b", ".bashrc", "u.txt", "empty.md"),
		"a.GO (go with lines): package a", "b (txt with lines): no extension", ".bashrc (txt with lines): dot", "u.txt (txt with lines): hi", "empty.md (md with lines): ")
	sameList(t, texts(t, l, dir, "bin"), "bin/x.bin is skipped", "bin/y.md (md with lines): # y")
	sameList(t, texts(t, l, dir, "bin/x.bin", "latin.txt"),
		"bin/x.bin error: /bin/x.bin is not text in UTF-8 but application/octet-stream", "latin.txt error: /latin.txt is not text in UTF-8: byte 0xe9 at line 1, column 4")
}

func TestALargeFileIsRefusedByItsSize(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"large.txt": ""})
	if err := os.Truncate(filepath.Join(dir, "large.txt"), 2<<30); err != nil {
		t.Skipf("the file system of the test has no files of 2 GiB: %v", err)
	}
	sameList(t, texts(t, loaderAt(dir), dir, "."), "large.txt is skipped")
	sameList(t, texts(t, loaderAt(dir), dir, "large.txt"), "large.txt error: /large.txt is larger than 64 MiB")
}

func TestAFileThatVanishesIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"a.md": "a", "b.md": "b"})
	var got []string
	for d, err := range loaderAt(dir).Documents(t.Context(), []string{"."}) {
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(d.Path) == "a.md" {
			if err := os.Remove(d.Path); err != nil {
				t.Fatal(err)
			}
		}
		_, err := d.Read(t.Context())
		var of *source.Error
		if errors.As(err, &of) {
			got = append(got, fmt.Sprint(filepath.Base(of.Path), " ", errors.Is(err, fs.ErrNotExist)))
			continue
		}
		got = append(got, filepath.Base(d.Path))
	}
	sameList(t, got, "a.md true", "b.md")
}

func TestHash(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"a.md": "hello\n"})
	for d := range loaderAt(dir).Documents(t.Context(), []string{"a.md"}) {
		c, err := d.Read(t.Context())
		if err != nil || c.Hash != "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03" || d.Source != "a.md" {
			t.Errorf("%+v, %v, %s", c, err, d.Source)
		}
	}
}

func TestACanceledSearchEnds(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"a.md": "", "b.md": "", "c.md": ""})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range loaderAt(dir).Documents(ctx, []string{".", "."}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	n := 0
	for range loaderAt(dir).Documents(t.Context(), []string{"."}) {
		n++
		break
	}
	if n != 1 {
		t.Error(n)
	}
}

func TestAbsoluteAndCovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := loaderAt(dir)
	l.Input.Loaders["jina"] = "cat $1"
	if err := os.Mkdir(filepath.Join(dir, "repo"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ source, want, covered, not string }{
		{" a/../b.md ", dir + "/b.md", dir + "/b.md", dir + "/b.mdx"},
		{"docs", dir + "/docs", dir + "/docs/x/y.md", dir + "/docs2/y.md"},
		{"docs/**/*.md", dir + "/docs/**/*.md", dir + "/docs/x/y.md", dir + "/x.md"},
		{"https://x.test/a", "https://x.test/a", "https://x.test/a", "https://x.test/ab"},
		{"https://u:p@x.test/a/**", "https://u:p@x.test/a/**", "https://x.test/a/b", "https://y.test/a"},
		{"jina:x", "jina:x", "jina:x/y", "x"},
		{"jina:", "jina:", "jina:", "x"},
		{"jina:./repo/", "jina:" + dir + "/repo", "jina:" + dir + "/repo/y", dir + "/repo/y"},
		{"jina:https://x.test/repo", "jina:https://x.test/repo", "jina:https://x.test/repo", "https://x.test/repo"},
		{"git+https://u:p@x.test/r#dev:docs", "git+https://u:p@x.test/r#dev:docs", "git+https://x.test/r#dev/docs/a.md", "https://x.test/r/a.md"},
		{"git@x.test:a/r.git", "git@x.test:a/r.git", "git@x.test:a/r.git/a.md", "x"},
	} {
		got, err := l.Absolute(tt.source)
		if err != nil || got != tt.want || !l.Covers(got, tt.covered) || l.Covers(got, tt.not) {
			t.Errorf("%s: %s, %v, %v, %v", tt.source, got, err, l.Covers(got, tt.covered), l.Covers(got, tt.not))
		}
	}
	if _, err := l.Absolute(" "); err == nil {
		t.Error("an empty source is accepted")
	}
}

func FuzzSources(f *testing.F) {
	for _, seed := range []string{"a/**/*.{md,txt}", "git+https://u:p@h/x#b:d", "git@h:x", "https://h/**", "ssh://-x/y", "x:y", "", "https://[::1", "git+", "a#b", "http://@/"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsFunc(s, unicode.IsSpace) {
			return // those around a source are dropped, and a name may end with one
		}
		l := loaderAt(dir)
		l.Input.Loaders["x"] = "cat $1"
		abs, err := l.Absolute(s)
		if err != nil {
			return
		}
		again, err := l.Absolute(abs)
		if err != nil || again != abs {
			t.Errorf("%q: %q, then %q, %v", s, abs, again, err)
		}
		l.Covers(abs, "/x")
	})
}

func BenchmarkWalk(b *testing.B) {
	files := make(map[string]string)
	for i := range 20000 {
		files[fmt.Sprintf("d%d/e%d/f%d.md", i%20, i%200, i)] = "text"
	}
	dir := makeTree(b, files)
	for b.Loop() {
		n := 0
		for range loaderAt(dir).Documents(b.Context(), []string{"."}) {
			n++
		}
		if n != 20000 {
			b.Fatal(n)
		}
	}
}

// TestUnchangedFilesAreOnlyHashed reads files that are not text: that matters once their text is wanted.
func TestUnchangedFilesAreOnlyHashed(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"docs/image": "\x00\x01\x02", "named": "\x00\x01\x02"})
	for d, err := range loaderAt(dir).Documents(t.Context(), []string{"docs", "named"}) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Read(t.Context())
		if err != nil || c.Hash != "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc" {
			t.Fatalf("%s: %+v, %v", d.Path, c, err)
		}
		if _, err = c.Text(t.Context()); err == nil || errors.Is(err, source.ErrPassedOver) != (d.Source == "docs") {
			t.Errorf("%s: %v", d.Path, err)
		}
	}
}

// A part of a page is the page.
func TestAbsolutePage(t *testing.T) {
	got, err := new(source.Loader).Absolute("https://site.test/a?b=c#part")
	if err != nil || got != "https://site.test/a?b=c" {
		t.Error(got, err)
	}
}

func TestOtherEncodings(t *testing.T) {
	dir := t.TempDir()
	wide := func(text string) []byte {
		var data []byte
		for _, b := range []byte(text) {
			data = append(data, b, 0)
		}
		return data
	}
	for name, data := range map[string][]byte{
		"latin.txt": []byte("Gr\xfc\xdfe wombat"), "gbk.txt": []byte("\xc2\xe6\xcd\xd5 camel"), "wide.txt": wide("no mark at the begin"),
		"z.png": []byte("\x89PNG\r\n\x1a\n\x00\x00"), "z.bin": {1, 2, 3, 0xff, 0xfe, 4}, "good.txt": []byte("text"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for d, err := range loaderAt(dir).Documents(t.Context(), []string{dir}) {
		if err != nil {
			t.Fatal(err)
		}
		content, err := d.Read(t.Context())
		if err == nil {
			_, err = content.Text(t.Context())
		}
		if errors.Is(err, source.ErrEncoding) {
			got = append(got, filepath.Base(d.Path))
		}
	}
	if want := []string{"gbk.txt", "latin.txt", "wide.txt"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
