package page

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"loki/assets"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFiles(t *testing.T) {
	h, err := newHandler(assets.Page)
	if err != nil {
		t.Fatal(err)
	}
	page := get(t, h, "/")
	html := body(t, page.Body)
	if page.StatusCode != http.StatusOK || page.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("GET /: %d %q", page.StatusCode, page.Header.Get("Content-Type"))
	}
	csp := page.Header.Get("Content-Security-Policy")
	if strings.Contains(csp, "unsafe") || !strings.Contains(csp, "script-src 'self'") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	if regexp.MustCompile(`(?i)<style|\son[a-z]+=|\sstyle=|<script(?:\s[^>]*)?>\s*[^<\s]|https?://`).MatchString(html) {
		t.Error("the page has something inline, or from another host, which its policy forbids")
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if r := get(t, h, "/"+m[1]); r.StatusCode != http.StatusOK {
			t.Errorf("%s, which the page names: %d", m[1], r.StatusCode)
		}
	}
	for _, path := range []string{"/page/", "/page/index.html", "/page/none.js", "/page/../assets.go"} {
		if r := get(t, h, path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	packed := get(t, h, "/page/app.js", "Accept-Encoding", "br, gzip")
	if packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("not packed")
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, h, "/page/app.js", "Accept-Encoding", "gzip;q=0")
	if plain.Header.Get("Content-Encoding") != "" || body(t, unpacked) != body(t, plain.Body) {
		t.Error("the packed file is another one")
	}
	tag := packed.Header.Get("ETag")
	if again := get(t, h, "/page/app.js", "Accept-Encoding", "gzip", "If-None-Match", `"x", W/`+tag); again.StatusCode != http.StatusNotModified || body(t, again.Body) != "" {
		t.Errorf("a file that the client has: %d", again.StatusCode)
	}
	if tag == plain.Header.Get("ETag") {
		t.Error("both forms of a file have the same tag")
	}
}

// Modules of the page name each other by relative paths, so that a proxy may serve it below a prefix.
func TestModules(t *testing.T) {
	h, err := newHandler(assets.Page)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range h {
		if !strings.HasSuffix(name, ".js") || strings.Contains(name, "/vendor/") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^import .* from "([^"]+)"`).FindAllStringSubmatch(string(f.plain), -1) {
			target, ok := strings.CutPrefix(m[1], "./")
			if _, found := h["/page/"+target]; !ok || !found {
				t.Errorf("%s imports %q", name, m[1])
			}
		}
		if m := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`).Find(f.plain); m != nil {
			t.Errorf("%s has %q: what is shown is text or goes through the sanitizer", name, m)
		}
	}
}

func TestUnknownFile(t *testing.T) {
	if _, err := newHandler(fstest.MapFS{"a.exe": {Data: []byte("x")}}); err == nil {
		t.Error("a file of an unknown type was accepted")
	}
}
