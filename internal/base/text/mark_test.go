package text

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestUnmarked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"a":                             "a",
		"\xef\xbb\xbf":                  "",
		"\xef\xbb\xbfa\xef\xbb\xbf":     "a\xef\xbb\xbf",
		"\xff\xfea\x00\xe4\x00":         "aä",
		"\xfe\xff\x00a\x00\xe4":         "aä",
		"\xef\xbb":                      "\xef\xbb",
		"\x00\xff":                      "\x00\xff",
		strings.Repeat("x", 10_000):     strings.Repeat("x", 10_000),
		"\xff\xfe" + "a\x00\n\x00b\x00": "a\nb",
	} {
		if got := string(TrimMark([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		got, err := io.ReadAll(UnmarkedReader(iotest.OneByteReader(strings.NewReader(in))))
		if err != nil || string(got) != want {
			t.Errorf("%q is read as %q (%v), want %q", in, got, err, want)
		}
	}
}
