package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	t.Parallel()
	const abc = "a\nb\nc\n"
	for _, tt := range []struct{ name, text, patch, want, wantErr string }{
		{name: "replace", text: abc, patch: "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", want: "a\nB\nc\n"},
		{name: "no_numbers", text: abc, patch: "@@ @@\n-b\n+B", want: "a\nB\nc\n"},
		{name: "bare_header", text: abc, patch: "@@\n-b\n+B\n", want: "a\nB\nc\n"},
		{name: "wrong_numbers", text: abc, patch: "@@ -70,9 +70,2 @@\n-b\n+B\n", want: "a\nB\nc\n"},
		{name: "fence_around", text: abc, patch: "```diff\n@@ -2 +2 @@\n-b\n+B\n```\n", want: "a\nB\nc\n"},
		{name: "two_hunks", text: "a\nb\nc\nd\ne\n", patch: "@@ -1,2 +1,3 @@\n a\n+x\n b\n@@ -5 +6 @@\n-e\n+E\n", want: "a\nx\nb\nc\nd\nE\n"},
		{name: "order_matters", text: abc, patch: "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n", wantErr: `hunk 2 of 2 (@@ -1 +1 @@) does not fit, so nothing was changed: its first line "a" is not in the file after line 3`},
		{name: "numbers_choose", text: "x\n1\nx\n2\n", patch: "@@ -3,1 +3,1 @@\n-x\n+y\n", want: "x\n1\ny\n2\n"},
		{name: "first_place", text: "x\n1\nx\n2\n", patch: "@@ -9,1 +9,1 @@\n-x\n+y\n", want: "y\n1\nx\n2\n"},
		{name: "insert_at_line", text: abc, patch: "@@ -2,0 +3,1 @@\n+x\n", want: "a\nb\nx\nc\n"},
		{name: "insert_at_start", text: abc, patch: "@@ -0,0 +1,1 @@\n+x\n", want: "x\na\nb\nc\n"},
		{name: "into_empty", text: "", patch: "@@ -0,0 +1,2 @@\n+x\n+y\n", want: "x\ny\n"},
		{name: "delete_all", text: abc, patch: "@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", want: ""},
		{name: "empty_context_line", text: "a\n\nb\n", patch: "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", want: "a\n\nc\n"},
		{name: "empty_lines_at_the_end", text: abc, patch: "@@ @@\n-c\n+C\n\n\n", want: "a\nb\nC\n"},
		{name: "empty_lines_between_hunks", text: abc, patch: "@@ -1 +1 @@\n-a\n+A\n\n@@ -3 +3 @@\n-c\n+C\n", want: "A\nb\nC\n"},
		{name: "crlf_is_kept", text: "a\r\nb\r\nc\r\n", patch: "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+b2\n c\n", want: "a\r\nB\r\nb2\r\nc\r\n"},
		{name: "crlf_in_the_patch", text: abc, patch: "@@ -2 +2 @@\r\n-b\r\n+B\r\n", want: "a\nB\nc\n"},
		{name: "mixed_line_ends", text: "a\nb\r\nc\n", patch: "@@ @@\n a\n+x\n b\n+y\n c\n", want: "a\nx\nb\r\ny\r\nc\n"},
		{name: "no_line_end_is_kept", text: "a\nb", patch: "@@ @@\n-b\n+B\n", want: "a\nB"},
		{name: "no_line_end_and_more", text: "a\nb", patch: "@@ @@\n b\n+c\n", want: "a\nb\nc"},
		{name: "line_end_added", text: "a\nb", patch: "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n", want: "a\nb\n"},
		{name: "line_end_removed", text: "a\nb\n", patch: "@@ -2 +2 @@\n-b\n+b\n\\ No newline at end of file\n", want: "a\nb"},
		{name: "mark_is_kept", text: "\ufeffa\nb\n", patch: "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", want: "\ufeffA\nb\n"},
		{name: "mark_in_the_patch", text: "\ufeffa\nb\n", patch: "@@ -1,2 +1,2 @@\n-\ufeffa\n+\ufeffA\n b\n", want: "\ufeffA\nb\n"},
		{name: "mark_and_crlf", text: "\ufeffa\r\nb\r\n", patch: "@@ @@\n-a\n+A\n", want: "\ufeffA\r\nb\r\n"},
		{name: "carriage_returns", text: "a\rb\rc", patch: "@@ -2 +2,2 @@\n-b\n+B\n+x\n", want: "a\rB\rx\rc"},
		{name: "new_file", text: "", patch: "diff --git \"a/a b\\t\" \"b/a b\\t\"\nnew file mode 100644\nindex 0000000..1\n--- /dev/null\n+++ \"b/a b\\t\"\n@@ -0,0 +1,2 @@\n+x\n+y\n", want: "x\ny\n"},
		{name: "new_file_that_exists", text: abc, patch: "--- /dev/null\t1970-01-01\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", wantErr: "so nothing was changed: the patch is of a new file, but the file exists"},
		{name: "removal", text: abc, patch: "--- a/x\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", wantErr: "fs_rm removes files"},
		{name: "rename", text: abc, patch: "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+A\n", wantErr: "renames or copies the file"},
		{name: "rename_in_the_text", text: "rename from x\n", patch: "@@ -1 +1 @@\n-rename from x\n+rename from y\n", want: "rename from y\n"},
		{name: "binary", text: abc, patch: "diff --git a/x b/x\nGIT binary patch\nliteral 3\n", wantErr: "binary"},
		{name: "names_with_blanks", text: abc, patch: "--- a/my file.txt\t2024-01-01\n+++ b/my file.txt\t2024-01-02\n@@ -2 +2 @@\n-b\n+B\n", want: "a\nB\nc\n"},
		{name: "dashes", text: "-- a\n-- b\n", patch: "@@ -1,2 +1,2 @@\n -- a\n--- b\n+++ c\n", want: "-- a\n++ c\n"},
		{name: "dashes_without_lengths", text: "-- a\n-- b\n", patch: "@@ @@\n -- a\n--- b\n+-- c\n", want: "-- a\n-- c\n"},
		{name: "two_files", text: abc, patch: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+A\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+A\n", wantErr: "more than one file"},
		{name: "no_hunk", text: abc, patch: "-b\n+B\n", wantErr: "the patch has no hunk"},
		{name: "empty_hunk", text: abc, patch: "@@ -1 +1 @@\nnonsense\n", wantErr: "hunk 1 (@@ -1 +1 @@) is empty"},
		{name: "nearly", text: abc, patch: "@@ -1,3 +1,3 @@\n a\n b\n-C\n+x\n", wantErr: `at line 3, where it fits best, it has "C" and the file has "c"`},
		{name: "behind_the_end", text: abc, patch: "@@ -3,2 +3,1 @@\n c\n-d\n", wantErr: `at line 4, where it fits best, it has "d" and the file ends`},
		{name: "blanks_count", text: "  a\n", patch: "@@ @@\n-a\n+b\n", wantErr: `its first line "a" is not in the file.`},
		{name: "made_already", text: "a\nB\n", patch: "@@ @@\n a\n-b\n+B\n", wantErr: "its new ones are at line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got string
			p, err := Parse(tt.patch)
			if err == nil {
				got, err = p.Apply(tt.text)
			}
			if tt.wantErr == "" && (err != nil || got != tt.want) {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("got %q, %v; want the error %s", got, err, tt.wantErr)
			}
		})
	}
}

func TestErrorNamesTheHunk(t *testing.T) {
	t.Parallel()
	p, err := Parse("@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-c\n+d\n@@ -3 +3 @@\n-e\n+f\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Apply("a\n")
	if e, ok := errors.AsType[*Error](err); !ok || e.Hunk != 2 || e.Hunks != 3 || e.Header != "@@ -2 +2 @@" {
		t.Errorf("got %#v", err)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\n", 20)
	for _, tt := range []struct {
		name, a, b, want string
		stat             Stat
	}{
		{name: "equal", a: "a\n", b: "a\n"},
		{name: "change", a: "a\nb\nc\n", b: "a\nB\nc\n", want: "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", stat: Stat{1, 1}},
		{name: "new", a: "", b: "a\nb\n", want: "@@ -0,0 +1,2 @@\n+a\n+b\n", stat: Stat{2, 0}},
		{name: "emptied", a: "a\n", b: "", want: "@@ -1 +0,0 @@\n-a\n", stat: Stat{0, 1}},
		{name: "line_end", a: "a", b: "a\n", want: "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", stat: Stat{1, 1}},
		{name: "two_hunks", a: "1\n" + long + "2\n", b: "A\n" + long + "B\n", want: "@@ -1,4 +1,4 @@\n-1\n+A\n x\n x\n x\n@@ -19,4 +19,4 @@\n x\n x\n x\n-2\n+B\n", stat: Stat{2, 2}},
		{name: "moved", a: "a\nb\nc\nd\n", b: "b\nc\na\nd\n", want: "@@ -1,4 +1,4 @@\n-a\n b\n c\n+a\n d\n", stat: Stat{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, stat := Diff(tt.a, tt.b)
			if got != tt.want || stat != tt.stat {
				t.Errorf("got %v\n%s\nwant %v\n%s", stat, got, tt.stat, tt.want)
			}
		})
	}
}

// A difference of many small changes is not one of large regions.
func TestDiffOfManyChanges(t *testing.T) {
	t.Parallel()
	before := make([]string, 5000)
	for i := range before {
		before[i] = fmt.Sprintf("line %d\n", i)
	}
	after := slices.Clone(before)
	for i := 0; i < len(after); i += 33 {
		after[i] = "changed\n"
	}
	want := Stat{Added: 152, Removed: 152}
	if _, got := Diff(strings.Join(before, ""), strings.Join(after, "")); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A difference applies to what it was made of, and gives what it was made for.
func FuzzDiffApplies(f *testing.F) {
	for _, s := range [][2]string{
		{"a\nb\nc\n", "a\nB\nc\n"},
		{"", "a\n"},
		{"a", "a\n"},
		{"a\n", "a"},
		{"a\r\nb\r\n", "a\r\nx\r\nb\r\n"},
		{"\n\n", "\n"},
		{"a\nb\na\nb\na\n", "b\na\nb\n"},
		{"-- a\n", "++ b\n"},
		{"@@ x\n", "\\ y\n"},
		{"a\n" + strings.Repeat("x\n", 9) + "b", "c\n" + strings.Repeat("x\n", 9)},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		// Which line ends a line that comes has is decided by the file.
		if strings.Contains(a+b, "\r") || strings.HasPrefix(a, "\ufeff") {
			t.Skip()
		}
		diff, _ := Diff(a, b)
		if diff == "" {
			if a != b {
				t.Fatalf("no difference between %q and %q", a, b)
			}
			return
		}
		p, err := Parse(diff)
		if err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
		if got, err := p.Apply(a); err != nil || got != b {
			t.Fatalf("%q to %q: got %q, %v\n%s", a, b, got, err, diff)
		}
	})
}

// Whatever a model writes, applying it ends, and a failure changes nothing.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
	f.Add("a\r\nb", "@@\n-b\n\\ No newline at end of file\n+c\n\n\n")
	f.Add("", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x")
	f.Add("x\n", "@@ -99999999999999999999 +1 @@\n x\n")
	f.Fuzz(func(t *testing.T, text, patch string) {
		p, err := Parse(patch)
		if err != nil {
			return
		}
		got, err := p.Apply(text)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || got != "" {
				t.Fatalf("got %q, %v", got, err)
			}
			return
		}
		added := 0
		for _, h := range p.Hunks {
			for _, l := range h.Lines {
				added += len(l.Text) + 2
			}
		}
		if len(got) > len(text)+added+2 {
			t.Fatalf("%d bytes became %d", len(text), len(got))
		}
	})
}
