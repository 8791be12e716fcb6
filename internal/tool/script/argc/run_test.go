package argc_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"loki/internal/tool/script/argc"
)

var update = flag.Bool("update", false, "rewrite golden files")

func needBash(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		tb.Skip("there is no bash")
	}
}

// output runs a program in dir and returns all it prints, and its status if it failed.
func output(tb testing.TB, dir string, env []string, words ...string) string {
	tb.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		fmt.Fprintf(&out, "[status %d]\n", exit.ExitCode())
	} else if err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// TestRun runs the scripts of testdata/run. Of each archive, "cases" has lines "$ WORDS",
// which bash splits, with what the script prints below them; words NAME=VALUE in front are
// its environment. The other files are beside the script. Each case has to go the same way
// whether the code is built in or evaluated.
func TestRun(t *testing.T) {
	needBash(t)
	files, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runArchive(t, archive)
			i := len(archive.Files) - 1
			if archive.Files[i].Name != "cases" {
				t.Fatal("cases are not the last file")
			}
			if *update {
				archive.Files[i].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(archive.Files[i].Data); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func runArchive(t *testing.T, archive *txtar.Archive) string {
	dir := t.TempDir()
	var script []byte
	for _, f := range archive.Files[:len(archive.Files)-1] {
		if f.Name == "tool.sh" {
			script = f.Data
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	options := argc.Options{Name: "tool", Width: 100}
	file := filepath.Join(dir, "tool.sh")
	if changed, err := argc.BuildFile(file, options); err != nil || !changed {
		t.Fatal(changed, err)
	}
	var out strings.Builder
	for l := range strings.Lines(string(archive.Files[len(archive.Files)-1].Data)) {
		words, ok := strings.CutPrefix(l, "$")
		if !ok {
			continue
		}
		out.WriteString(l)
		// bash splits the words and hands back each with a NUL behind it.
		split := output(t, dir, nil, "bash", "-c", `printf '%s\0' `+words)
		list := strings.Split(strings.TrimSuffix(split, "\x00"), "\x00")
		if strings.TrimSpace(words) == "" {
			list = nil
		}
		var env []string
		for len(list) > 0 && strings.Contains(list[0], "=") && strings.IndexByte("_ABCDEFGHIJKLMNOPQRSTUVWXYZ", list[0][0]) >= 0 {
			env, list = append(env, list[0]), list[1:]
		}
		built := output(t, dir, env, append([]string{"bash", "tool.sh"}, list...)...)
		code, err := argc.Eval(script, list, options)
		if err != nil {
			t.Fatal(err)
		}
		eval := filepath.Join(t.TempDir(), "tool.sh")
		if err := os.WriteFile(eval, append(bytes.Clone(script), "\nbuiltin eval "+argc.Quote(code)+"\n"...), 0o777); err != nil {
			t.Fatal(err)
		}
		if evaluated := output(t, dir, env, append([]string{"bash", eval}, list...)...); evaluated != built {
			t.Errorf("%s: evaluated:\n%s\nbuilt:\n%s", strings.TrimSpace(words), evaluated, built)
		}
		out.WriteString(built)
	}
	return out.String()
}

// TestBuild tells where the code goes and that building again changes nothing.
func TestBuild(t *testing.T) {
	const tags = "# @describe d\n# @flag --x\n"
	const body = "main() { :; }\n"
	old := "# ARGC-BUILD {\nold() { :; }\n# @nonsense\n# ARGC-BUILD }\n"
	eval := "eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
	for _, tt := range []struct{ name, in, before, after string }{
		{"appended", tags + body, tags + body + "\n", ""},
		{"no_line_feed", tags + "main() { :; }", tags + body + "\n", ""},
		{"replaces_block", tags + body + old + "# end\n", tags + body, "# end\n"},
		{"replaces_eval", tags + body + eval + "# end", tags + body, "# end"},
		{"replaces_both", tags + old + body + eval, tags, body},
		{"empty", "", "\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			built, err := argc.Build([]byte(tt.in), argc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text := string(built)
			if !strings.HasPrefix(text, tt.before+"# ARGC-BUILD {\n") || !strings.HasSuffix(text, "\n# ARGC-BUILD }\n"+tt.after) {
				t.Errorf("got:\n%s", text)
			}
			if strings.Contains(text, "old()") || strings.Contains(text, "--argc-eval") {
				t.Error("old code is still there")
			}
			again, err := argc.Build(built, argc.Options{})
			if err != nil || !bytes.Equal(again, built) {
				t.Error("building again changes the script", err)
			}
		})
	}
}

func TestBuildFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.sh"), filepath.Join(dir, "link.sh")
	if err := os.WriteFile(file, []byte("# @describe d\n"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.sh", link); err != nil {
		t.Fatal(err)
	}
	if changed, err := argc.BuildFile(link, argc.Options{}); !changed || err != nil {
		t.Fatal(changed, err)
	}
	first, err := os.Stat(file)
	if err != nil || first.Mode().Perm() != 0o750 {
		t.Error("permissions", first.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone", err)
	}
	if changed, err := argc.BuildFile(link, argc.Options{}); changed || err != nil {
		t.Error("written again", err)
	}
	second, err := os.Stat(file)
	if err != nil || !os.SameFile(first, second) || !first.ModTime().Equal(second.ModTime()) {
		t.Error("an unchanged file was written")
	}
	if err := os.WriteFile(file, []byte("# @nonsense\n"), 0o750); err != nil {
		t.Fatal(err)
	}
	_, err = argc.BuildFile(file, argc.Options{})
	if e, ok := errors.AsType[*argc.Error](err); !ok || e.Line != 1 || !strings.Contains(err.Error(), "real.sh") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "# @nonsense\n" {
		t.Errorf("the file was changed: %q", text)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Error("a temporary file is left", entries)
	}
}

func TestFail(t *testing.T) {
	needBash(t)
	script := "set -e\neval " + argc.Quote(argc.Fail(errors.New("it's $(broken)\x00"))) + "\necho not here\n"
	if got, want := output(t, "", nil, "bash", "-c", script), "error: it's $(broken)\n[status 1]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
