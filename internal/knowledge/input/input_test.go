package input_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
)

// tree makes a directory of files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(a input.Attachments) []string {
	var list []string
	for _, d := range a.Documents {
		list = append(list, filepath.ToSlash(d.Name))
	}
	for _, i := range a.Images {
		list = append(list, filepath.ToSlash(i.Name))
	}
	return list
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"a.md": "a", "b.txt": "b", "c.bin": "\x00", ".hidden.md": "h", ".git/x.md": "x", "star*.md": "star",
		"sub/a.md": "sa", "sub/d.md": "sd", "sub/deep/a.md": "da", "sub/deep/e.txt": "e",
	})
	for _, tt := range []struct {
		source string
		want   string // names, or the beginning of an error
	}{
		{"a.md", "a.md"},
		{"sub", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"sub/**", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"**/*.md", ".hidden.md a.md star*.md sub/a.md sub/d.md sub/deep/a.md"},
		{"*.txt", "b.txt"},
		{"sub/*.md", "sub/a.md sub/d.md"},
		{"sub/**/*.{md,txt}", "sub/a.md sub/d.md sub/deep/a.md sub/deep/e.txt"},
		{"**/a.md", "a.md sub/a.md sub/deep/a.md"},
		{"*/a.md", "sub/a.md"},
		{"sub/*/a.md", "sub/deep/a.md"},
		{"sub/*", "sub/a.md sub/d.md"},
		{"{sub,sub/deep}/*.md", "sub/a.md sub/d.md sub/deep/a.md"},
		{"sub/[a-c].m?", "sub/a.md"},
		{"star*.md", "star*.md"},
		{".*/*.md", ".git/x.md"},
		{"**/.git/*", ".git/x.md"},
		{"./sub//deep/./*.md", "sub/deep/a.md"},
		{"sub/**/*.{md", "error: " + filepath.Join(dir, "sub/**/*.{md") + " is neither a path nor a pattern"},
		{"a*.md", "a.md"},
		{"*/x/*.md", "error: */x/*.md holds no text files"},
		{"nowhere", "error: no file or directory at nowhere"},
		{"nowhere/**/*.md", "error: no file or directory at nowhere"},
		{"a.md/**", "error: no file or directory"},
		{"**/*.go", "error: **/*.go holds no text files"},
		{"c.bin", "error: c.bin is not text in UTF-8 but application/octet-stream"},
	} {
		t.Run(strings.ReplaceAll(tt.source, "/", "_"), func(t *testing.T) {
			t.Parallel()
			l := &input.Loader{Dir: dir}
			a, err := l.Load(t.Context(), []string{tt.source, tt.source})
			got := strings.Join(names(a), " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if wantErr := strings.HasPrefix(tt.want, "error: "); got != tt.want && (!wantErr || !strings.HasPrefix(got, tt.want) && tt.source != "a.md/**") {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	reply := "what I said"
	doc := func(name, text string) input.Document {
		return input.Document{Kind: input.File, Name: name, Text: text}
	}
	for _, tt := range []struct {
		name string
		text string
		a    input.Attachments
		want string
	}{
		{"text", "hi", input.Attachments{}, "hi"},
		{"one_document_alone", "", input.Attachments{Documents: []input.Document{doc("a", "A")}}, "A"},
		{"text_and_document", "hi", input.Attachments{Documents: []input.Document{doc("a", "A")}}, "hi\n\n============ FILE: a ============\nA"},
		{
			"documents", "",
			input.Attachments{Documents: []input.Document{doc("a", "A"), {Kind: input.Command, Name: "ls", Text: "B"}}},
			"============ FILE: a ============\nA\n\n============ CMD: ls ============\nB",
		},
		{"reply", "shorter", input.Attachments{Reply: &reply}, "shorter\n\nwhat I said"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.a.Message(tt.text).Text(); got != tt.want {
				t.Errorf("%q\nwant %q", got, tt.want)
			}
		})
	}
	a := input.Attachments{Images: []input.Image{{Name: "x.png", URL: "data:image/png;base64,AA=="}}}
	want := chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.ImagePart, URL: "data:image/png;base64,AA=="}}}
	if diff := cmp.Diff(want, a.Message("")); diff != "" {
		t.Error(diff)
	}
	if m := (input.Attachments{}).Message(""); len(m.Parts) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"p.PNG": "\xff\xd8\xff\xe0", "q": "GIF89a", "r.txt": "text", "s.png": "text"})
	a, err := (&input.Loader{Dir: dir}).Load(t.Context(), []string{"p.PNG", "."})
	if err != nil {
		t.Fatal(err)
	}
	want := []input.Image{{"p.PNG", "data:image/jpeg;base64,/9j/4A=="}, {"q", "data:image/gif;base64,R0lGODlh"}}
	if diff := cmp.Diff(want, a.Images); diff != "" || len(a.Documents) != 1 {
		t.Error(diff, a.Documents)
	}
}

func TestLastReply(t *testing.T) {
	t.Parallel()
	reply := "before"
	l := &input.Loader{Reply: &reply}
	if a, err := l.Load(t.Context(), []string{"%%"}); err != nil || *a.Reply != reply {
		t.Error(a, err)
	}
	if _, err := (&input.Loader{}).Load(t.Context(), []string{"%%"}); fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), "%% ") {
		t.Error(err)
	}
}

func withShell(t *testing.T) *input.Loader {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	return &input.Loader{
		Child: environ.Child{Environ: os.Environ()}, Programs: environ.Child{Environ: os.Environ()}, Shell: process.Shell{Path: "/bin/sh", Name: "sh", Flag: "-c"}, Dir: t.TempDir(),
		Loaders: map[string]string{
			"up":   `tr a-z A-Z`,
			"show": `cat "$1"`,
			"copy": `cp $1 $2`,
			"list": `printf '[{"path":"%s/a","contents":"A"},{"path":"b","contents":"B"},{"path":"list:%s/c","contents":"C"}]' $1 $1`,
			"gone": "no-such-program-here $1",
			"fail": "sh -c 'echo broken >&2; exit 3'",
			"pipe": "cat $1 | wc",
			"var":  "cat $HOME",
			"hang": "sleep 600",
		},
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	a, err := l.Load(t.Context(), []string{"`echo out; exit 3`", "`echo err >&2`", "`echo out; exit 3`"})
	if err != nil {
		t.Fatal(err)
	}
	want := []input.Document{{input.Command, "echo out; exit 3", "out"}, {input.Command, "echo err >&2", "err"}}
	if diff := cmp.Diff(want, a.Documents); diff != "" {
		t.Error(diff)
	}
	if _, err := (&input.Loader{}).Load(t.Context(), []string{"`ls`"}); err == nil {
		t.Error("a command ran without a shell")
	}
}

func TestLoaders(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	for name, text := range map[string]string{"a b.show": "spaced", "x.copy": "copied"} {
		if err := os.WriteFile(filepath.Join(l.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ source, want string }{
		{"a b.show", "FILE a b.show: spaced"},
		{"show:a b.show", "FROM show:a b.show: spaced"},
		{"x.copy", "FILE x.copy: copied"},
		{"list:d", "FROM list:d/a: A; FROM list:d/b: B; FROM list:d/c: C"},
		{"gone:x", "error: gone:x: "},
		{"fail:x", "error: fail:x: sh failed with exit status 3: broken"},
		{"pipe:x", "error: the command of document loader pipe: a program with its arguments is expected"},
		{"var:x", "error: the command of document loader var: only $1 and $2 are known"},
	} {
		t.Run(tt.source, func(t *testing.T) {
			t.Parallel()
			a, err := l.Load(t.Context(), []string{tt.source})
			var parts []string
			for _, d := range a.Documents {
				parts = append(parts, fmt.Sprintf("%s %s: %s", d.Kind, d.Name, d.Text))
			}
			got := strings.Join(parts, "; ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestALoaderThatHangsIsStopped(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	l.CommandTimeout = 50 * time.Millisecond
	if _, err := l.Load(t.Context(), []string{"hang:x"}); fault.CodeOf(err) != fault.Tool {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Load(ctx, []string{"hang:x"}); fault.CodeOf(err) != fault.Canceled {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	delete(l.Loaders, "url")
	l.Loaders["pdf"] = "cat $1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, `<html><head><title>T</title><script>x()</script></head><body><h1>Hi</h1><p>A <a href="/b">link</a>.</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>`)
		case "/data.json":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"a":1}`)
		case "/doc":
			w.Header().Set("Content-Type", "application/pdf")
			fmt.Fprint(w, "pdf text")
		case "/pic":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "GIF89a")
		case "/bin":
			w.Header().Set("Content-Type", "application/zip")
			fmt.Fprint(w, "\x00")
		case "/big":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write(make([]byte, input.MaxFileSize+1))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	l.HTTP = server.Client()
	for _, tt := range []struct{ path, want string }{
		{"/page", "# Hi\n\nA [link](" + server.URL + "/b).\n\n| a | b |\n|---|---|\n| 1 | 2 |"},
		{"/data.json", `{"a":1}`},
		{"/doc", "pdf text"},
		{"/pic", "data:image/gif;base64,R0lGODlh"},
		{"/bin", "error: " + server.URL + "/bin is not text but application/zip"},
		{"/big", "error: " + server.URL + "/big is larger than 10 MiB"},
		{"/gone", "error: fetching " + server.URL + "/gone: 404 Not Found"},
		{"/**", "error: " + server.URL + "/**: whole sites cannot be attached, only pages"},
	} {
		t.Run(strings.TrimPrefix(tt.path, "/"), func(t *testing.T) {
			a, err := l.Load(t.Context(), []string{server.URL + tt.path})
			var got string
			switch {
			case err != nil:
				got = "error: " + err.Error()
			case len(a.Images) > 0:
				got = a.Images[0].URL
			default:
				got = a.Documents[0].Text
			}
			if got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
	own := withShell(t)
	own.Loaders["url"] = "echo fetched $1"
	if a, err := own.Load(t.Context(), []string{"https://example.invalid/x"}); err != nil || a.Documents[0].Text != "fetched https://example.invalid/x\n" {
		t.Error(a, err)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	if err := os.WriteFile(filepath.Join(l.Dir, "f"), []byte("F"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := l.Load(t.Context(), []string{"list:d", "f", "`echo`"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"echo", "f", "list:d/a", "list:d/b", "list:d/c"}, names(a)); diff != "" {
		t.Error(diff)
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	if _, err := input.ReadStdin(strings.NewReader("\xff")); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
	if s, err := input.ReadStdin(strings.NewReader("a\n")); s != "a\n" || err != nil {
		t.Error(s, err)
	}
	for _, tt := range []struct {
		words       []string
		stdin, want string
	}{{nil, "", ""}, {nil, "in", "in"}, {[]string{"a", "b"}, "", "a b"}, {[]string{"a", "b"}, "in", "a b\nin"}} {
		if got := input.Text(tt.words, tt.stdin); got != tt.want {
			t.Errorf("%q", got)
		}
	}
}

// TestLoaderOptions checks that a document whose name looks like an option is given to the
// program as a file.
func TestLoaderOptions(t *testing.T) {
	t.Parallel()
	l := withShell(t)
	const name = "--version.show"
	if err := os.WriteFile(filepath.Join(l.Dir, name), []byte("a document"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{name, "show:" + name, "."} {
		a, err := l.Load(t.Context(), []string{source})
		if err != nil || len(a.Documents) != 1 || a.Documents[0].Text != "a document" {
			t.Errorf("%s: %+v, %v", source, a.Documents, err)
		}
	}
}
