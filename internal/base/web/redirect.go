package web

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Inward reports whether a redirect leads where the server that sends it may not reach itself: to this machine, or from the public
// internet into the network of this machine. Redirects within one host and port are none. A name that is not found here is looked up by
// a proxy, if at all, and is taken for one of the public internet.
func Inward(ctx context.Context, from, to *url.URL) bool {
	if strings.EqualFold(from.Hostname(), to.Hostname()) && port(from) == port(to) {
		return false
	}
	return Loopback(to.Hostname()) || inside(ctx, to.Hostname()) && !inside(ctx, from.Hostname())
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// inside reports whether a host has an address that is not one of the public internet.
func inside(ctx context.Context, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !Public(ip)
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(all, func(ip netip.Addr) bool { return !Public(ip) })
}

// OnInternet reports whether a host has only addresses of the public internet, as far as is known here.
func OnInternet(ctx context.Context, host string) bool { return !Loopback(host) && !inside(ctx, host) }
