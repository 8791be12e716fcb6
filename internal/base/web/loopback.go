package web

import (
	"net/netip"
	"strings"
)

// Loopback reports whether a host is this machine: localhost in any case, or a loopback address, in brackets or not. Names
// are not resolved. A host with a port is not one.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inside, "]"); !ok {
			return false
		}
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
