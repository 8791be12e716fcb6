package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	socks "golang.org/x/net/proxy"

	"loki/internal/base/web"
)

// Resolver looks names up, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// privateError reports that a host was not connected to since it is at no address of the public internet.
type privateError struct {
	target target
	addr   netip.Addr
}

func (e *privateError) Error() string {
	return fmt.Sprintf("%s is at %s, which is not an address of the public internet: the sandbox allows that only if the address itself is one of its hosts", e.target, e.addr)
}

// transport forwards plain requests, through the user's proxy if there is one for the address.
func (p *Proxy) transport() http.RoundTripper {
	direct := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			t, err := parseTarget(host, port)
			if err != nil {
				return nil, err
			}
			return p.dial(ctx, t)
		},
		// Nothing is kept for the next request, so that nothing is left after Close.
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: idle, MaxResponseHeaderBytes: maxHeader,
	}
	through := direct.Clone()
	through.DialContext = p.o.Dial
	through.TLSHandshakeTimeout = connectTimeout
	through.Proxy = func(r *http.Request) (*url.URL, error) { return p.upstream(r.URL) }
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if proxy, err := p.upstream(r.URL); err != nil || proxy == nil {
			return direct.RoundTrip(r)
		}
		t, err := parseTarget(r.URL.Hostname(), cmp.Or(r.URL.Port(), "80"))
		if err != nil {
			return nil, err
		}
		if _, err := p.lookUp(r.Context(), t); isPrivate(err) {
			return nil, err
		}
		return through.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lookUp returns the addresses of a target that may be connected to, at least one, and a [*privateError] if it has
// others only.
func (p *Proxy) lookUp(ctx context.Context, t target) ([]netip.Addr, error) {
	found := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		if found, err = p.o.Resolver.LookupNetIP(ctx, "ip", t.name); err != nil {
			return nil, err
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var allowed []netip.Addr
	private := &privateError{target: t}
	for _, a := range found {
		a = a.Unmap().WithZone("")
		here := slices.ContainsFunc(own, func(o net.Addr) bool {
			n, err := netip.ParsePrefix(o.String())
			return err == nil && n.Addr().Unmap() == a
		})
		if web.Public(a) && !here || p.hosts.name(a, t.port) || documentation(a) && p.hosts.exactly(t) {
			allowed = append(allowed, a)
		} else {
			private.addr = a
		}
	}
	switch {
	case len(allowed) > 0:
		return allowed, nil
	case private.addr.IsValid():
		return nil, private
	}
	return nil, &net.DNSError{Err: "it has no address", Name: t.name, IsNotFound: true}
}

// documentation reports whether an address is of the networks that RFC 5737 and RFC 3849 set aside for examples. Nothing of
// a user is there, so that nothing is gained by a name that leads to one; networks that are cut off from the
// internet have mirrors of registries there.
func documentation(a netip.Addr) bool {
	return slices.ContainsFunc([]string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"}, func(p string) bool {
		return netip.MustParsePrefix(p).Contains(a)
	})
}

func isPrivate(err error) bool {
	_, ok := errors.AsType[*privateError](err)
	return ok
}

// dial connects to one of the addresses of a target.
func (p *Proxy) dial(ctx context.Context, t target) (net.Conn, error) {
	addrs, err := p.lookUp(ctx, t)
	if err != nil {
		return nil, err
	}
	var first error
	for _, a := range addrs {
		conn, err := p.o.Dial(ctx, "tcp", netip.AddrPortFrom(a, t.port).String())
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// tunnel connects to a target for a CONNECT, through the user's proxy if there is one.
func (p *Proxy) tunnel(ctx context.Context, t target) (net.Conn, error) {
	proxy, err := p.upstream(&url.URL{Scheme: "https", Host: t.String()})
	if err != nil {
		return nil, errors.New("the address in HTTPS_PROXY is not valid")
	}
	if proxy == nil {
		return p.dial(ctx, t)
	}
	if _, err := p.lookUp(ctx, t); isPrivate(err) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*connectTimeout)
	defer cancel()
	if proxy.Scheme == "http" || proxy.Scheme == "https" {
		return p.dialHTTP(ctx, proxy, t)
	}
	dialer, err := socks.FromURL(proxy, dialer(p.o.Dial))
	if err != nil {
		return nil, fmt.Errorf("a proxy of the kind %q is not known", proxy.Scheme)
	}
	return dialer.(socks.ContextDialer).DialContext(ctx, "tcp", t.String())
}

// dialHTTP connects to a target by an HTTP proxy.
func (p *Proxy) dialHTTP(ctx context.Context, proxy *url.URL, t target) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	conn, err := p.o.Dial(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port)))
	if err != nil {
		return nil, err
	}
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname()})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends what waits
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: t.String()}, Host: t.String(), Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	limited := &io.LimitedReader{R: conn, N: maxHeader}
	in := bufio.NewReader(limited)
	err = r.Write(conn)
	var reply *http.Response
	if err == nil {
		reply, err = http.ReadResponse(in, r)
	}
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("the user's proxy answered with status %d", reply.StatusCode)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	limited.N = math.MaxInt64
	return &readConn{Conn: conn, r: in}, nil
}

// dialer is what reaches a proxy of the user.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial implements [socks.Dialer].
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialContext implements [socks.ContextDialer].
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}
