package tool_test

import (
	"slices"
	"strings"
	"testing"

	"loki/internal/tool"
)

// scripted is a tool from a file; its description tells tools of the same name apart.
type scripted struct {
	fake
	file string
}

func (s scripted) File() string { return s.file }

func (s scripted) Source() (string, []byte, error) { return s.file, nil, nil }

// stand is a script that stands in for a tool of the program.
type stand struct{ scripted }

func (stand) Consent(tool.Call) string { return "" }
func (stand) StandsInFor() tool.Hints  { return tool.Hints{} }

// label names a tool by its file where it has one.
func label(t tool.Tool) string {
	if f, ok := t.(tool.FromFile); ok {
		return t.Declaration().Name + "@" + f.File()
	}
	return t.Declaration().Name
}

func labels(tools []tool.Tool) string {
	var names []string
	for _, t := range tools {
		names = append(names, label(t))
	}
	return strings.Join(names, " ")
}

func TestPick(t *testing.T) {
	t.Parallel()
	pool := tool.NewPool(
		fake{name: "fs_cat"}, fake{name: "fs_ls"}, fake{name: "fs_rm"}, fake{name: "web"},
		scripted{fake{name: "pick"}, "pick.ts"}, scripted{fake{name: "pick"}, "pick.sh"}, scripted{fake{name: "pick"}, "pick.py"},
		stand{scripted{fake{name: "fs_read"}, "fs_read.py"}},
		scripted{fake{name: "one"}, "many.sh"}, scripted{fake{name: "two"}, "many.sh"}, scripted{fake{name: "my_own"}, "my-own.py"},
	)
	alias := func(name string) (string, bool) {
		list, ok := map[string]string{"fs": "fs_ls, fs_cat.sh,gone", "web": "fs_rm", "deep": "fs", "py": "pick.py"}[name]
		return list, ok
	}
	for _, tt := range []struct{ setting, want, unknown string }{
		{"", "", ""},
		{"all", "fs_cat fs_ls fs_rm web pick@pick.sh fs_read@fs_read.py one@many.sh two@many.sh my_own@my-own.py", ""},
		{" fs_rm , fs_cat.sh,", "fs_cat fs_rm", ""},
		{"fs", "fs_cat fs_ls", ""}, // what an alias names need not be there
		{"web", "fs_rm", ""},       // an alias comes before a tool
		{"deep", "", ""},
		{"nope,fs_cat", "fs_cat", "nope"},
		{"pick", "pick@pick.sh", ""},
		{"pick.ts", "pick@pick.ts", ""},
		{"py", "pick@pick.py", ""},
		{"pick.py,all", "fs_cat fs_ls fs_rm web pick@pick.py fs_read@fs_read.py one@many.sh two@many.sh my_own@my-own.py", ""},
		{"pick.js", "", "pick.js"},
		{"fs_read.sh", "fs_read@fs_read.py", ""}, // a tool of the program has every extension
		{"many.sh", "one@many.sh two@many.sh", ""},
		{"many", "one@many.sh two@many.sh", ""},
		{"many.py", "", "many.py"},
		{"two", "two@many.sh", ""},
		{"my-own,my_own,my-own.py", "my_own@my-own.py", ""},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			t.Parallel()
			s := pool.Pick(tt.setting, alias)
			if got := labels(s.Tools); got != tt.want || strings.Join(s.Unknown, " ") != tt.unknown {
				t.Errorf("%q, unknown %q", got, s.Unknown)
			}
		})
	}
}

func TestCompareFiles(t *testing.T) {
	t.Parallel()
	files := []string{"b.sh", "a.ts", "a.py", "a-b.sh", "a.sh"}
	slices.SortFunc(files, tool.CompareFiles)
	if want := []string{"a.sh", "a.py", "a.ts", "a-b.sh", "b.sh"}; !slices.Equal(files, want) {
		t.Errorf("%q, want %q", files, want)
	}
}
