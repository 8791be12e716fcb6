// Package proxy lets the children of a sandbox reach the hosts that are declared, and no others.
//
// A [Proxy] is an HTTP proxy: a client asks it to CONNECT to a host, or sends it requests with whole addresses. The host
// of the CONNECT, or of the address, decides; what a client says within a tunnel, such as another name in its TLS
// greeting, is between it and the host that it has reached, and a Host header that differs from the address is replaced.
//
// A pattern of hosts is example.com, *.example.com for all below it, or an address of IPv4. Behind a colon it has the port that
// it allows; without one it allows ports 80 and 443.
//
// A name proves nothing about where it leads: its owner can have it point into the user's network. So a host is looked up once,
// and only those of its addresses are connected to that are of the public internet and not of this machine, or that a pattern
// names: 10.0.0.7, or localhost for the loopback addresses. The networks for examples, such as 203.0.113.0/24, where nothing of a user is, count as
// public for a host whose very name is a pattern.
//
// The user's own proxies (HTTP_PROXY, HTTPS_PROXY, NO_PROXY) are used where they are set. They look names up
// themselves, so a host is looked up beforehand, too, and not asked for if it is known to be private.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/web"
)

const (
	maxRequests    = 256              // that are served at once, tunnels too; more wait
	maxHeader      = 64 << 10         // bytes of the header of a request or a reply
	headerTimeout  = 10 * time.Second // for the header of a request
	keepAlive      = time.Minute      // until the next request of a connection
	idle           = 5 * time.Minute  // until a tunnel is closed in which nothing is said, or a reply is given up that has not begun
	connectTimeout = 10 * time.Second // for each address
	maxRefused     = 100              // hosts that are remembered
)

// Options configure New. The zero value of a field is its default.
type Options struct {
	// Hosts are patterns of the hosts that may be reached; nil means none.
	Hosts []string
	// Getenv returns a variable of the user's environment, of which those for proxies are used; nil means that there is none.
	Getenv func(name string) string
	// Resolver looks names up; nil means net.DefaultResolver.
	Resolver Resolver
	// Dial connects to an address, or to a proxy of the user; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy serves the clients of one sandbox. It may be used from several goroutines.
type Proxy struct {
	o        Options
	hosts    hosts
	upstream func(*url.URL) (*url.URL, error) // the user's proxy for an address, nil for none

	server  *http.Server
	forward *httputil.ReverseProxy
	ctx     context.Context // ends by Close; of dials and tunnels
	stop    context.CancelFunc
	work    sync.WaitGroup // the connections, the tunnels and what accepts connections
	slots   chan struct{}  // has one for each request that is served

	mu      sync.Mutex
	refused []string
}

// New returns a Proxy, which starts nothing before Serve.
func New(o Options) *Proxy {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	p := &Proxy{o: o, hosts: parseHosts(o.Hosts), upstream: web.Proxy(o.Getenv), slots: make(chan struct{}, maxRequests)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.handle), ConnState: p.count, ErrorLog: quiet,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAlive, MaxHeaderBytes: maxHeader,
		BaseContext:                  func(net.Listener) context.Context { return p.ctx },
		DisableGeneralOptionsHandler: true,
	}
	p.forward = &httputil.ReverseProxy{
		Transport: p.transport(), ErrorLog: quiet, ErrorHandler: p.fail, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host, r.Out.URL.RawQuery = r.Out.URL.Host, r.In.URL.RawQuery
		},
	}
	return p
}

// Serve serves the clients that come to l, from goroutines that Close waits for. It returns at once. l belongs to the Proxy.
func (p *Proxy) Serve(l net.Listener) {
	p.work.Go(func() {
		_ = p.server.Serve(l) // ends by Close, or since the listener is broken
	})
}

// Close ends all connections and returns when nothing of the Proxy runs any more. What is closed stays closed.
func (p *Proxy) Close() {
	p.stop()
	_ = p.server.Close() // of connections that are given up
	p.work.Wait()
}

// RefusedHosts returns what was asked for and not allowed, as host:port, in the order of the first time. Of more
// than 100, the first are kept.
func (p *Proxy) RefusedHosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

func (p *Proxy) refuse(at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) < maxRefused && !slices.Contains(p.refused, at) {
		p.refused = append(p.refused, at)
	}
}

// count has Close wait for connections. The first state of one comes before Serve can return, the last one when its
// goroutine ends, or when a tunnel, which is in a handler, takes it over.
func (p *Proxy) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.work.Add(1)
	case http.StateClosed, http.StateHijacked:
		p.work.Done()
	}
}

// handle serves one request.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	p.work.Add(1) // the connection is counted until a tunnel takes it over
	defer p.work.Done()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-r.Context().Done():
		return
	}
	t, err := targetOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !p.hosts.allow(t) {
		p.refuse(t.String())
		http.Error(w, fmt.Sprintf("%s is not one of the hosts that the sandbox allows", t), http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.connect(w, r, t)
		return
	}
	r.URL.Host = t.String()
	if t.port == 80 { // as clients write it, for hosts that compare
		r.URL.Host = t.name
	}
	p.forward.ServeHTTP(w, r)
}

// fail answers a request whose host could not be reached.
func (p *Proxy) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if e, ok := errors.AsType[*privateError](err); ok {
		p.refuse(e.target.String())
		http.Error(w, e.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "the sandbox allows this host, but it was not reached: "+reason(err), http.StatusBadGateway)
}

// reason returns a cause without the address of the user's proxy, which can hold a password.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name was not found: " + e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err.Error()
	}
	return strings.ToValidUTF8(err.Error(), "?")
}
