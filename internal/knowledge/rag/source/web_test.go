package source_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag/source"
)

// site serves pages by path: HTML, or what follows a content type and a line feed. It counts requests.
func site(t *testing.T, pages map[string]string) (*source.Loader, *httptest.Server, func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	asked := make(map[string]int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.RequestURI()]++
		mu.Unlock()
		page, ok := pages[r.URL.Path]
		if to, redirect := strings.CutPrefix(page, "-> "); redirect {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		contentType := "text/html; charset=utf-8"
		if head, body, ok := strings.Cut(page, "\n"); ok && strings.Contains(head, "/") && !strings.Contains(head, "<") {
			contentType, page = head, body
		}
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	l := loaderAt(t.TempDir())
	l.Input.HTTP = server.Client()
	return l, server, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

func links(to ...string) string {
	var b strings.Builder
	for _, link := range to {
		fmt.Fprintf(&b, "<a href=%q>x</a> ", link)
	}
	return b.String()
}

func TestPages(t *testing.T) {
	t.Parallel()
	l, server, _ := site(t, map[string]string{
		"/page":      "<html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><h1>Hi</h1><p>A <a href=/b>link</a></p><script>x()</script></body></html>",
		"/raw/a.go":  "text/plain\npackage a",
		"/data":      "application/json\n{}",
		"/pic":       "image/png\n\x89",
		"/zip":       "application/zip\n\x00",
		"/wrong":     "text/html; charset=utf-8\n<p>caf\xe9",
		"/nonsense":  "text/html; charset=nonsense\n<p>caf\xe9",
		"/loop":      "-> /loop",
		"/moved":     "-> /page",
		"/notes.txt": "text/plain\nnote",
	})
	for _, tt := range []struct{ path, want string }{
		{"/page", "page (md): # Hi\n\nA [link](/b)"},
		{"/page#part", "page#part (md): # Hi\n\nA [link](/b)"},
		{"/moved", "moved (md): # Hi\n\nA [link](/b)"},
		{"/raw/a.go", "raw/a.go (go): package a"},
		{"/notes.txt", "notes.txt (txt): note"},
		{"/data", "data (json): {}"},
		{"/pic", "pic error: /pic is not text but image/png"},
		{"/zip", "zip error: /zip is not text but application/zip"},
		{"/wrong", "wrong (md): caf\ufffd"},
		{"/nonsense", "nonsense (md): café"},
		{"/loop", "loop error: fetching /loop: stopped after 10 redirects"},
		{"/gone", "gone error: fetching /gone: 404 Not Found"},
	} {
		got := texts(t, l, server.URL, server.URL+tt.path)
		if len(got) != 1 || strings.ReplaceAll(got[0], server.URL, "") != tt.want {
			t.Errorf("%s: %q, want %q", tt.path, got, tt.want)
		}
	}
	withPassword := strings.Replace(server.URL, "://", "://user:secret@", 1)
	sameList(t, texts(t, l, server.URL, withPassword+"/notes.txt", withPassword+"/gone"), "notes.txt (txt): note", "gone error: fetching /gone: 404 Not Found")
}

func TestCrawl(t *testing.T) {
	t.Parallel()
	l, server, asked := site(t, map[string]string{
		"/docs/":  "<nav>" + links("a", "b.html", "/docs/sub/", "/docs/", "index.html", "//elsewhere.test/docs/x", "/other", "/docs2", "mailto:x@y", "a#part", "a?page=2", "pic.png", "gone", "private/x", "out", "in", "../docs/deep/../a", ":bad:") + "</nav><p>start",
		"/docs/a": "<p>A", "/docs/b.html": "<p>B " + links("c", "a"), "/docs/c": "<p>C", "/docs/sub/": "<p>sub " + links("data.txt", "bin", "x.rtf"),
		"/docs/sub/data.txt": "text/plain\nplain data", "/docs/sub/bin": "application/octet-stream\n\x00", "/docs/sub/x.rtf": "application/rtf\n" + `{\rtf1 rich}`,
		"/docs/private/x": "<p>no", "/docs/out": "-> /other", "/docs/in": "-> /docs/a", "/docs/index.html": "<p>start again",
		"/other": "<p>other", "/docs2": "<p>docs2", "/robots.txt": "text/plain\nUser-agent: *\nDisallow: /\n\nUser-agent: loki\nDisallow: /docs/private/\n",
	})
	got := texts(t, l, server.URL, server.URL+"/docs/**")
	if note := got[len(got)-1]; note != "error: /docs/**: 1 page cannot be read, such as /docs/gone (404 Not Found); 1 redirection cannot be followed out of the site, such as that of /docs/out (to /other)" {
		t.Error(note)
	}
	got = got[:len(got)-1]
	for i := range got {
		got[i] = got[i][:strings.IndexByte(got[i], ')')+1]
	}
	sameList(t, got, "docs/ (md)", "docs/a (md)", "docs/b.html (md)", "docs/sub/ (md)", "docs/c (md)", "docs/sub/data.txt (txt)", "docs/sub/x.rtf (txt)")
	for path, n := range asked() {
		if n > 1 && path != "/docs/a" { // a redirection leads there, too
			t.Errorf("%s was asked for %d times", path, n)
		}
		if strings.Contains(path, "private") || path == "/other" || path == "/docs2" || strings.Contains(path, "?") || strings.Contains(path, ".png") {
			t.Errorf("%s was asked for", path)
		}
	}
}

func TestPagesWithoutTextArePassedOver(t *testing.T) {
	t.Parallel()
	l, server, _ := site(t, map[string]string{
		"/": "<p>start " + links("frame", "blank.txt", "last"), "/frame": "<script>x()</script><nav>" + links("framed") + "</nav>", "/framed": "<p>framed",
		"/blank.txt": "text/plain\n \n", "/last": "<p>last",
	})
	got := texts(t, l, server.URL, server.URL+"/**")
	for i := range got[:1] {
		got[i] = got[i][:strings.IndexByte(got[i], ')')+1]
	}
	sameList(t, got, " (md)", "frame is skipped", "blank.txt is skipped", "last (md): last", "framed (md): framed")
}

func TestCrawlOfOnePageAndBelow(t *testing.T) {
	t.Parallel()
	l, server, _ := site(t, map[string]string{
		"/docs": "<p>" + links("/docs/a", "/docs-old", "/"), "/docs/a": "<p>a", "/docs-old": "<p>old", "/": "<p>home",
		"/guide/index.html": "<p>" + links("a.html", "/docs"), "/guide/a.html": "<p>" + links("index.html"),
		"/moved": "-> /moved/", "/moved/": "<p>" + links("x"), "/moved/x": "<p>x",
	})
	sameList(t, list(t, l, server.URL, server.URL+"/docs**"), "docs", "docs/a")
	sameList(t, list(t, l, server.URL, server.URL+"/guide/index.html**"), "guide/index.html", "guide/a.html")
	sameList(t, list(t, l, server.URL, server.URL+"/moved**"), "moved/", "moved/x")
}

func TestCrawlsThatFail(t *testing.T) {
	t.Parallel()
	l, server, _ := site(t, map[string]string{
		"/robots.txt": "text/plain\nUser-agent: *\nDisallow: /private\n", "/a/": "<p>" + links("broken"), "/away": "-> https://elsewhere.test/", "/private/": "<p>x",
	})
	sameList(t, list(t, l, server.URL, server.URL+"/gone/**", server.URL+"/private/**", server.URL+"/away/**", server.URL+"/away**", "https://**"),
		"error: fetching /gone/: 404 Not Found",
		"error: the robots.txt of "+strings.TrimPrefix(server.URL, "http://")+" does not let programs read /private/",
		"error: fetching /away/: 404 Not Found",
		"error: fetching /away: it redirects to https://elsewhere.test/, which is not below the address",
		"error: https:// is not an address")
}

func TestEndlessSitesAreContained(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		n := strings.Count(r.URL.Path, "x")
		if strings.HasPrefix(r.URL.Path, "/wide") {
			for i := range 100 {
				fmt.Fprintf(w, "<a href=%q>next</a>", fmt.Sprintf("/wide/%d/%d", n, i))
			}
			return
		}
		fmt.Fprintf(w, "<a href=%q>next</a>", r.URL.Path+"x/")
	}))
	t.Cleanup(server.Close)
	l := loaderAt(t.TempDir())
	l.Input.HTTP, l.MaxPages, l.MaxDepth = server.Client(), 40, 7
	for path, want := range map[string]struct {
		pages int
		err   string
	}{"/deep/": {8, "more than 7 links away"}, "/wide/": {40, "it has more than 40 pages"}} {
		pages, last := 0, error(nil)
		for _, err := range l.Documents(t.Context(), []string{server.URL + path + "**"}) {
			if err != nil {
				last = err
				continue
			}
			pages++
		}
		if of, ok := errors.AsType[*source.Error](last); !ok || of.Note != (path == "/deep/") {
			t.Errorf("%s: %+v", path, of)
		}
		if !strings.Contains(fault.HintOf(last), "list the parts of the site") {
			t.Errorf("%s: hint %q", path, fault.HintOf(last))
		}
		if pages != want.pages || fault.CodeOf(last) != fault.Limit || !strings.Contains(fmt.Sprint(last), want.err) {
			t.Errorf("%s: %d pages, %v", path, pages, last)
		}
	}
}

// hostile serves bodies that do not end, or that are larger than they seem.
func hostile(t *testing.T) *httptest.Server {
	t.Helper()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/hang":
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		case "/endless":
			for block := bytes.Repeat([]byte("<p>on and on"), 1000); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for block := make([]byte, 1<<20); ; {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() { close(stop); server.Close() })
	return server
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	server := hostile(t)
	l := loaderAt(t.TempDir())
	l.Input.HTTP = server.Client()
	for _, suffix := range []string{"", "**"} {
		for _, path := range []string{"/endless", "/bomb"} {
			got := texts(t, l, server.URL, server.URL+path+suffix)
			if len(got) != 1 || !strings.Contains(got[0], path+" is larger than 10 MiB") {
				t.Errorf("%q", got)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		for d, err := range l.Documents(ctx, []string{server.URL + "/hang" + suffix}) {
			if err == nil {
				_, err = d.Read(ctx)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
	}
}

// roundTrip is a client without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(r *http.Request, status int, header http.Header, body string) *http.Response {
	recorder := httptest.NewRecorder()
	for k, v := range header {
		recorder.Header()[k] = v
	}
	recorder.WriteHeader(status)
	recorder.WriteString(body)
	resp := recorder.Result()
	resp.Request = r
	return resp
}

func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loaderAt(t.TempDir())
		l.Input.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		sameList(t, texts(t, l, "", "http://x.test/a"), "http://x.test/a error: http://x.test/a did not answer within 16s")
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int32
		html := http.Header{"Content-Type": {"text/html"}}
		l := loaderAt(t.TempDir())
		l.Retry = retry.Policy{Attempts: 3, Backoff: time.Second, Factor: 2, MaxBackoff: 10 * time.Second}
		l.Input.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("User-Agent") != input.DefaultUserAgent {
				t.Errorf("user agent %q", r.Header.Get("User-Agent"))
			}
			switch r.URL.Path {
			case "/robots.txt":
				return response(r, 200, nil, "User-agent: *\nCrawl-delay: 2\n"), nil
			case "/a/busy":
				if refused.Add(1) == 1 {
					return response(r, 429, http.Header{"Retry-After": {"20"}}, ""), nil
				}
			case "/a/never":
				return response(r, 503, nil, ""), nil
			}
			return response(r, 200, html, "<p>"+links("busy", "never")), nil
		})}
		begin := time.Now()
		sameList(t, list(t, l, "http://x.test", "http://x.test/a/**"), "a/", "a/busy", "error: fetching /a/never: 503 Service Unavailable")
		if took := time.Since(begin); took < 22*time.Second || took > 40*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	l, server, asked := site(t, map[string]string{
		"/repos/o/r/branches/main":  `application/json` + "\n" + `{"commit":{"sha":"abc"}}`,
		"/repos/o/r/git/trees/abc":  `application/json` + "\n" + `{"tree":[{"path":"docs/a b.md","type":"blob"},{"path":"docs/CHANGELOG.md","type":"blob"},{"path":"docs/x.go","type":"blob"},{"path":"README.md","type":"blob"},{"path":"docs/B.MD","type":"blob"},{"path":"docs.md","type":"tree"}]}`,
		"/raw/o/r/abc/docs/a b.md":  "text/plain\n# A",
		"/raw/o/r/abc/docs/B.MD":    "text/plain\n# B",
		"/repos/o/r/branches/empty": `application/json` + "\n" + `{}`,
	})
	l.GitHub, l.GitHubRaw = server.URL, server.URL+"/raw"
	const base = "https://github.com/o/r/blob/main"
	sameList(t, texts(t, l, base, "https://github.com/o/r/tree/main/docs/**"), "docs/a%20b.md (md): # A", "docs/B.MD (md): # B")
	if n := asked()["/repos/o/r/git/trees/abc?recursive=1"]; n != 1 {
		t.Errorf("%v", asked())
	}
	sameList(t, list(t, l, server.URL, "https://github.com/o/r/tree/gone**", "https://github.com/o/r/tree/empty**"),
		"error: fetching /repos/o/r/branches/gone: 404 Not Found", "error: fetching /repos/o/r/git/trees/?recursive=1: 404 Not Found")
}

func TestGitHubWiki(t *testing.T) {
	t.Parallel()
	l := loaderAt(t.TempDir())
	l.Input.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/robots.txt" || strings.Contains(r.URL.Path, "_history") {
			return response(r, 404, nil, ""), nil
		}
		return response(r, 200, http.Header{"Content-Type": {"text/html"}}, links("/o/r/wiki/Home", "/o/r/wiki/Home/_history", "/o/r/issues")+`<div>around</div><div id="wiki-body"><h1>Wiki</h1></div>`), nil
	})}
	sameList(t, texts(t, l, "https://github.com/o/r", "https://github.com/o/r/wiki/**"), "wiki/ (md): # Wiki", "wiki/Home (md): # Wiki")
}

func TestLoaders(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it needs printf")
	}
	l := loaderAt(t.TempDir())
	l.Input.Loaders = map[string]string{
		"one": "printf %s $1", "bad": "false",
		"many": `printf '[{"path":"%s/a","contents":"A","metadata":{"__extension__":"go"}},{"path":"b","contents":"B"},{"path":"many:%s/c","contents":"C"}]' $1 $1`,
		"url":  "printf 'page %s' $1", "recursive_url": `printf '[{"path":"%s1","text":"# One"},{"path":"%s2","text":"Two"}]' $1 $1`,
	}
	sameList(t, texts(t, l, "", "one:x y", "many:d", "bad:x", "https://u:p@x.test/p", "https://x.test/s/**"),
		"one:x y (txt): x y", "many:d/a (go): A", "many:d/b (txt): B", "many:d/c (txt): C", "error: bad:x: false failed with exit status 1",
		"https://x.test/p (txt): page https://u:p@x.test/p", "https://x.test/s/1 (md): # One", "https://x.test/s/2 (md): Two")
	l.Input.Loaders["recursive_url"] = "echo nothing"
	if got := texts(t, l, "", "https://x.test/s/**"); len(got) != 1 || !strings.Contains(got[0], "did not print a JSON array of objects with path and text") {
		t.Errorf("%q", got)
	}
}
