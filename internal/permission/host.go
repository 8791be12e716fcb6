package permission

import (
	"slices"
	"strings"
)

// reaches reports whether a rule holds for calls that send to a host, "" for calls that send nothing to a host of the
// model's choice.
func (r *Rule) reaches(host string) bool {
	return len(r.Hosts) == 0 || host != "" && slices.ContainsFunc(r.Hosts, func(p string) bool { return glob(p, host) })
}

// hostLiterals returns how specific the pattern is that matches a host; 0 for a rule without one.
func (r *Rule) hostLiterals(host string) (n int) {
	for _, p := range r.Hosts {
		if glob(p, host) {
			n = max(n, literals(p))
		}
	}
	return n
}

// hostGrants returns the grant for a host, and the one for all hosts.
func hostGrants(call Call) (host, all []Grant) {
	if !strings.ContainsAny(call.Host, "* \t\r\n") { // which would be patterns, or several hosts
		host = []Grant{{Tool: call.Tool, Hosts: call.Host}}
	}
	return host, []Grant{{Tool: call.Tool}}
}
