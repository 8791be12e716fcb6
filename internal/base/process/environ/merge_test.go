package environ

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		base  []string
		set   map[string]string
		unset []string
		fold  bool
		want  []string
	}{
		{name: "nothing", want: []string{}},
		{name: "sorted", base: []string{"B=2", "A=1"}, set: map[string]string{"C": "3", "AB": "4"}, want: []string{"A=1", "AB=4", "B=2", "C=3"}},
		{name: "later_entry_wins", base: []string{"A=1", "B=2", "A=3"}, want: []string{"A=3", "B=2"}},
		{name: "set_wins", base: []string{"A=1"}, set: map[string]string{"A": "2"}, want: []string{"A=2"}},
		{name: "set_empty", base: []string{"A=1"}, set: map[string]string{"A": ""}, want: []string{"A="}},
		{name: "unset", base: []string{"GRAPH_STATE_FILE=/x", "A=1"}, set: map[string]string{"GRAPH_STATE": "{}"}, unset: []string{"GRAPH_STATE_FILE", "NONE"}, want: []string{"A=1", "GRAPH_STATE={}"}},
		{name: "unset_over_set", set: map[string]string{"A": "1"}, unset: []string{"A"}, want: []string{}},
		{name: "value_with_equals", base: []string{"A=b=c"}, want: []string{"A=b=c"}},
		{name: "malformed", base: []string{"", "A", "B=1"}, want: []string{"B=1"}},
		{name: "case_matters", base: []string{"Path=a", "PATH=b"}, want: []string{"PATH=b", "Path=a"}},
		{name: "case_folded", base: []string{"Path=a", "b=1"}, set: map[string]string{"PATH": "c", "A": "2"}, unset: []string{"B"}, fold: true, want: []string{"A=2", "PATH=c"}},
		{name: "case_folded_in_set", set: map[string]string{"Path": "1", "PATH": "2", "path": "3"}, fold: true, want: []string{"path=3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := slices.Clone(tt.base)
			if got := merge(tt.base, tt.set, tt.unset, tt.fold); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !slices.Equal(tt.base, base) {
				t.Error("base was changed")
			}
		})
	}
}

// TestMergeOnThisSystem has what Windows and the others see differently: the case of keys, and
// keys that begin with an equals sign.
func TestMergeOnThisSystem(t *testing.T) {
	t.Parallel()
	base := []string{"=C:=dir", "Path=a", "PATH=b"}
	want := []string{"PATH=b", "Path=a"}
	if runtime.GOOS == "windows" {
		want = []string{"=C:=dir", "PATH=b"}
	}
	if got := Merge(base, nil); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzMerge reads base as one entry per line and checks the form of the result.
func FuzzMerge(f *testing.F) {
	f.Add("A=1\na=2\nB", "b", "3", "A")
	f.Add("=C:=x\n=\n", "A", "=", "")
	f.Fuzz(func(t *testing.T, base, key, value, unset string) {
		if key == "" || strings.Contains(key, "=") {
			t.Skip("not a key")
		}
		got := merge(strings.Split(base, "\n"), map[string]string{key: value}, []string{unset}, true)
		upper := strings.ToUpper // as merge compares; EqualFold finds more
		unsetKey := upper(key) == upper(unset)
		if slices.Contains(got, key+"="+value) == unsetKey {
			t.Fatalf("%q, unset: %v, got %q", key, unsetKey, got)
		}
		for i, entry := range got {
			if _, ok := entryKey(entry); !ok {
				t.Fatalf("malformed entry %q", entry)
			}
			if i > 0 && upper(got[i-1]) == upper(entry) {
				t.Fatalf("%q is there twice", entry)
			}
		}
		if again := merge(got, nil, nil, true); !slices.Equal(got, again) {
			t.Fatalf("%q merged again is %q", got, again)
		}
	})
}
