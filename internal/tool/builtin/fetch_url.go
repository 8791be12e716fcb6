package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"loki/internal/base/document"
	"loki/internal/base/web"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
)

// Limits of a page.
const (
	fetchTimeout = 60 * time.Second
	maxPage      = 10 << 20 // bytes
)

type urlArgs struct {
	URL string `json:"url"`
}

// address checks the address of a page.
func address(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the url is malformed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("only http and https addresses can be fetched, not %s", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the url has no host")
	}
	return u, nil
}

// fetcher is a native tool that fetches what is at an address.
type fetcher struct {
	native
	never func(host string) bool // reports whether no request to a host is ever made
}

var _ tool.Reacher = (*fetcher)(nil)

// Host implements [tool.Reacher].
func (f *fetcher) Host(call tool.Call) string {
	if host := f.hostOf(call); !f.never(host) {
		return host
	}
	return ""
}

// hostOf returns the host that a call names, empty without one.
func (f *fetcher) hostOf(call tool.Call) string {
	args, err := arguments[urlArgs](call, f.params)
	if err != nil {
		return ""
	}
	u, err := address(args.URL)
	if err != nil {
		return ""
	}
	return hostOf(u)
}

// hostOf returns the host of an address in the form that users are asked about.
func hostOf(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

// elsewhereError reports a redirect to a host that the user was not asked about.
type elsewhereError struct{ to *url.URL }

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("it redirects to %s, which is on another host and was not fetched. Fetch that address if you need it", e.to.Redacted())
}

// stay returns the check of redirects that stays on the host of an address. A www. before its name makes no difference.
func stay(at *url.URL, next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	bare := func(u *url.URL) string { return strings.TrimPrefix(hostOf(u), "www.") }
	return func(req *http.Request, via []*http.Request) error {
		if (req.URL.Scheme == "http" || req.URL.Scheme == "https") && bare(req.URL) != bare(at) {
			return &elsewhereError{req.URL}
		}
		return next(req, via)
	}
}

// newFetcher returns the tool that fetches pages by fetch.
func newFetcher(name, description string, never func(host string) bool, fetch func(context.Context, *url.URL) (string, error)) tool.Tool {
	params := []param{{name: "url", kind: "string", description: "The address of the page, with http or https."}}
	return &fetcher{native{
		name: name, description: description, params: params, hints: tool.Hints{ReadOnly: true, Timeout: fetchTimeout},
		run: function(params, func(ctx context.Context, args urlArgs, _ tool.Call) (string, error) {
			u, err := address(args.URL)
			if err != nil {
				return "", err
			}
			return fetch(ctx, u)
		}),
	}, never}
}

func (b *base) fetchURLViaCurl() tool.Tool {
	const description = "Fetch a page or text file from the web. Web pages are returned as Markdown without pictures."
	never := func(host string) bool { return b.allowedAddresses().Never(host) }
	return newFetcher("fetch_url_via_curl", description, never, func(ctx context.Context, u *url.URL) (string, error) {
		text, err := b.fetch(ctx, u)
		if err != nil && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("fetching %s: %w", u.Redacted(), web.Reason(err))
		}
		return text, nil
	})
}

// allowedAddresses returns the private addresses that may be fetched.
func (b *base) allowedAddresses() web.Allowed { return web.ParseAllowed(b.Getenv("LOKI_FETCH_ALLOW")) }

// fetch gets a page as text.
func (b *base) fetch(ctx context.Context, u *url.URL) (string, error) {
	client := web.New(b.Getenv, b.allowedAddresses())
	defer client.CloseIdleConnections()
	client.CheckRedirect = stay(u, client.CheckRedirect)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return "", errors.New(resp.Status)
	}
	data, err := web.ReadAll(resp.Body, maxPage)
	if err != nil {
		return "", err
	}
	declared := cmp.Or(resp.Header.Get("Content-Type"), http.DetectContentType(data))
	kind, params, _ := mime.ParseMediaType(declared)
	if !fsys.IsText(data) && !strings.HasPrefix(kind, "text/") || strings.ContainsRune(string(data[:min(len(data), 512)]), 0) {
		return "", fmt.Errorf("it is not text but %s of %d bytes", kind, len(data))
	}
	text, ok := document.DecodePage(data, params["charset"])
	if !ok {
		text = strings.ToValidUTF8(string(data), "\uFFFD")
	}
	if kind != "text/html" && kind != "application/xhtml+xml" {
		return text, nil
	}
	return web.Tidy(document.Markdown(web.WithoutMedia(text), resp.Request.URL.String())), nil
}

func (b *base) fetchURLViaJina() tool.Tool {
	const description = "Fetch a page from the web through the Jina reader, which also runs the scripts of the page, and return its content as Markdown."
	never := func(string) bool { return false }
	return newFetcher("fetch_url_via_jina", description, never, func(ctx context.Context, u *url.URL) (string, error) {
		r := request{service: "Jina", url: cmp.Or(b.Services.Jina, "https://r.jina.ai") + "/" + u.String(), header: map[string]string{}}
		if key := b.Getenv("JINA_API_KEY"); key != "" {
			r.header["Authorization"], r.secrets = "Bearer "+key, []string{key}
		}
		data, err := b.do(ctx, r)
		return string(data), err
	})
}
