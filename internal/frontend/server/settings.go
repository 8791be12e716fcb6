package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"loki/internal/base/fault"
	"loki/internal/base/web"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/service/auth/issuer"
	"loki/internal/setup/config"
)

// settings are what the configuration says about a server, ready to be used. They do not change; a server
// that reads its configuration again replaces them.
type settings struct {
	*config.API
	keys      verifier     // nil if the server asks for none
	published *issuer.Keys // with which tokens are verified; nil without tokens
}

// verifier knows the keys or tokens of callers who may use a server.
type verifier interface {
	// Verify returns who has a key or a token. The request comes from an address.
	Verify(ctx context.Context, from netip.Addr, key string) (auth.Identity, error)
	// Has reports whether the key of an identity is still valid.
	Has(who auth.Identity) bool
}

// newSettings returns the settings of a configuration, which is nil if the file says nothing. The keys of an issuer that before has,
// which may be nil, are not fetched again. The error says why no server can follow the settings.
func newSettings(c *config.API, before *settings, log *slog.Logger) (*settings, error) {
	if c == nil {
		c = config.DefaultAPI()
	}
	if !c.Enabled {
		return nil, fault.New(fault.Config, "the configuration does not allow serving: api.enabled is false").WithHint("set api.enabled to true, or leave it out")
	}
	s := &settings{API: c}
	switch c.Auth.Mode {
	case config.AuthStaticKeys:
		if len(c.Auth.Keys) == 0 && before == nil { // a server that works may lose its last key
			return nil, fault.New(fault.Config, "api.auth.mode is %s, and api.auth.keys is empty, so no request would be allowed", config.AuthStaticKeys).
				WithHint("add a key: loki --key add NAME; or serve without keys: mode: %s", config.AuthDisabled)
		}
		s.keys = auth.New(c.Auth.Keys)
	case config.AuthJWT:
		j := c.Auth.JWT
		o := issuer.KeysOptions{URL: j.JWKSURL, Refresh: j.Refresh, Log: log}
		if before != nil && before.published != nil && before.published.Serves(o) {
			s.published = before.published
		} else {
			s.published = issuer.NewKeys(o)
		}
		s.keys = issuer.New(issuer.Options{
			Issuer: j.Issuer, Audience: j.Audience, SubjectClaim: j.SubjectClaim, ScopesClaim: j.ScopesClaim, GroupsClaim: j.GroupsClaim, Leeway: j.Leeway, Keys: s.published,
		})
	}
	return s, nil
}

// publicURL returns the address of a server for people, as a URL without a path; "" for one without a port.
func (s *settings) publicURL(listens net.Addr) string {
	if s.PublicURL != "" {
		return strings.TrimSuffix(s.PublicURL, "/")
	}
	if listens.String() == NoAddress {
		return ""
	}
	return "http://" + listens.String()
}

// limits returns what requests may use.
func (s *settings) limits() rest.Limits {
	return rest.Limits{
		Body: int64(s.Limits.MaxBodyBytes), RefuseUnknown: s.OpenAI.RefuseUnknown, Requests: s.Limits.MaxConcurrentRequests, PerSubject: s.Limits.PerSubjectConcurrency, Timeout: s.RequestTimeout,
		PerMinute: s.Limits.RateLimitPerMinute, Burst: s.Limits.RateLimitBurst,
	}
}

// startOnly returns the settings that are only read when a server starts, by their names.
func (s *settings) startOnly() map[string]any {
	return map[string]any{
		"api.listen_addr": s.ListenAddr, "api.public_url": s.PublicURL, "api.metrics_listen_addr": s.MetricsListenAddr, "api.auth.mode": s.keys != nil, "api.files.roots": s.FileRoots,
		"api.adopt_unowned": s.AdoptUnowned, "api.log_format": s.LogFormat, "api.resume_on_start": s.ResumeOnStart, "api.memory": s.Memory, "api.webhooks": s.Webhooks,
		"api.limits.max_concurrent_runs": s.Limits.MaxConcurrentRuns, "api.limits.max_runs_per_subject": s.Limits.MaxRunsPerSubject,
	}
}

// needRestart returns the names of the fixed settings in which s and next differ.
func (s *settings) needRestart(next *settings) (names []string) {
	then := next.startOnly()
	for name, value := range s.startOnly() {
		if !reflect.DeepEqual(value, then[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// address returns where to listen: what the command line says, or else the configuration.
func (s *settings) address(argument string) (string, error) {
	if argument != "" && argument != NoAddress {
		host, port, err := net.SplitHostPort(argument)
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil {
			return "", fault.New(fault.Usage, "flag --serve: %q is not an address", argument).WithHint("an address is HOST:PORT: loki --serve 127.0.0.1:3400")
		}
		argument = net.JoinHostPort(host, strconv.FormatUint(n, 10))
	}
	return cmp.Or(argument, s.ListenAddr, config.DefaultListenAddr), nil
}

// listen listens at an address. Without keys it must be one that only this machine reaches.
func (s *settings) listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the address %s", address)
	}
	if s.keys == nil && !s.isLoopback(ctx, host) {
		return nil, fault.New(fault.Config, "cannot serve at %s without keys: anyone who can reach the address could use your models, tools and files", address).
			WithHint("make a key with loki --key add NAME, or serve this machine only with loki --serve 127.0.0.1:3400")
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.New(fault.Failure, "cannot serve at %s: another program listens there", address).
			WithHint("end it, or choose another port, or let the system choose one: loki --serve %s", net.JoinHostPort(host, "0"))
	case err != nil:
		return nil, fault.Wrap(fault.Failure, err, "cannot serve at %s", address)
	}
	return l, nil
}

// isLoopback reports whether only this machine reaches a host.
func (s *settings) isLoopback(ctx context.Context, host string) bool {
	if host == "" {
		return false // all addresses
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, a := range addrs {
		if !a.Unmap().IsLoopback() {
			return false
		}
	}
	return err == nil && len(addrs) > 0
}

// isLoopbackName reports whether a Host header names this machine, so that no page of another site can have
// made a name of its own point here.
func isLoopbackName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return web.Loopback(host)
}
