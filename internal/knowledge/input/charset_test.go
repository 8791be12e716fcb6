package input_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/input"
)

const (
	latin1  = "caf\xe9 cr\xe8me"
	utf16le = "\xff\xfec\x00a\x00f\x00\xe9\x00"
	utf16be = "\xfe\xff\x00c\x00a\x00f\x00\xe9"
)

func TestCharsetsOfFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, content, want, hint string }{
		{"utf8", "a.txt", "café", "café", ""},
		{"utf8_mark", "a.txt", "\xef\xbb\xbfcafé", "café", ""},
		{"utf16le", "a.txt", utf16le, "café", ""},
		{"utf16be", "a.txt", utf16be, "café", ""},
		{"latin1", "a.txt", "one\ntwo " + latin1, "error: a.txt is not text in UTF-8: byte 0xe9 at line 2, column 8", "iconv -f ISO-8859-1"},
		{"binary", "a.txt", "a\x00b", "error: a.txt is not text in UTF-8 but application/octet-stream", "document_loaders.txt"},
		{"half_utf16", "a.txt", "\xff\xfe\x00", "error: a.txt is not text in UTF-8 but application/octet-stream", "document_loaders.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := (&input.Loader{Dir: dir}).Load(t.Context(), []string{tt.file})
			got := a.Text("")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want || !strings.Contains(fault.HintOf(err), tt.hint) {
				t.Errorf("%q, hint %q\nwant %q, hint %q", got, fault.HintOf(err), tt.want, tt.hint)
			}
		})
	}
}

func TestCharsetsOfPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, contentType, body, want string }{
		{"header", "text/plain; charset=iso-8859-1", latin1, "café crème"},
		{"windows", "text/plain; charset=windows-1252", "\x80 5", "€ 5"},
		{"page_header", "text/html; charset=ISO-8859-1", "<p>" + latin1, "café crème"},
		{"page_meta", "text/html", "<meta charset=latin1><p>" + latin1, "café crème"},
		{"japanese", "text/html; charset=shift_jis", "<p>\x93\xfa\x96\x7b", "日本"},
		{"header_is_wrong", "text/plain; charset=iso-8859-1", "café", "café"},
		{"mark_wins", "text/plain; charset=iso-8859-1", utf16le, "café"},
		{"unknown", "text/plain; charset=nonsense", latin1, "error: byte 0xe9 at line 1, column 4"},
		{"not_declared", "text/plain", latin1, "error: byte 0xe9 at line 1, column 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.contentType)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			a, err := (&input.Loader{}).Load(t.Context(), []string{server.URL})
			got := a.Text("")
			if want, ok := strings.CutPrefix(tt.want, "error: "); ok {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(fault.HintOf(err), "iconv") {
					t.Errorf("%q, %v, hint %q", got, err, fault.HintOf(err))
				}
			} else if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestCharsetsOfStandardInput(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"\xef\xbb\xbfx": "x", utf16be: "café", "a\x00b": "a\x00b"} {
		if got, err := input.ReadStdin(strings.NewReader(in)); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	_, err := input.ReadStdin(strings.NewReader("diff\n+" + latin1))
	if err == nil || err.Error() != "standard input is not text in UTF-8: byte 0xe9 at line 2, column 5" || !strings.Contains(fault.HintOf(err), "iconv") {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
}

func FuzzReadStdin(f *testing.F) {
	for _, in := range []string{"x", utf16le, utf16be, latin1, "\xff\xfe\x00\xd8"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, err := input.ReadStdin(strings.NewReader(in))
		if err == nil && strings.ToValidUTF8(text, "") != text {
			t.Errorf("%q is taken for text", in)
		}
	})
}
