package proxy

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// defaultPorts are the ones that a pattern without a port allows.
func defaultPorts() []uint16 { return []uint16{80, 443} }

// target is what a client wants to reach.
type target struct {
	name string     // in lower case, without a dot at its end
	addr netip.Addr // if the name is an address
	port uint16
}

// String returns the target as host:port.
func (t target) String() string { return net.JoinHostPort(t.name, strconv.Itoa(int(t.port))) }

// targetOf returns the target of a request.
func targetOf(r *http.Request) (target, error) {
	switch {
	case r.Method != http.MethodConnect && r.URL.Scheme == "https":
		return target{}, errors.New("this proxy reaches https addresses by CONNECT only")
	case r.URL.Scheme != "http" && (r.Method != http.MethodConnect || r.URL.Scheme != ""), r.URL.Host == "":
		return target{}, errors.New("this is a proxy: it wants the whole address, which begins with http://, or CONNECT")
	case r.Method == http.MethodConnect && (r.URL.Path != "" || r.URL.RawQuery != ""):
		return target{}, errors.New("CONNECT wants a host and a port only")
	case r.URL.User != nil && r.Method == http.MethodConnect:
		return target{}, errors.New("CONNECT wants no user")
	}
	port := r.URL.Port()
	if port == "" && r.Method != http.MethodConnect {
		port = "80"
	}
	return parseTarget(r.URL.Hostname(), port)
}

// parseTarget reads a host and a port. A host is a name of letters, digits, - and _ with dots, or an address without a
// zone. What some resolvers read as an address, such as 127.1 and 0x7f000001, is neither.
func parseTarget(host, port string) (target, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '+' {
		return target{}, errors.New("the address has no valid port")
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return target{name: a.String(), addr: a, port: uint16(n)}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !validName(name) {
		return target{}, errors.New("the address has no valid host")
	}
	return target{name: name, port: uint16(n)}, nil
}

// validName reports whether a name in lower case is one of the DNS, other than one that ends in a number.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	last := ""
	for last = range strings.SplitSeq(name, ".") {
		if last == "" || len(last) > 63 || strings.Trim(last, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// hosts are patterns.
type hosts []pattern

// pattern is one of them.
type pattern struct {
	name  string     // in lower case, without a dot at its end
	below bool       // the names below it are meant, not itself
	addr  netip.Addr // if the name is an address
	port  uint16     // 0 means 80 and 443
}

// parseHosts reads patterns that sandbox.CheckHost has found valid. Others match nothing.
func parseHosts(texts []string) hosts {
	var list hosts
	for _, text := range texts {
		name, port, found := strings.Cut(text, ":")
		n, err := strconv.ParseUint(port, 10, 16)
		if found && err != nil {
			continue
		}
		p := pattern{port: uint16(n)}
		name, p.below = strings.CutPrefix(name, "*.")
		t, err := parseTarget(name, "1")
		if err != nil || p.below && t.addr.IsValid() {
			continue
		}
		p.name, p.addr = t.name, t.addr
		list = append(list, p)
	}
	return list
}

// allow reports whether a target may be asked for.
func (list hosts) allow(t target) bool {
	for _, p := range list {
		if p.covers(t.port) && (p.name == t.name && !p.below || p.below && strings.HasSuffix(t.name, "."+p.name)) {
			return true
		}
	}
	return false
}

// exactly reports whether a pattern is the name of a target itself.
func (list hosts) exactly(t target) bool {
	return slices.ContainsFunc(list, func(p pattern) bool { return p.covers(t.port) && p.name == t.name && !p.below })
}

// name reports whether a pattern names an address itself.
func (list hosts) name(a netip.Addr, port uint16) bool {
	for _, p := range list {
		if p.covers(port) && (p.addr == a || p.name == "localhost" && !p.below && a.IsLoopback()) {
			return true
		}
	}
	return false
}

func (p pattern) covers(port uint16) bool {
	if p.port != 0 {
		return p.port == port
	}
	return slices.Contains(defaultPorts(), port)
}
