package command

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// values returns the values of candidates, joined.
func values(candidates []Candidate) string {
	var list []string
	for _, c := range candidates {
		list = append(list, c.Value)
	}
	return strings.Join(list, "|")
}

// TestCompleteFile: what is put in place of a path is read as that path again.
func TestCompleteFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names have other characters there")
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"a b.txt", "ab.txt", "it's", `say "x"`, "dir one/in side.md", ".hidden", "größe.md", `back\slash`} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, typed, want, word string }{
		{name: "all", typed: "", want: `a\ b.txt|ab.txt|back\\slash|dir\ one/|größe.md|"it's"|'say "x"'`},
		{name: "blank", typed: `a\ `, want: "b.txt", word: "a b.txt"},
		{name: "quote", typed: `"a `, want: `b.txt"|`, word: "a b.txt"},
		{name: "directory", typed: `dir\ one/`, want: `one/in\ side.md`, word: "dir one/in side.md"},
		{name: "quoted_directory", typed: `'dir one/in`, want: `one/in side.md'`, word: "dir one/in side.md"},
		{name: "hidden", typed: ".", want: ".hidden"},
		{name: "second", typed: "ab.txt gr", want: "größe.md", word: "größe.md"},
		{name: "command", typed: "`git ", want: ""},
		{name: "text", typed: "ab.txt -- a", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			split := strings.Split(tt.typed, " ")
			last := split[len(split)-1]
			got := rankCandidates(last, completeFile()(nil, t.Context(), split))
			if tt.word == "" {
				if values(got) != tt.want {
					t.Errorf("got %s, want %s", values(got), tt.want)
				}
				return
			}
			if len(got) == 0 || !strings.Contains("|"+tt.want+"|", "|"+got[0].Value+"|") {
				t.Fatalf("got %s, want %s", values(got), tt.want)
			}
			whole := strings.TrimSuffix(tt.typed, last) + got[0].Value
			words, _ := Words(whole, false)
			if words[len(words)-1] != tt.word {
				t.Errorf("%s means %q, want %q", whole, words[len(words)-1], tt.word)
			}
		})
	}
}

func TestListed(t *testing.T) {
	all := []Candidate{{Value: "all"}, {Value: "fs_cat"}, {Value: "fs_ls"}}
	for typed, want := range map[string]string{"": "all|fs_cat|fs_ls", "fs_": "all|fs_cat|fs_ls", "fs_ls,": "fs_ls,all|fs_ls,fs_cat", "fs_cat,fs_ls,a": "fs_cat,fs_ls,all"} {
		if got := values(unlistedCandidates(typed, all)); got != want {
			t.Errorf("%q: got %s, want %s", typed, got, want)
		}
	}
}
