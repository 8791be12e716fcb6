// Package updatetest serves signed releases of a program on the loopback interface.
package updatetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"
)

// Feed is a server of releases. Its methods may be called while it serves.
type Feed struct {
	URL string
	Key string // public, of the publisher

	// Hashed has signatures made of the hash of a text, as the program minisign does, in place of the text itself.
	Hashed bool

	private minisign.PrivateKey
	server  *httptest.Server

	mu       sync.Mutex
	handlers map[string]http.HandlerFunc
}

// New starts a feed without releases, which ends with the test. Its connections are encrypted if tls is set.
func New(tb testing.TB, tls bool) *Feed {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	f := &Feed{Key: public.String(), private: private, handlers: make(map[string]http.HandlerFunc)}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	if tls {
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	f.URL = f.server.URL
	tb.Cleanup(f.server.Close)
	return f
}

// Transport returns what trusts the certificate of the server.
func (f *Feed) Transport() http.RoundTripper { return f.server.Client().Transport }

func (f *Feed) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	handler := f.handlers[r.URL.Path]
	f.mu.Unlock()
	if handler == nil {
		handler = http.NotFound
	}
	handler(w, r)
}

// Handle has handler answer requests for a path.
func (f *Feed) Handle(path string, handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[path] = handler
}

// Serve has a path answered with body.
func (f *Feed) Serve(path string, body []byte) {
	f.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}

// Release publishes a release, the newest from now on: an archive with the members, for which the
// checksums are signed. The feed lists no assets.
func (f *Feed) Release(tag, archive string, members ...Member) {
	packed := Archive(members...)
	sums := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(packed), archive)
	about, _ := json.Marshal(map[string]string{"tag_name": tag}) // texts always can
	f.Serve("/latest", about)
	f.Serve("/tags/"+tag, about)
	f.Serve(Path(tag, archive), packed)
	f.Serve(Path(tag, "checksums.txt"), sums)
	f.Serve(Path(tag, "checksums.txt.minisig"), f.Sign(sums, "loki "+tag))
}

// Sign returns the signature of a text.
func (f *Feed) Sign(text []byte, trustedComment string) []byte {
	if f.Hashed {
		r := minisign.NewReader(bytes.NewReader(text))
		_, _ = io.Copy(io.Discard, r) // memory is always read
		return r.SignWithComments(f.private, trustedComment, "a test")
	}
	return minisign.SignWithComments(f.private, text, trustedComment, "a test")
}

// Path returns the path of a file of a release.
func Path(tag, name string) string { return "/download/" + tag + "/" + name }

// Member is one member of an archive.
type Member struct {
	Name string
	Body string
	Link string // for a symbolic link
}

// Program returns a program that prints version, as a member of an archive.
func Program(version string) Member {
	return Member{Name: "loki", Body: "#!/bin/sh\necho loki " + version + "\n"}
}

// Archive packs members.
func Archive(members ...Member) []byte {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, m := range members {
		h := &tar.Header{Name: m.Name, Mode: 0o755, Size: int64(len(m.Body)), Typeflag: tar.TypeReg}
		if m.Link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, m.Link, 0
		}
		_ = w.WriteHeader(h) // a buffer takes everything
		_, _ = w.Write([]byte(m.Body)[:h.Size])
	}
	_ = w.Close()
	_ = zipped.Close()
	return b.Bytes()
}
