// Package web fetches pages that a model names, and talks to services.
//
// A private address is one outside of the public internet: loopback, link-local (where
// clouds keep their metadata), the private networks, and reserved ones. A hostile text
// could make a model fetch what only this machine can reach. So a client made by [New]
// refuses private addresses unless they are allowed. It checks the address when the
// connection is made, so that no name and no redirect circumvents the check.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	connectTimeout = 10 * time.Second
	maxRedirects   = 10
)

// PrivateError reports that no connection was made because the address is
// private.
type PrivateError struct{ Host, Addr string }

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is at %s, which is not an address of the public internet, so nothing was fetched. The user can allow it with LOKI_FETCH_ALLOW=%s", e.Host, e.Addr, e.Host)
}

// UnknownError reports that a proxy was not asked for an address because it is not known here which one that is.
type UnknownError struct{ Host string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the address of %s is not known here, and a proxy could take it for one that is not of the public internet, so nothing was fetched. The user can allow it with LOKI_FETCH_ALLOW=%s", e.Host, e.Host)
}

// Allowed are the hosts and networks that may be connected to although they are private.
type Allowed struct {
	all   bool
	hosts []string
	nets  []netip.Prefix
}

// ParseAllowed reads a list with commas or blanks of host names, addresses and networks
// (10.0.0.0/8), or "*" for everything. Any other text is a host name.
func ParseAllowed(list string) Allowed {
	var a Allowed
	for entry := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if entry == "*" {
			a.all = true
		} else if p, err := netip.ParsePrefix(entry); err == nil {
			a.nets = append(a.nets, p.Masked())
		} else if ip, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
			a.nets = append(a.nets, netip.PrefixFrom(ip.Unmap().WithZone(""), ip.Unmap().BitLen()))
		} else {
			a.hosts = append(a.hosts, strings.ToLower(strings.TrimSuffix(entry, ".")))
		}
	}
	return a
}

func (a Allowed) host(name string) bool {
	return a.all || slices.Contains(a.hosts, strings.ToLower(strings.TrimSuffix(name, ".")))
}

func (a Allowed) addr(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return a.all || Public(ip) || slices.ContainsFunc(a.nets, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Never reports whether requests to a host are refused whatever it resolves to: it is written as an address, or as localhost, and is neither
// public nor allowed.
func (a Allowed) Never(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if a.host(name) {
		return false
	}
	ip, err := netip.ParseAddr(name)
	if err == nil {
		return !a.addr(ip)
	}
	return (name == "localhost" || strings.HasSuffix(name, ".localhost")) && !a.addr(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && !a.addr(netip.IPv6Loopback())
}

// reserved are the networks for which [netip.Addr] has no method: shared address space,
// the special ones of RFC 6890, and the ones of IPv6 that contain an address of IPv4.
var reserved = sync.OnceValue(func() []netip.Prefix {
	var list []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "::/96",
	} {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
})

// Public reports whether an address is one of the public internet.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(reserved(), func(p netip.Prefix) bool { return p.Contains(ip) })
}

// New returns a client for the addresses that a model names: http and https only, no
// private addresses except allowed ones, at most ten redirects, no cookies. Its proxies
// are the ones that getenv returns (HTTP_PROXY and so on). A proxy looks names up itself;
// the client looks them up beforehand too, and refuses private addresses and names that it does not find.
func New(getenv func(string) string, allowed Allowed) *http.Client {
	g := &guard{allowed: allowed, proxy: Proxy(getenv)}
	direct := transport()
	direct.DialContext = g.dial
	g.direct = direct
	through := transport()
	through.Proxy = func(r *http.Request) (*url.URL, error) { return g.proxy(r.URL) }
	g.through = through
	return &http.Client{Transport: g, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

// Transport returns a transport to services, with the proxies that getenv
// returns.
func Transport(getenv func(string) string) http.RoundTripper {
	t, proxy := transport(), Proxy(getenv)
	t.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	return t
}

// Proxy returns the function that finds the proxy for an address, nil for none.
func Proxy(getenv func(string) string) func(*url.URL) (*url.URL, error) {
	either := func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return getenv(strings.ToLower(name))
	}
	all := either("ALL_PROXY")
	c := httpproxy.Config{HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY")}
	return c.ProxyFunc()
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    connectTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           8,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// guard sends requests to allowed addresses only.
type guard struct {
	allowed         Allowed
	proxy           func(*url.URL) (*url.URL, error)
	direct, through http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. It sees each redirect.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, fmt.Errorf("only http and https addresses can be fetched, not %s", req.URL.Scheme)
	}
	proxy, err := g.proxy(req.URL)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return g.direct.RoundTrip(req)
	}
	if err := g.lookUp(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	return g.through.RoundTrip(req)
}

// lookUp returns an error unless a host is known to be at public addresses only. Another name may mean a private address to
// the proxy, as may a number such as 2130706433.
func (g *guard) lookUp(ctx context.Context, host string) error {
	if g.allowed.host(host) {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return cmp.Or(ctx.Err(), error(&UnknownError{Host: host}))
	}
	for _, ip := range ips {
		if !g.allowed.addr(ip) {
			return &PrivateError{Host: host, Addr: ip.Unmap().String()}
		}
	}
	return nil
}

// dial connects to a host, and checks each address that it tries.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTimeout}
	if !g.allowed.host(host) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if !g.allowed.addr(at.Addr()) {
				return &PrivateError{Host: host, Addr: at.Addr().Unmap().String()}
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, address)
}

// ErrTooLarge reports that a reply is larger than the limit.
var ErrTooLarge = errors.New("the reply is too large")

// ReadAll reads a reply of at most limit bytes.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return data, err
}

// Reason returns an error of a request with a text for a model. It leaves out the
// address, which can hold a key.
func Reason(err error) error {
	if e, ok := errors.AsType[*PrivateError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*UnknownError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
