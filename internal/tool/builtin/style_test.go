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
	if got, failed, _ := asks(t, o, "fs_patch", m{"path": "gone", "contents": "--- a/gone\n+++ b/gone\n@@ -0,0 +1 @@\n+x\n"}); !failed || !strings.Contains(got, "no such file") {
		t.Errorf("%q", got)
	}
}
