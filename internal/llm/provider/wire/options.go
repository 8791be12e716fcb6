package wire

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Defaults of [Options].
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultReadTimeout    = 5 * time.Minute
)

// Options configures [NewClient]. The zero value of a field is its default.
type Options struct {
	Client string // the client's name in the configuration, for messages

	// Proxy is the URL of a proxy: http, https, socks5 or socks5h. Nil takes it
	// from the usual environment variables; "" and "-" mean none.
	Proxy *string

	ConnectTimeout time.Duration // for connection and TLS handshake each; 0 means DefaultConnectTimeout
	ReadTimeout    time.Duration // longest silence of the server; 0 means DefaultReadTimeout, negative means any

	MaxReply int64 // longest reply in bytes; 0 means 64 MiB, and 256 MiB for embeddings

	UserAgent string // empty leaves it to net/http or the SDK

	// Log gets, at level [logging.LevelTrace], each request as it is sent and the status of its
	// response, with secrets masked, and a warning for each pattern of Patches that is
	// no regular expression. Nil means none.
	Log *slog.Logger

	Patches Patches

	// Credentials says that the client asks for credentials, such as access tokens. Its
	// requests may have the context of the call that needs them, but they are not of that
	// call: no patch applies to them, and the log shows no bodies.
	Credentials bool

	// AnyStatus hands responses of all statuses on as they are, for protocols in which
	// non-2xx responses carry answers.
	AnyStatus bool

	// Transport sends the requests instead of the client's own transport; Proxy and
	// ConnectTimeout then have no effect.
	Transport http.RoundTripper
}

// NewClient returns an HTTP client with connections of its own. Its transport
// patches a request as [WithCall] says, turns every response with another status
// than 2xx into an error that holds a [*provider.Error], and bounds the length of
// bodies and the silence before and in them ([Options.AnyStatus] leaves statuses alone). It is safe for concurrent use. Errors
// have the code [fault.Config].
func NewClient(o Options) (*http.Client, error) {
	t := &transport{
		userAgent: o.UserAgent,
		connect:   cmp.Or(max(o.ConnectTimeout, 0), DefaultConnectTimeout),
		silence:   cmp.Or(max(o.ReadTimeout, 0), DefaultReadTimeout),
		maxReply:  o.MaxReply,
		client:    o.Client,
		log:       o.Log,
		base:      o.Transport,
		anyStatus: o.AnyStatus,

		credentials: o.Credentials,
	}
	if o.ReadTimeout < 0 {
		t.silence = 0
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.rules = compileOnce(o.Patches, o.Client, t.log)
	if t.base == nil {
		base, err := newBase(o.Client, o.Proxy, t.connect)
		if err != nil {
			return nil, err
		}
		t.base = base
	}
	return &http.Client{Transport: t}, nil
}

// newBase returns a transport with connections of its own.
func newBase(client string, proxy *string, connect time.Duration) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 16, // graph nodes ask the same server side by side
		IdleConnTimeout:     90 * time.Second,
	}
	var err error
	t.Proxy, err = Proxy(client, proxy)
	return t, err
}

// Proxy returns the field of that name for a transport, as [Options.Proxy] says. Errors
// have the code [fault.Config].
func Proxy(client string, proxy *string) (func(*http.Request) (*url.URL, error), error) {
	switch {
	case proxy == nil:
		return EnvironmentProxy, environmentProxy().err
	case *proxy == "" || *proxy == "-":
		return nil, nil
	}
	u, err := url.Parse(*proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, configError("the proxy of client %q is not an http, https or socks5 URL", client).
			WithHint(`set extra.proxy to a URL such as socks5://127.0.0.1:1080, or to "-" for no proxy`)
	}
	return http.ProxyURL(u), nil
}

// EnvironmentProxy returns the proxy that the environment names for a request, nil for none, and for this machine: HTTP_PROXY or
// HTTPS_PROXY, else ALL_PROXY, in capitals or not, except for the hosts in NO_PROXY. The environment is read once. The error
// names a variable that is not the address of a proxy, and has the code [fault.Config].
func EnvironmentProxy(r *http.Request) (*url.URL, error) {
	p := environmentProxy()
	if p.err != nil {
		return nil, p.err
	}
	return p.find(r.URL)
}

// proxies are those of the environment.
type proxies struct {
	find func(*url.URL) (*url.URL, error)
	err  error
}

var environmentProxy = sync.OnceValue(func() proxies {
	var p proxies
	get := func(name string) string {
		for _, name := range []string{name, strings.ToLower(name)} {
			if text := os.Getenv(name); text != "" {
				if !isProxy(text) && p.err == nil {
					p.err = configError("the environment variable %s is not the address of a proxy", name).
						WithHint("set it to HOST:PORT or a URL such as socks5://127.0.0.1:1080, or unset it")
				}
				return text
			}
		}
		return ""
	}
	c := httpproxy.FromEnvironment() // for NO_PROXY, and whether this is a CGI program
	all := get("ALL_PROXY")
	if c.HTTPProxy = cmp.Or(get("HTTP_PROXY"), all); c.CGI {
		c.HTTPProxy = all
	}
	c.HTTPSProxy = cmp.Or(get("HTTPS_PROXY"), all)
	p.find = c.ProxyFunc()
	return p
})

// isProxy reports whether text is HOST[:PORT], or a URL with a scheme of proxies.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		u, err = url.Parse("http://" + text)
	}
	return err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}

// BaseURL returns base, the URL that a client's paths are appended to, without
// slashes at its end. If it is missing, malformed or holds a {PLACEHOLDER} the
// error has the code [fault.Config]; example is a URL that its hint shows.
func BaseURL(client, base, example string) (string, error) {
	base = strings.TrimRight(strings.TrimSpace(base), "/")
	bad := func(format string, args ...any) (string, error) {
		return "", configError(format, args...).
			WithHint("set api_base of client %q in the configuration, for example %s", client, example)
	}
	if base == "" {
		return bad("client %q has no api_base", client)
	}
	if _, rest, ok := strings.Cut(base, "{"); ok {
		name, _, _ := strings.Cut(rest, "}")
		return bad("api_base of client %q still holds the placeholder {%s}", client, name)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return bad("api_base of client %q is not an http or https URL", client)
	}
	return base, nil
}
