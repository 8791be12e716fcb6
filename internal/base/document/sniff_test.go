package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/document"
)

func TestSniff(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Glob("testdata/sample.*")
	if err != nil || len(samples) < 10 {
		t.Fatal(err, len(samples))
	}
	for _, file := range samples {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := document.Sniff(data); "."+got != filepath.Ext(file) {
			t.Errorf("%s is %q", file, got)
		}
	}
	for data, want := range map[string]string{
		"%PDF-1.4\n": "pdf", "\x89PNG\r\n\x1a\n": "png", "\xff\xd8\xff\xe0": "jpeg", "GIF89a": "gif", "RIFF\x10\x00\x00\x00WEBPVP8 ": "webp",
		"\x00\x00\x00\x18ftypheic\x00": "heic", "\x00\x00\x00\x1cftypavif": "avif", "II*\x00": "tiff", "BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00": "bmp",
		"": "", "BMW is a maker of cars": "", "PK\x03\x04 damaged": "", "RIFF....WAVE": "", "see %PDF-1.4": "", "\x00\x01": "",
	} {
		if got := document.Sniff([]byte(data)); got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
}
