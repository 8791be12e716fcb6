package input_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/knowledge/input"
)

// TestDocumentsNeedNoLoader attaches documents that the program reads itself.
func TestDocumentsNeedNoLoader(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"a.RTF": `{\rtf1 rich}`, "broken.docx": "x", "b.txt": "plain",
		"p.pdf": "1 0 obj <</Type /Catalog /Pages <</Kids [<</Resources <</Font <</F <</Subtype /Type1>>>>>> /Contents 2 0 R>>]>>>> endobj 2 0 obj <<>> stream\nBT /F 9 Tf (portable) Tj ET\nendstream endobj",
	})
	l := &input.Loader{Dir: dir}
	for source, want := range map[string]string{"a.RTF": "rich\n", "p.pdf": "portable\n", "pdf:p.pdf": "portable\n", "rtf:" + filepath.Join(dir, "a.RTF"): "rich\n"} {
		a, err := l.Load(t.Context(), []string{source})
		if err != nil || len(a.Documents) != 1 || a.Documents[0].Text != want {
			t.Errorf("%s: %+v, %v", source, a.Documents, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large.txt"), bytes.Repeat([]byte("text\n"), input.MaxFileSize/5+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "n.bin"), []byte("\x00\xff\xfe"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := l.Load(t.Context(), []string{"."})
	want := []string{"broken.docx (not readable as docx)", "large.txt (larger than 10 MiB)", "n.bin (neither text nor a picture)"}
	if err != nil || strings.Join(names(a), " ") != "a.RTF b.txt p.pdf" || !slices.Equal(a.PassedOver, want) {
		t.Errorf("%q, %q, %v", names(a), a.PassedOver, err)
	}
	if _, err := l.Load(t.Context(), []string{"broken.docx"}); err == nil || !strings.Contains(err.Error(), "broken.docx: the document is malformed") {
		t.Error(err)
	}
	if _, err := os.Stat("/bin/sh"); err == nil {
		l.Loaders = map[string]string{"pdf": "echo loaded"}
		if a, err := l.Load(t.Context(), []string{"p.pdf"}); err != nil || a.Documents[0].Text != "loaded\n" {
			t.Error(a, err)
		}
	}
}
