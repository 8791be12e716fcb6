package argc_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"mvdan.cc/sh/v3/syntax"

	"loki/internal/tool/script/argc"
)

// FuzzParse: any script is read or refused with a place in it, and code that is generated
// for it parses, keeps to bash 3.2 and is the same when built again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal("no scripts", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data))
	}
	for _, seed := range []string{
		"# @option --a'b", "# @option --n[a|'b\"]']", "# @arg x='\"$(id)`id`'\n", "# @cmd 'x\nf'() {", "# @cmd\na=b() { :; }\n# @flag -' $$",
		"# @env A='\n# @meta version '\"$x\n# @meta binname '`id`\n", "# ARGC-BUILD {\n# ARGC-BUILD }\n", "# @cmd\n~*?() { :; }\n", "# @option --\xff[\xfe|\x00]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		built, err := argc.Build([]byte(script), argc.Options{Name: "it's", Width: 40})
		if err != nil {
			e, ok := errors.AsType[*argc.Error](err)
			if !ok || e.Line < 1 || e.Column < 1 || e.Line > strings.Count(script, "\n")+1 {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		again, err := argc.Build(built, argc.Options{Name: "it's", Width: 40})
		if err != nil || string(again) != string(built) {
			t.Fatalf("building again: %v", err)
		}
		if before, after := argc.Source([]byte(script)), argc.Source(built); string(before) != string(after) {
			t.Fatalf("written by people: %q before, %q after", before, after)
		}
		block, err := argc.Block([]byte(script), argc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if found := append(newer(t, block), foreign(t, block)...); found != nil {
			t.Fatalf("%v\n%s", found, block)
		}
	})
}

const mirror = `set -euo pipefail
# @option --one
# @option --many*
# @arg rest*
main() { printf '%s\0' "${argc_one-unset}" ${argc_many[@]+"${argc_many[@]}"} "|" ${argc_rest[@]+"${argc_rest[@]}"}; }
`

// mirrored runs the script with texts as values and returns what its variables hold.
func mirrored(tb testing.TB, one string, many, rest []string) []string {
	tb.Helper()
	args := []string{"--one=" + one}
	for _, text := range many {
		args = append(args, "--many="+text)
	}
	args = append(append(args, "--"), rest...)
	code, err := argc.Eval([]byte(mirror), args, argc.Options{Name: "mirror"})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := syntax.NewParser().Parse(strings.NewReader(code), ""); err != nil {
		tb.Fatalf("%v\n%s", err, code)
	}
	dir := tb.TempDir()
	file := filepath.Join(dir, "mirror.sh")
	if err := os.WriteFile(file, []byte(mirror+code), 0o666); err != nil {
		tb.Fatal(err)
	}
	out := output(tb, dir, nil, "bash", file)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		tb.Fatalf("something was run: %v", entries)
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func checkMirror(tb testing.TB, one string, many, rest []string) {
	tb.Helper()
	want := append(append([]string{one}, many...), "|")
	want = append(want, rest...)
	if got := mirrored(tb, one, many, rest); strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		tb.Fatalf("got %q, want %q", got, want)
	}
}

// FuzzEval: bash takes exactly the given values, whatever they are.
func FuzzEval(f *testing.F) {
	needBash(f)
	for _, seed := range []string{"", "'", "$(touch pwned)", "`touch pwned`", "a=b=c", "\n", "\r\n", "-h", "--help", "--", "\\", "!x", "\xff\xfe", "*", "~", "${x}", "\"; touch pwned; \"", "'; touch pwned; '", "help", "é\x01"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if strings.Contains(a+b+c, "\x00") {
			if _, err := argc.Eval([]byte(mirror), []string{a, b, c}, argc.Options{}); err == nil {
				t.Fatal("a NUL is taken")
			}
			return
		}
		checkMirror(t, a, []string{b, a}, []string{c, a, b})
	})
}

// TestAnyBytes sends texts of random bytes through, many at once.
func TestAnyBytes(t *testing.T) {
	needBash(t)
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, random.IntN(30))
		for i := range b {
			if b[i] = byte(1 + random.IntN(255)); random.IntN(2) == 0 {
				b[i] = "'\"\\$`(){}[]!#&;|<>*?~=-+ \n\t\x7f\x01"[random.IntN(29)]
			}
		}
		return string(b)
	}
	var many, rest []string
	for range 300 {
		many, rest = append(many, text()), append(rest, text())
	}
	checkMirror(t, text(), many, rest)
}
