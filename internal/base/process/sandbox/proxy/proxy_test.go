package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/process/sandbox/proxy"
)

// names is a resolver of a few names.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, a := range n[host] {
		list = append(list, netip.MustParseAddr(a))
	}
	if list == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return list, nil
}

// internet are public addresses that are this machine in the tests.
var internet = names{
	"example.com": {"93.184.215.14"}, "a.example.com": {"93.184.215.15"}, "b.a.example.com": {"2606:2800:21f:cb07:6820:80da:af6b:8b2c"},
	"rebound.example.com": {"127.0.0.1"}, "half.example.com": {"10.0.0.7", "93.184.215.16"}, "meta.example.com": {"169.254.169.254"},
	"mapped.example.com": {"::ffff:127.0.0.1"}, "nat64.example.com": {"64:ff9b::7f00:1"}, "zero.example.com": {"0.0.0.0"}, "ten.example.com": {"10.0.0.7"},
	"mirror.example.com": {"203.0.113.80"}, "mirror6.example.com": {"2001:db8::80"}, "bench.example.com": {"198.18.0.1"},
	"localhost": {"127.0.0.1"}, "other.org": {"93.184.215.99"},
}

// world runs a proxy before servers that stand for the internet.
type world struct {
	proxy  *proxy.Proxy
	addr   string
	dialed func() []string
}

// newWorld starts a proxy that connects to the server at to, whatever the address.
func newWorld(t *testing.T, to string, o proxy.Options) *world {
	t.Helper()
	dialed := make(chan string, 1000)
	o.Resolver = internet
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed <- address
			return (&net.Dialer{}).DialContext(ctx, network, to)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{proxy: proxy.New(o), addr: l.Addr().String(), dialed: func() (list []string) {
		for len(dialed) > 0 {
			list = append(list, <-dialed)
		}
		return list
	}}
	w.proxy.Serve(l)
	t.Cleanup(w.proxy.Close)
	return w
}

// ask sends raw bytes to the proxy and returns the status line of the reply.
func (w *world) ask(t *testing.T, raw string) string {
	t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, raw); err != nil {
		return ""
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

func echo(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "host=%s uri=%s proxy-authorization=%q body=%s", r.Host, r.RequestURI, r.Header.Get("Proxy-Authorization"), body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestWhatIsAllowed(t *testing.T) {
	t.Parallel()
	to := echo(t).Listener.Addr().String()
	for _, tt := range []struct {
		name, hosts, ask string
		dialed           string // empty if it is refused
	}{
		{"exact", "example.com", "example.com:443", "93.184.215.14:443"},
		{"exact_80", "example.com", "example.com:80", "93.184.215.14:80"},
		{"case", "Example.COM", "eXample.com:443", "93.184.215.14:443"},
		{"dot", "example.com", "example.com.:443", "93.184.215.14:443"},
		{"below_exact", "example.com", "a.example.com:443", ""},
		{"above", "a.example.com", "example.com:443", ""},
		{"below", "*.example.com", "a.example.com:443", "93.184.215.15:443"},
		{"below_two", "*.example.com", "b.a.example.com:443", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443"},
		{"not_itself", "*.example.com", "example.com:443", ""},
		{"suffix", "*.example.com", "evilexample.com:443", ""},
		{"other_port", "example.com", "example.com:22", ""},
		{"port", "example.com:22", "example.com:22", "93.184.215.14:22"},
		{"port_only", "example.com:22", "example.com:443", ""},
		{"below_port", "*.example.com:8443", "a.example.com:8443", "93.184.215.15:8443"},
		{"address", "93.184.215.14", "93.184.215.14:443", "93.184.215.14:443"},
		{"address_of_a_name", "example.com", "93.184.215.14:443", ""},
		{"rebound", "*.example.com", "rebound.example.com:443", ""},
		{"rebound_exact", "rebound.example.com", "rebound.example.com:443", ""},
		{"metadata", "*.example.com", "meta.example.com:80", ""},
		{"mapped", "*.example.com", "mapped.example.com:80", ""},
		{"nat64", "*.example.com", "nat64.example.com:80", ""},
		{"network_for_examples", "mirror.example.com", "mirror.example.com:443", "203.0.113.80:443"},
		{"network_for_examples_6", "mirror6.example.com", "mirror6.example.com:443", "[2001:db8::80]:443"},
		{"network_for_examples_not_named", "*.example.com", "mirror.example.com:443", ""},
		{"network_for_examples_literal", "mirror.example.com", "203.0.113.80:443", ""},
		{"network_for_benchmarks", "bench.example.com", "bench.example.com:443", ""},
		{"zero", "*.example.com", "zero.example.com:80", ""},
		{"half", "*.example.com", "half.example.com:80", "93.184.215.16:80"},
		{"private_named", "*.example.com 10.0.0.7", "ten.example.com:80", "10.0.0.7:80"},
		{"private_named_other_port", "*.example.com 10.0.0.7:443", "ten.example.com:80", ""},
		{"private_literal", "10.0.0.7", "10.0.0.7:80", "10.0.0.7:80"},
		{"loopback_literal", "*.example.com", "127.0.0.1:80", ""},
		{"loopback_6", "*.example.com", "[::1]:80", ""},
		{"loopback_mapped", "*.example.com", "[::ffff:127.0.0.1]:80", ""},
		{"localhost_named", "localhost:8080", "localhost:8080", "127.0.0.1:8080"},
		{"localhost_port", "localhost:8080", "localhost:80", ""},
		{"localhost_rebound", "localhost *.example.com", "rebound.example.com:80", "127.0.0.1:80"},
		{"nothing", "", "example.com:443", ""},
		{"no_such_name", "*.example.com", "gone.example.com:443", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, to, proxy.Options{Hosts: strings.Fields(tt.hosts)})
			status := w.ask(t, "CONNECT "+tt.ask+" HTTP/1.1\r\nHost: "+tt.ask+"\r\n\r\n")
			var want []string
			if tt.dialed != "" {
				want = []string{tt.dialed}
			}
			if d := cmp.Diff(want, w.dialed()); d != "" {
				t.Errorf("dialed (-want +got):\n%s", d)
			}
			if ok := strings.HasPrefix(status, "HTTP/1.1 200"); ok != (tt.dialed != "") {
				t.Errorf("the answer is %q", status)
			}
			refused := w.proxy.RefusedHosts()
			if ok := len(refused) == 0; ok != (tt.dialed != "" || tt.name == "no_such_name") {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echo(t).Listener.Addr().String(), proxy.Options{Hosts: []string{"example.com", "*.example.com", "*.1"}})
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET /http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http:///etc/passwd HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http:example.com HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com@other.org/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://other.org#@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://other.org\\.example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://other.org%2eexample.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://other.org%00.example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://[::ffff:7f00:1]/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://127.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://127.0.0.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://0x7f.0.0.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://2130706433/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://0177.0.0.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://１２７.0.0.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com:0/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com:65616/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com:+80/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT / HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT example.com HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT example.com:443/x HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT example.com:443?x HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT example.com@other.org:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT other.org:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT other.org:443@example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT http://example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT example.com:443 example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT [example.com]:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"\x05\x01\x00\r\n\r\n",
		"\r\n\r\nx\r\n\r\n",
	} {
		status := w.ask(t, raw)
		if dialed := w.dialed(); len(dialed) > 0 || !strings.HasPrefix(status, "HTTP/1.1 4") {
			t.Errorf("%.80q: %s, dialed %q", raw, status, dialed)
		}
	}
}

// A request within the body of another one is checked, too.
func TestSmuggled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echo(t).Listener.Addr().String(), proxy.Options{Hosts: []string{"example.com"}})
	w.ask(t, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://other.org/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
	if d := cmp.Diff([]string{"93.184.215.14:80"}, w.dialed()); d != "" {
		t.Error(d)
	}
}

// A Host header that differs from the address does not reach the host, nor does the child's name for itself.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echo(t).Listener.Addr().String(), proxy.Options{Hosts: []string{"example.com"}})
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST http://example.com/a?b;c=%zz HTTP/1.1\r\nHost: other.org\r\nProxy-Authorization: Basic eDp5\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if want := `host=example.com uri=/a?b;c=%zz proxy-authorization="" body=hi`; err != nil || string(body) != want {
		t.Errorf("%v\n got %s\nwant %s", err, body, want)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", proxy.Options{Hosts: []string{"*.example.com"}})
	for _, at := range []string{"b.org:443", "A.org:443", "a.org:443", "rebound.example.com:443", "b.org:443"} {
		w.ask(t, "CONNECT "+at+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	w.ask(t, "GET http://c.org/ HTTP/1.1\r\nHost: x\r\n\r\n")
	if d := cmp.Diff([]string{"b.org:443", "a.org:443", "rebound.example.com:443", "c.org:80"}, w.proxy.RefusedHosts()); d != "" {
		t.Error(d)
	}
	for i := range 200 {
		w.ask(t, fmt.Sprintf("CONNECT h%d.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", i))
	}
	if n := len(w.proxy.RefusedHosts()); n != 100 {
		t.Errorf("%d hosts are remembered", n)
	}
}

// The address of this machine in its network is not of the internet to its children.
func TestOwnAddress(t *testing.T) {
	t.Parallel()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		ip := netip.MustParsePrefix(a.String()).Addr()
		at := netip.AddrPortFrom(ip.WithZone(""), 80).String()
		w := newWorld(t, "", proxy.Options{Hosts: []string{"*.example.com"}})
		if status := w.ask(t, "CONNECT "+at+" HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(status, "403") {
			t.Errorf("%s: %s", at, status)
		}
	}
}

// Both sides talk through a tunnel, and each can end its part.
func TestTunnel(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the test: by l.Close, or the end of what the client says
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "heard %s", said)
	}()
	w := newWorld(t, l.Addr().String(), proxy.Options{Hosts: []string{"example.com"}})
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\nearly ") // with what follows in one packet
	in := bufio.NewReader(conn)
	reply, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatal(reply, err)
	}
	fmt.Fprint(conn, "and late")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(in); err != nil || string(got) != "heard early and late" {
		t.Errorf("%q, %v", got, err)
	}
}

// Close ends tunnels, requests that are under way and clients that say nothing, and waits for what served them.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		hang <- struct{}{}
		<-r.Context().Done()
	}))
	w := newWorld(t, s.Listener.Addr().String(), proxy.Options{Hosts: []string{"example.com"}})
	var conns []net.Conn
	for range 10 {
		for _, raw := range []string{"", "CONN", "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n"} {
			conn, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			fmt.Fprint(conn, raw)
			if strings.HasPrefix(raw, "GET") {
				<-hang
			} else if strings.HasPrefix(raw, "CONNECT") {
				_, _ = conn.Read(make([]byte, 10))
			}
		}
	}
	w.proxy.Close()
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Error("a connection is still open after Close")
		}
		conn.Close()
	}
	if _, err := net.Dial("tcp", w.addr); err == nil {
		t.Error("the listener is still open after Close")
	}
	s.Close()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	}
	w.proxy.Close() // again
	proxy.New(proxy.Options{}).Close()
}

// pipes is a listener of pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that says nothing, and a tunnel in which nothing is said, are closed after a while.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, far := net.Pipe()
		p := proxy.New(proxy.Options{
			Hosts: []string{"example.com"}, Resolver: internet,
			Dial: func(context.Context, string, string) (net.Conn, error) { return far, nil },
		})
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		p.Serve(l)
		defer p.Close()
		dumb, near := net.Pipe()
		l.conns <- near
		began := time.Now()
		_, _ = io.Copy(io.Discard, dumb)
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("a client without a request was closed after %v", d)
		}
		client, near := net.Pipe()
		l.conns <- near
		fmt.Fprint(client, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		in := bufio.NewReader(client)
		if _, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect}); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		for range 3 {
			time.Sleep(4 * time.Minute)
			fmt.Fprint(client, "x")
			if _, err := host.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = io.Copy(io.Discard, in)
		if d := time.Since(began); d != 17*time.Minute {
			t.Errorf("a silent tunnel was closed after %v", d)
		}
	})
}

// The user's own proxy is asked for what is allowed, and gets the password of the user, which no client sees.
func TestUpstream(t *testing.T) {
	t.Parallel()
	var asked []string
	heard := make(chan string, 100)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization")
		if r.Method == http.MethodConnect {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\nhello")
			return
		}
		fmt.Fprint(w, "forwarded")
	}))
	defer up.Close()
	env := map[string]string{
		"https_proxy": "http://user:secret@" + up.Listener.Addr().String(), "HTTP_PROXY": "http://user:secret@" + up.Listener.Addr().String(),
		"NO_PROXY": "a.example.com",
	}
	w := newWorld(t, "127.0.0.1:1", proxy.Options{
		Hosts: []string{"example.com", "*.example.com", "unknown.net"}, Getenv: func(name string) string { return env[name] },
		Dial: (&net.Dialer{}).DialContext,
	})
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}), DisableKeepAlives: true}}
	for _, at := range []string{"http://example.com/x", "http://unknown.net/y", "http://rebound.example.com/", "http://other.org/"} {
		reply, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		asked = append(asked, fmt.Sprint(reply.StatusCode, " ", strings.Contains(string(body), "secret")))
	}
	if d := cmp.Diff([]string{"200 false", "200 false", "403 false", "403 false"}, asked); d != "" {
		t.Error(d)
	}
	for _, at := range []string{"example.com:443", "rebound.example.com:443", "other.org:443"} {
		w.ask(t, "CONNECT "+at+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	close(heard)
	var got []string
	for h := range heard {
		got = append(got, h)
	}
	if d := cmp.Diff([]string{
		"GET http://example.com/x Basic dXNlcjpzZWNyZXQ=", "GET http://unknown.net/y Basic dXNlcjpzZWNyZXQ=", "CONNECT example.com:443 Basic dXNlcjpzZWNyZXQ=",
	}, got); d != "" {
		t.Error(d)
	}
}

// What an upstream proxy says behind its answer belongs to the tunnel.
func TestUpstreamTunnel(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 407 No\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends after one client
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, answer)
		}()
		w := newWorld(t, l.Addr().String(), proxy.Options{
			Hosts: []string{"example.com"}, Getenv: func(string) string { return "http://10.0.0.1:3128" },
		})
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		got, _ := io.ReadAll(conn)
		if ok := strings.HasSuffix(answer, "hello"); ok != strings.HasSuffix(string(got), "\r\n\r\nhello") || !ok && !strings.HasPrefix(string(got), "HTTP/1.1 502") {
			t.Errorf("%.40q: %q", answer, got)
		}
		if d := cmp.Diff([]string{"10.0.0.1:3128"}, w.dialed()); d != "" {
			t.Error(d)
		}
		conn.Close()
		l.Close()
	}
}

// Programs that children run find what they may reach, by their usual variables.
func TestClients(t *testing.T) {
	t.Parallel()
	plain := echo(t)
	secure := httptest.NewTLSServer(plain.Config.Handler)
	t.Cleanup(secure.Close)
	w := newWorld(t, "", proxy.Options{
		Hosts: []string{"example.com", "*.example.com"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := plain.Listener.Addr().String()
			if strings.HasSuffix(address, ":443") {
				to = secure.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	})
	const python = `
import sys, urllib.request, ssl
ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
print(urllib.request.build_opener(urllib.request.ProxyHandler(), urllib.request.HTTPSHandler(context=ctx)).open(sys.argv[1]).read().decode())`
	const node = `
const u = new URL(process.argv[1]), http = require("http"), p = new URL(process.env.HTTP_PROXY);
http.get({host: p.hostname, port: p.port, path: u.href, headers: {host: u.host}}, r => { if (r.statusCode != 200) process.exit(1); r.pipe(process.stdout) }).on("error", () => process.exit(1))`
	for _, tt := range []struct {
		name, want string // empty if it fails
		command    []string
	}{
		{"curl_plain", "host=example.com uri=/a", []string{"curl", "-sSf", "http://example.com/a"}},
		{"curl_tls", "host=a.example.com uri=/a", []string{"curl", "-sSfk", "https://a.example.com/a"}},
		{"curl_post", "body=x=1", []string{"curl", "-sSf", "-d", "x=1", "http://example.com/"}},
		{"curl_tunnel", "host=example.com", []string{"curl", "-sSfp", "http://example.com/"}},
		{"curl_host", "host=example.com", []string{"curl", "-sSf", "-H", "Host: other.org", "http://example.com/"}},
		{"curl_other", "", []string{"curl", "-sSf", "http://other.org/"}},
		{"curl_other_tls", "", []string{"curl", "-sSfk", "https://other.org/"}},
		{"curl_rebound", "", []string{"curl", "-sSf", "http://rebound.example.com/"}},
		{"curl_loopback", "", []string{"curl", "-sSf", "--noproxy", "", plain.URL}},
		{"curl_port", "", []string{"curl", "-sSf", "http://example.com:8080/"}},
		{"wget", "host=example.com", []string{"wget", "-qO-", "http://example.com/"}},
		{"wget_other", "", []string{"wget", "-qO-", "http://other.org/"}},
		{"python", "host=example.com", []string{"python3", "-c", python, "http://example.com/"}},
		{"python_tls", "host=example.com", []string{"python3", "-c", python, "https://example.com/"}},
		{"python_other", "", []string{"python3", "-c", python, "https://other.org/"}},
		{"node", "host=example.com", []string{"node", "-e", node, "http://example.com/"}},
		{"node_other", "", []string{"node", "-e", node, "http://other.org/"}},
		{"npm", "", []string{"npm", "view", "--registry=http://other.org/", "--fetch-retries=0", "x"}},
		{"git", "", []string{"git", "ls-remote", "https://other.org/x.git"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.command[0]); err != nil {
				t.Skip(err)
			}
			cmd := exec.CommandContext(t.Context(), tt.command[0], tt.command[1:]...)
			cmd.Env = append(cmd.Environ(), "NO_PROXY=", "no_proxy=", "HOME="+t.TempDir())
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
				cmd.Env = append(cmd.Env, name+"=http://"+w.addr)
			}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.want != "") || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("GET", "http://example.com/", "example.com")
	f.Add("CONNECT", "example.com:443", "example.com:443")
	f.Add("CONNECT", "example.com:443@other.org:443", "x")
	f.Add("GET", "http://other.org\\@example.com/", "example.com")
	f.Add("GET", "http://127.0.0.1:80/", "example.com\r\nX-Forwarded-Host: x")
	f.Fuzz(func(t *testing.T, method, at, host string) {
		allowed := map[string]bool{"93.184.215.14:80": true, "93.184.215.14:443": true, "93.184.215.15:8443": true}
		p := proxy.New(proxy.Options{
			Hosts: []string{"example.com", "a.example.com:8443", "rebound.example.com"}, Resolver: internet,
			Dial: func(_ context.Context, network, address string) (net.Conn, error) {
				if network != "tcp" || !allowed[address] {
					t.Errorf("%q %q %q: dials %s %s", method, at, host, network, address)
				}
				return nil, io.ErrUnexpectedEOF
			},
		})
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		p.Serve(l)
		defer p.Close()
		client, near := net.Pipe()
		l.conns <- near
		go func() { // ends when the proxy has read it all, or has closed the connection
			fmt.Fprintf(client, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, at, host)
		}()
		_ = client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = io.Copy(io.Discard, client)
		client.Close()
	})
}
