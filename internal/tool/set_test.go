package tool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/tool"
)

func testSet(t *testing.T, names ...string) tool.Set {
	t.Helper()
	var tools []tool.Tool
	for _, name := range names {
		tools = append(tools, fake{name: name})
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestNewSetRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		names []string
		want  string
	}{
		{"same_name", []string{"a", "b", "a"}, `two tools have the name "a"`},
		{"no_name", []string{""}, `tool ""`},
		{"blank", []string{"a b"}, `tool "a b"`},
		{"dot", []string{"a.sh"}, `tool "a.sh"`},
		{"long", []string{strings.Repeat("a", 65)}, "64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tools []tool.Tool
			for _, name := range tt.names {
				tools = append(tools, fake{name: name})
			}
			if _, err := tool.NewSet(tools...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	set := testSet(t, "fs_ls", "fs_cat", "Say-Hi_1")
	for _, tt := range []struct {
		name        string
		names, want []string
		unknown     string
	}{
		{name: "none", names: nil, want: nil},
		{name: "order_of_names", names: []string{"fs_cat", "fs_ls"}, want: []string{"fs_cat", "fs_ls"}},
		{name: "file_name", names: []string{"fs_cat.sh"}, want: []string{"fs_cat"}},
		{name: "twice", names: []string{"fs_cat.py", "fs_ls.ts", "fs_cat"}, want: []string{"fs_cat", "fs_ls"}},
		{name: "unknown", names: []string{"fs_ls", "fs_rm"}, unknown: `there is no tool "fs_rm"; available: Say-Hi_1, fs_cat, fs_ls`},
		{name: "case", names: []string{"FS_LS"}, unknown: `"FS_LS"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := set.Select(tt.names)
			if tt.unknown != "" {
				if _, ok := errors.AsType[*tool.UnknownError](err); !ok || !strings.Contains(err.Error(), tt.unknown) {
					t.Fatalf("error %v, want an UnknownError with %q", err, tt.unknown)
				}
				return
			}
			if err != nil || !slices.Equal(got.Names(), tt.want) {
				t.Errorf("got %v, %v, want %v", got.Names(), err, tt.want)
			}
		})
	}
}

func TestSetOrder(t *testing.T) {
	t.Parallel()
	set := testSet(t, "b", "a", "c")
	var all, declared []string
	for name := range set.All() {
		all = append(all, name)
	}
	for _, d := range set.Declarations() {
		declared = append(declared, d.Name)
	}
	want := []string{"b", "a", "c"}
	if !slices.Equal(all, want) || !slices.Equal(declared, want) || !slices.Equal(set.Names(), want) || set.Len() != 3 {
		t.Errorf("all %v, declared %v, names %v, len %d; want %v", all, declared, set.Names(), set.Len(), want)
	}
	if _, ok := set.Lookup("c.sh"); !ok {
		t.Error("c.sh is not found")
	}
	if _, ok := (tool.Set{}).Lookup("a"); ok {
		t.Error("the empty set has a tool")
	}
}

func TestForNode(t *testing.T) {
	t.Parallel()
	set := testSet(t, "fs_ls", "fs_cat")
	if got, err := set.ForNode("writer", []string{"fs_cat.sh"}); err != nil || !slices.Equal(got.Names(), []string{"fs_cat"}) {
		t.Errorf("got %v, %v", got.Names(), err)
	}
	for _, tt := range []struct {
		name string
		set  tool.Set
		tool string
		want string
	}{
		{"unknown", set, "fs_rm", `agent "writer" has no tool "fs_rm"; available: fs_cat, fs_ls`},
		{"nothing_available", tool.Set{}, "fs_rm", `agent "writer" has no tool "fs_rm"; available: none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.set.ForNode("writer", []string{tt.tool})
			if err == nil || err.Error() != tt.want || fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
				t.Errorf("error %v, code %q, hint %q; want %q", err, fault.CodeOf(err), fault.HintOf(err), tt.want)
			}
		})
	}
}

// TestUnknownExtension: a file that cannot be a script says which can.
func TestUnknownExtension(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"hi.js": `there is no tool "hi.js": scripts of tools end in .sh, .py or .ts; available: none`,
		"hi.rb": `there is no tool "hi.rb": scripts of tools end in .sh, .py or .ts; available: none`,
		"hi.sh": `there is no tool "hi.sh"; available: none`,
		"v1.2":  `there is no tool "v1.2"; available: none`,
	} {
		if got := (&tool.UnknownError{Name: name}).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
