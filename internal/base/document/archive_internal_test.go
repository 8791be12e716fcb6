package document

import (
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestArchivesUnpackToALimit(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a", "b"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("<x>" + strings.Repeat(" ", 1<<20) + "</x>")); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := openArchive(t.Context(), b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	a.left = 3 << 19
	if err := a.walk("a", handler{}); err != nil {
		t.Error(err)
	}
	if err := a.walk("b", handler{}); !errors.Is(err, errBomb) {
		t.Error(err)
	}
}
