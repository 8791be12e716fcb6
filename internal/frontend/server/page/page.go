// Package page serves the page of the server: one HTML file, its style sheet and its JavaScript modules, which
// are part of the program. The page has no data of its own. It calls the API with the key of its user.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"loki/assets"
	"loki/internal/frontend/server/rest"
	"loki/internal/workflow/graph/draw"
)

// policy is the Content-Security-Policy of the page and its files. Nothing comes from another host, and nothing inline is
// run. HTML is made of text by the sanitizer only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

// types are the media types of the files. They do not depend on what is installed on the system.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",

	".LICENSE": "text/plain; charset=utf-8",
}

// file is one file of the page as it is sent.
type file struct {
	media  string
	plain  []byte
	packed []byte // with gzip
	tag    string // strong validator of plain, in quotes
}

// handler is an [http.Handler] of files by the path of their URL. It is not changed.
type handler map[string]file

// Register adds GET / and GET /page/NAME. They need no key.
func Register(a *rest.API) {
	h, err := newHandler(assets.Page)
	if err != nil {
		panic(err) // a file of the program is not one of the types, which the first start shows
	}
	a.Mount("/{$}", h)
	a.Mount("/page/", h)
}

// newHandler returns a handler of the files and of the style sheet of drawings. It is an error if one has a type that is not known here.
func newHandler(files fs.FS) (handler, error) {
	h := make(handler)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		plain, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		f, err := newFile(name, plain)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if name == "index.html" {
			h["/"] = f
		} else {
			h["/page/"+name] = f
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h["/page/graph.css"], err = newFile("graph.css", []byte(draw.Style()))
	return h, err
}

func newFile(name string, plain []byte) (file, error) {
	media, ok := types[path.Ext(name)]
	if !ok {
		return file{}, errors.New("not a type of file that the page is made of")
	}
	sum := sha256.Sum256(plain)
	f := file{media: media, plain: plain, tag: strconv.Quote(hex.EncodeToString(sum[:8]))}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return f, err
	}
	if _, err := w.Write(plain); err != nil {
		return f, err
	}
	if err := w.Close(); err != nil {
		return f, err
	}
	f.packed = b.Bytes()
	return f, nil
}

// ServeHTTP sends a file, or 304 if the client has it.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := h[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Type", f.media)
	head.Set("Cache-Control", "no-cache") // the file of the next release has the same name
	head.Set("Vary", "Accept-Encoding")
	body, tag := f.plain, f.tag
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.packed, strings.TrimSuffix(f.tag, `"`)+`-gzip"`
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", tag)
	if has(r.Header.Get("If-None-Match"), tag) {
		head.Del("Content-Encoding")
		head.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the client is gone, and there is nothing to report it to
	}
}

// has reports whether list, the value of If-None-Match, names tag.
func has(list, tag string) bool {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "W/")
		if name == tag || name == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether header, the value of Accept-Encoding, names gzip without refusing it.
func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}
