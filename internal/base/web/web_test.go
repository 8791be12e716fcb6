package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false,
		"169.254.169.254": false, "100.100.100.200": false, "fd00:ec2::254": false, "fe80::1": false, "0.0.0.0": false, "::": false, "255.255.255.255": false,
		"224.0.0.1": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "198.18.0.1": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	a := ParseAllowed("Intranet.local., 10.0.0.0/8 127.0.0.1,[::1]")
	for host, want := range map[string]bool{"intranet.local": true, "INTRANET.local.": true, "x.intranet.local": false} {
		if a.host(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
	for addr, want := range map[string]bool{"10.9.9.9": true, "127.0.0.1": true, "127.0.0.2": false, "::1": true, "::ffff:10.0.0.1": true, "192.168.0.1": false, "1.1.1.1": true} {
		if a.addr(netip.MustParseAddr(addr)) != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
	if all := ParseAllowed("*"); !all.host("x") || !all.addr(netip.MustParseAddr("127.0.0.1")) {
		t.Error("* does not allow everything")
	}
}

func TestWithoutMedia(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<p>a<img src=x>b</p>":                             "<p>ab</p>",
		"a<script>if (1 < 2) { '</p>' }</script>b":         "ab",
		"a<svg><svg></svg><path/></svg>b":                  "ab",
		"<picture><source><img></picture><!-- c -->x":      "x",
		"<a href='x&amp;y'>t</a>":                          "<a href='x&amp;y'>t</a>",
		"a<style>b":                                        "a",
		"<video controls>no video</video><p>text &lt;</p>": "<p>text &lt;</p>",
	} {
		if got := WithoutMedia(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// TestProxyGetsNothingPrivate: a proxy is not asked for what could be a private address to it.
func TestProxyGetsNothingPrivate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "INTERNAL")
	}))
	defer proxy.Close()
	getenv := func(name string) string { return map[string]string{"HTTP_PROXY": proxy.URL}[name] }
	client := New(getenv, ParseAllowed("known.invalid"))
	defer client.CloseIdleConnections()
	for _, url := range []string{"http://2130706433/", "http://0x7f.1/", "http://10.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://only-the-proxy-knows.invalid/"} {
		resp, err := client.Get(url)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s is fetched", url)
			continue
		}
		if text := Reason(err).Error(); !strings.Contains(text, "LOKI_FETCH_ALLOW") {
			t.Errorf("%s: %s", url, text)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the proxy is asked %d times", asked.Load())
	}
	resp, err := client.Get("http://known.invalid/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
