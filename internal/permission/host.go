package permission

import (
	"strings"

	"loki/internal/pattern"
)

// reaches reports whether a rule holds for calls that send to a host, "" for calls that send nothing to a host of the
// model's choice, and how specific the pattern is that matches.
func (r *Rule) reaches(host string) (specificity int, ok bool) {
	for _, p := range r.Hosts {
		if host != "" && pattern.Text(p, host) {
			specificity, ok = max(specificity, literals(p)), true
		}
	}
	return specificity, ok || len(r.Hosts) == 0
}

// hostGrants returns the grant for a host, and the one for all hosts.
func hostGrants(call Call) (host, all []Grant) {
	if !strings.ContainsAny(call.Host, "* \t\r\n") { // which would be patterns, or several hosts
		host = []Grant{{Tool: call.Tool, Hosts: call.Host}}
	}
	return host, []Grant{{Tool: call.Tool}}
}
