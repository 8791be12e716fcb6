package document_test

import (
	"testing"

	"loki/internal/base/document"
)

func TestDecodePage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ data, label, want string }{
		{"\xef\xbb\xbfé", "", "é"},
		{"caf\xe9 \x80", "", "café €"},
		{"caf\xe9", "ISO-8859-1", "café"},
		{"caf\xe9", "us-ascii", "café"},
		{"caf\xe9", "nonsense", "café"},
		{"caf\xe9", "utf-8", "caf\uFFFD"},
		{"café", "latin1", "café"},
		{"<meta charset=shift_jis>\x93\xfa", "", "<meta charset=shift_jis>日"},
	} {
		if got, ok := document.DecodePage([]byte(tt.data), tt.label); got != tt.want || !ok {
			t.Errorf("%q as %q: got %q, %v", tt.data, tt.label, got, ok)
		}
	}
	if _, ok := document.DecodePage([]byte("a\x00b"), ""); ok {
		t.Error("data with a NUL byte is taken for text")
	}
}
