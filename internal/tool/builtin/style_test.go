package builtin_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestStyleIsKept: line ends and byte order marks are kept, and the result reports a change of them.
func TestStyleIsKept(t *testing.T) {
	t.Parallel()
	const mark = "\ufeff"
	for _, tt := range []struct{ name, before, contents, want, says string }{
		{"crlf", "a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n", "kept its CRLF line ends"},
		{"mark", mark + "a\n", "b\n", mark + "b\n", "kept its byte order mark"},
		{"mark_and_crlf", mark + "a\r\n", "b\nc", mark + "b\r\nc", "kept its CRLF line ends, kept its byte order mark"},
		{"carriage_returns", "a\rb\r", "a\nc\n", "a\rc\r", "kept its CR line ends"},
		{"lf_to_crlf", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n", "its line ends were LF and are CRLF now"},
		{"mixed", "a\r\nb\nc\n", "a\nb\n", "a\nb\n", ""},
		{"lf", "a\n", "b", "b", ""},
		{"new", "", "a\r\n", "a\r\n", ""},
		{"utf16", "\xff\xfea\x00\n\x00", "b\n", "b\n", "the file was UTF-16 and is UTF-8 now"},
		{"cut_between_bytes", strings.Repeat("x", 64<<10-1) + "\u00e9\n", "b\n", "b\n", ""},
		{"latin1", "caf\xe9\n", "caf\u00e9\n", "caf\u00e9\n", "the file was not UTF-8 and is now"},
		{"binary", "\x00\r\n", "b\n", "b\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := files(t, map[string]string{"f": tt.before})
			got, failed, _ := asks(t, at(dir), "fs_write", m{"path": "f", "contents": tt.contents})
			if failed || read(t, filepath.Join(dir, "f")) != tt.want || !strings.Contains(got, tt.says) || tt.says == "" && strings.Contains(got, ";") {
				t.Errorf("%q; the file has %q", got, read(t, filepath.Join(dir, "f")))
			}
		})
	}
	dir := files(t, map[string]string{"f": mark + "const v\r\nx\r\n", "old": "a\rb\r"})
	o := at(dir)
	if got := output(t, o, "fs_read", m{"path": "f"}); got != "1: const v\n2: x\n" {
		t.Errorf("%q", got)
	}
	if got := output(t, o, "fs_cat", m{"path": "f"}); got != "const v\r\nx\r\n" {
		t.Errorf("%q", got)
	}
	if got := output(t, o, "fs_grep", m{"pattern": "^const"}); got != "f:1:const v\n" {
		t.Errorf("%q", got)
	}
	if got := output(t, o, "fs_read", m{"path": "old"}); got != "1: a\n2: b\n" {
		t.Errorf("%q", got)
	}
	if got, failed, _ := asks(t, o, "fs_patch", m{"path": "f", "contents": "@@ -1,2 +1,2 @@\n-const v\n+const w\n x\n"}); failed || read(t, filepath.Join(dir, "f")) != mark+"const w\r\nx\r\n" {
		t.Errorf("%q; %q", got, read(t, filepath.Join(dir, "f")))
	}
	if got, failed, _ := asks(t, o, "fs_patch", m{"path": "sub/new", "contents": "--- /dev/null\n+++ b/sub/new\n@@ -0,0 +1 @@\n+x\n"}); failed || read(t, filepath.Join(dir, "sub", "new")) != "x\n" || !strings.Contains(got, "created sub/new") {
		t.Errorf("%q", got)
	}
	odd := files(t, map[string]string{"latin1": "x = 1\n// caf\xe9\n", "utf16": "\xff\xfea\x00", "at 8\u202fPM.txt": "", "cafe\u0301": ""})
	for _, tt := range []struct {
		tool, want string
		args       m
	}{
		{"fs_patch", "1 line added", m{"path": "latin1", "contents": "@@ -1 +1 @@\n-x = 1\n+x = 2\n"}},
		{"fs_patch", "the file is not in UTF-8", m{"path": "latin1", "contents": "@@ -1 +1,2 @@\n x = 2\n+// d\u00e9j\u00e0\n"}},
		{"fs_read", "UTF-16; iconv", m{"path": "utf16"}},
		{"fs_cat", "UTF-16; iconv", m{"path": "utf16"}},
		{"fs_cat", `at 8\\u202fPM.txt`, m{"path": "at 8 PM.txt"}},
		{"fs_patch", `at 8\\u202fPM.txt`, m{"path": "at 8 PM.txt", "contents": "@@ -1 +1 @@\n-a\n+b\n"}},
		{"fs_read", `cafe\\u0301`, m{"path": "caf\u00e9"}},
	} {
		if got, _, _ := asks(t, at(odd), tt.tool, tt.args); !strings.Contains(got, tt.want) {
			t.Errorf("%s %v: %s", tt.tool, tt.args, got)
		}
	}
	if got := read(t, filepath.Join(odd, "latin1")); got != "x = 2\n// caf\xe9\n" {
		t.Errorf("latin1: %q", got)
	}
	if got, failed, _ := asks(t, o, "fs_patch", m{"path": "gone", "contents": "--- a/gone\n+++ b/gone\n@@ -0,0 +1 @@\n+x\n"}); !failed || !strings.Contains(got, "no such file") {
		t.Errorf("%q", got)
	}
}
