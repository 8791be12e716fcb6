// Package loopback says which hosts are this machine. It is a package of its own so that the server, its client,
// logins and updates, which trust connections within the machine, mean the same by that.
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether a host is this machine: localhost in any case, or a loopback address, in brackets or not. Names
// are not resolved. A host with a port is not one.
func Is(host string) bool {
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
