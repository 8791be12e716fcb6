package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/temoto/robotstxt"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
)

const (
	robotsToken   = "loki" // names the program in robots.txt
	atOnce        = 5      // pages that are fetched at the same time
	maxRedirects  = 10
	maxCrawlDelay = 10 * time.Second // between two requests, whatever robots.txt asks for
	maxAddress    = 2000             // bytes of a link that is followed
)

// crawl is the search for the pages of a site.
type crawl struct {
	*search
	pace    pace
	start   *url.URL // pages are below it
	root    string   // the path of start, with a slash at its end
	robots  *robotstxt.Group
	exclude []string // last parts of paths, without extension and in lower case, that are not followed
	extract string   // id of the element with the text; "" for the whole page
	queue   []*visit
	queued  map[string]bool // by path
	full    bool            // pages were left out, since there are too many
	deep    bool            // pages were left out, since they are too many links away
	broken  leftOut         // pages that do not exist, or are not for everyone
	moved   leftOut         // pages that redirect to where the crawl does not go
}

// leftOut counts pages, and describes the first one.
type leftOut struct {
	n     int
	first string
}

func (l *leftOut) add(page string) {
	l.n++
	l.first = cmp.Or(l.first, page)
}

// Hints for limits.
const (
	listParts = "list the parts of the site that matter as sources of their own"
)

// visit is a page to fetch.
type visit struct {
	address *url.URL
	depth   int // links from the start
	done    chan struct{}
	page    *input.Page // once done is closed
	err     error
}

// crawl yields the pages below an address. Pages are fetched several at once, and yielded in the order of
// the links to them.
func (s *search) crawl(ctx context.Context, start string) error {
	if s.Input.HasLoader(siteLoader) {
		return s.loadSite(ctx, start)
	}
	u, err := url.Parse(start)
	if err != nil || u.Host == "" {
		return fault.New(fault.Usage, "%s is not an address", input.WithoutPassword(start))
	}
	u.Fragment, u.RawQuery = "", ""
	c := &crawl{search: s, queued: make(map[string]bool)}
	if strings.EqualFold(u.Host, "github.com") {
		if done, err := c.github(ctx, u); done || err != nil {
			return err
		}
	}
	c.scope(u)
	if err := c.readRobots(ctx); err != nil {
		return err
	}
	c.add(u, 0)
	if len(c.queue) == 0 {
		return fault.New(fault.Refused, "the robots.txt of %s does not let programs read %s", u.Host, u.Path)
	}
	return c.run(ctx)
}

// scope makes the pages at u and below it those of the crawl.
func (c *crawl) scope(u *url.URL) {
	c.start = u
	c.root = u.Path
	switch path.Ext(c.root) {
	case ".html", ".htm", ".php", ".asp", ".aspx", ".jsp", ".md", ".txt": // a page, and not a directory
		c.root = path.Dir(c.root)
	}
	c.root = strings.TrimSuffix(c.root, "/") + "/"
}

// run fetches what is in the queue until it is empty.
func (c *crawl) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var fetches sync.WaitGroup
	defer fetches.Wait()
	defer cancel()
	begun := 0
	for i := 0; i < len(c.queue); i++ {
		for ; begun < min(len(c.queue), i+atOnce); begun++ {
			v := c.queue[begun]
			fetches.Go(func() {
				defer close(v.done)
				v.page, v.err = c.get(ctx, c.client(v), &c.pace, v.address.String())
			})
		}
		v := c.queue[i]
		<-v.done
		c.queue[i] = nil
		if err := c.yieldPage(v, i == 0); err != nil || c.stopped {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	c.conclude()
	return nil
}

// conclude says what the crawl left out.
func (c *crawl) conclude() {
	shown := input.WithoutPassword(c.source)
	if c.full {
		c.fail("", fault.New(fault.Limit, "%s: it has more than %d pages, and the others were left out", shown, c.maxPages()).
			WithHint(listParts))
	}
	if c.deep {
		c.note(fault.New(fault.Limit, "%s: pages that are more than %d links away from the first one were left out", shown, c.maxDepth()).
			WithHint(listParts))
	}
	var what []string
	if c.broken.n > 0 {
		what = append(what, fmt.Sprintf("%s cannot be read, such as %s", text.Count(c.broken.n, "page"), c.broken.first))
	}
	if c.moved.n > 0 {
		what = append(what, fmt.Sprintf("%s cannot be followed out of the site, such as that of %s", text.Count(c.moved.n, "redirection"), c.moved.first))
	}
	if len(what) > 0 {
		c.note(fault.New(fault.NotFound, "%s: %s", shown, strings.Join(what, "; ")))
	}
}

func (c *crawl) maxPages() int { return cmp.Or(c.MaxPages, DefaultMaxPages) }
func (c *crawl) maxDepth() int { return cmp.Or(c.MaxDepth, DefaultMaxDepth) }

// leftError is a redirection to where the crawl does not go.
type leftError struct{ to string }

func (e *leftError) Error() string {
	return "it redirects to " + e.to + ", which is not below the address"
}

// client returns the client for a page: redirections do not lead out of the crawl, except that of the first
// page within its site.
func (c *crawl) client(v *visit) *http.Client {
	client := *cmp.Or(c.Input.HTTP, http.DefaultClient)
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		within := c.covers(req.URL)
		if v.depth == 0 {
			within = req.URL.Hostname() == v.address.Hostname()
		}
		switch {
		case !within:
			return &leftError{input.WithoutPassword(req.URL.String())}
		case len(via) > maxRedirects:
			return errors.New("it redirects too often")
		}
		return nil
	}
	return &client
}

// covers reports whether a page is one of the crawl.
func (c *crawl) covers(u *url.URL) bool {
	return strings.EqualFold(u.Host, c.start.Host) && (strings.HasPrefix(u.Path, c.root) || u.Path+"/" == c.root || u.Path == c.start.Path)
}

// yieldPage yields a page that was fetched, and queues the pages that it links to. The error is one of the
// first page.
func (c *crawl) yieldPage(v *visit, first bool) error {
	var left *leftError
	var status *input.StatusError
	switch err := v.err; {
	case err == nil:
	case first:
		return err
	case errors.As(err, &left):
		c.moved.add(fmt.Sprintf("%s (to %s)", input.WithoutPassword(v.address.String()), left.to))
		return nil
	case errors.As(err, &status) && status.Code >= 300 && status.Code < 500 && status.Code != http.StatusTooManyRequests && status.Code != http.StatusRequestTimeout:
		c.broken.add(fmt.Sprintf("%s (%s)", status.Address, status.Status))
		return nil
	default:
		c.fail(input.WithoutPassword(v.address.String()), err)
		return nil
	}
	final, err := url.Parse(v.page.Address)
	if err != nil {
		return err
	}
	final.Fragment = ""
	if first && final.Path != v.address.Path {
		c.scope(final)
	}
	if key := pageKey(final); key != pageKey(v.address) {
		if c.queued[key] {
			return nil
		}
		c.queued[key] = true
	}
	c.held = len(v.page.Data)
	defer func() { c.held = 0 }()
	if v.page.Ext != "html" {
		content, err := c.pageContent(v.page)
		if err == nil || first {
			c.found(v.page.Address, func(context.Context) (*Content, error) { return content, err })
		}
		return nil
	}
	text, err := v.page.Text()
	if err != nil {
		c.fail(v.page.Address, err)
		return nil
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		c.fail(v.page.Address, err)
		return nil
	}
	c.follow(doc, final, v.depth+1)
	hash, address, extract := hashOf(v.page.Data), v.page.Address, c.extract
	c.found(address, func(context.Context) (*Content, error) {
		return &Content{Hash: hash, text: func(context.Context) (Body, error) {
			return Body{Content: document.Content{Text: document.Markdown(extractElement(doc, text, extract), address), Ext: "md"}}, nil
		}}, nil
	})
	return nil
}

// elements yields the elements of a page in their order.
func elements(doc *html.Node, each func(n *html.Node)) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			each(n)
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// extractElement returns the element with an id as HTML, or text if there is no such element or no id.
func extractElement(doc *html.Node, text, id string) string {
	if id == "" {
		return text
	}
	var out bytes.Buffer
	elements(doc, func(n *html.Node) {
		if out.Len() == 0 && attribute(n, "id") == id {
			if html.Render(&out, n) != nil {
				out.Reset()
			}
		}
	})
	return cmp.Or(out.String(), text)
}

// follow queues the pages that a page links to.
func (c *crawl) follow(doc *html.Node, from *url.URL, depth int) {
	base := from
	elements(doc, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Base:
			if u, err := from.Parse(attribute(n, "href")); err == nil && base == from {
				base = u
			}
		case atom.A:
			href := strings.TrimSpace(attribute(n, "href"))
			if href == "" || len(href) > maxAddress || slices.Contains(strings.Fields(strings.ToLower(attribute(n, "rel"))), "nofollow") {
				return
			}
			if u, err := base.Parse(href); err == nil {
				c.add(u, depth)
			}
		}
	})
}

// pageKey is the same for addresses of the same page.
func pageKey(u *url.URL) string {
	for _, index := range []string{"/index.html", "/index.htm"} {
		if dir, ok := strings.CutSuffix(u.Path, index); ok {
			return dir + "/"
		}
	}
	return cmp.Or(u.Path, "/")
}

// add queues a page unless it was queued before, is not one of the crawl, or may not be read.
func (c *crawl) add(u *url.URL, depth int) {
	if u.Scheme != "http" && u.Scheme != "https" || !c.covers(u) {
		return
	}
	next := *c.start
	next.Path, next.RawPath, next.RawQuery, next.Fragment, next.RawFragment = u.Path, u.RawPath, "", "", ""
	key := pageKey(&next)
	switch {
	case c.queued[key] || c.excluded(next.Path) || isMedia(next.Path):
		return
	case c.robots != nil && !c.robots.Test(next.EscapedPath()):
		return
	case depth > c.maxDepth():
		c.deep = true
		return
	case len(c.queue) >= c.maxPages():
		c.full = true
		return
	}
	c.queued[key] = true
	c.queue = append(c.queue, &visit{address: &next, depth: depth, done: make(chan struct{})})
}

// excluded reports whether the last part of a path is one that is not followed.
func (c *crawl) excluded(p string) bool {
	name := strings.ToLower(path.Base(p))
	return slices.Contains(c.exclude, name) || slices.Contains(c.exclude, strings.TrimSuffix(name, path.Ext(name)))
}

// isMedia reports whether a path is that of a file without text.
func isMedia(p string) bool {
	ext := strings.ToLower(path.Ext(p))
	switch ext {
	case ".css", ".js", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".exe", ".dmg", ".iso", ".deb", ".rpm", ".jar", ".whl":
		return true
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(ext), "/")
	return kind == "image" || kind == "video" || kind == "audio" || kind == "font"
}

// readRobots reads the robots.txt of the site.
func (c *crawl) readRobots(ctx context.Context) error {
	u := *c.start
	u.Path, u.RawPath = "/robots.txt", ""
	p, err := c.get(ctx, nil, &c.pace, u.String())
	if status, ok := errors.AsType[*input.StatusError](err); ok && status.Code >= 400 && status.Code < 500 {
		return nil // all may be read
	}
	if err != nil {
		return err
	}
	robots, err := robotstxt.FromBytes(p.Data)
	if err != nil {
		return nil
	}
	c.robots = robots.FindGroup(robotsToken)
	c.pace.every = min(c.robots.CrawlDelay, maxCrawlDelay)
	return nil
}
