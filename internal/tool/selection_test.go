package tool_test

import (
	"strings"
	"testing"

	"loki/internal/tool"
)

func TestPick(t *testing.T) {
	t.Parallel()
	pool := []string{"fs_cat", "fs_ls", "fs_rm", "web"}
	alias := func(name string) (string, bool) {
		list, ok := map[string]string{"fs": "fs_ls, fs_cat.sh,gone", "web": "fs_rm", "deep": "fs"}[name]
		return list, ok
	}
	for _, tt := range []struct{ selection, names, unknown string }{
		{"", "", ""},
		{"all", "fs_cat fs_ls fs_rm web", ""},
		{" fs_rm , fs_cat.sh,", "fs_cat fs_rm", ""},
		{"fs", "fs_cat fs_ls", "gone"},
		{"web", "fs_rm", ""}, // an alias comes before a tool
		{"deep", "", "fs"},
		{"nope,fs_cat", "fs_cat", "nope"},
		{"fs_ls,all", "fs_cat fs_ls fs_rm web", ""},
	} {
		t.Run(tt.selection, func(t *testing.T) {
			t.Parallel()
			names, unknown := tool.Pick(tt.selection, alias, pool)
			if strings.Join(names, " ") != tt.names || strings.Join(unknown, " ") != tt.unknown {
				t.Errorf("%q, unknown %q", names, unknown)
			}
		})
	}
}
