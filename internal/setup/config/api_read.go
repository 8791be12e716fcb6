package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/service/auth"
	"loki/internal/service/auth/issuer"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/webhook"
)

const (
	maxBody    = 100<<20 - 1
	maxTimeout = time.Hour
	maxCount   = 1_000_000
)

// readAPI reads the section api; the result is nil if m is. Mistakes are reported to the
// document of m.
func readAPI(m *yamldoc.Map, file string) *API {
	if m == nil {
		return nil
	}
	a := DefaultAPI()
	m.Bool("enabled", &a.Enabled)
	readAddr(m, "listen_addr", &a.ListenAddr)
	readURL(m, "public_url", &a.PublicURL)
	readAddr(m, "metrics_listen_addr", &a.MetricsListenAddr)
	if section := m.Map("auth"); section != nil {
		a.Auth = readAuth(section)
	}
	a.CORS = readCORS(m.Map("cors"))
	a.Limits.read(m.Map("limits"))
	a.OpenAI.RefuseUnknown = readUnknownMembers(m.Map("openai"))
	readSpan(m, "request_timeout_seconds", &a.RequestTimeout, time.Second, maxTimeout-time.Second)
	readSpan(m, "shutdown_grace_seconds", &a.ShutdownGrace, 0, maxTimeout)
	m.Bool("force_https", &a.ForceHTTPS)
	a.TrustedProxies = readProxies(m)
	yamldoc.Choice(m, "log_format", &a.LogFormat, "json", "text")
	yamldoc.Choice(m, "log_level", &a.LogLevel, "off", "error", "warn", "info", "debug", "trace")
	if audit := m.Map("audit"); audit != nil {
		a.Audit = readAudit(audit, filepath.Dir(file))
	}
	a.FileRoots = readRoots(m.Map("files"), filepath.Dir(file))
	m.Bool("adopt_unowned", &a.AdoptUnowned)
	m.Bool("resume_on_start", &a.ResumeOnStart)
	readParsed(m, "memory", setter(&a.Memory))
	for _, n := range m.List("webhooks") {
		a.Webhooks = append(a.Webhooks, readWebhook(n.Map()))
	}
	a.Spending = spending.Read(m.Map("spending"))
	m.Done()
	return a
}

// readAddr reads an address to listen on.
func readAddr(m *yamldoc.Map, key string, dst *string) bool {
	var addr string
	if !m.Str(key, &addr) {
		return false
	}
	_, port, err := net.SplitHostPort(addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		m.Get(key).Errorf("not an address to listen on").Hint = `write a host and a port, such as "127.0.0.1:3400" or "[::1]:3400"`
		return false
	}
	*dst = addr
	return true
}

func readSpan(m *yamldoc.Map, key string, dst *time.Duration, least, most time.Duration) {
	var n int
	if m.Int(key, &n, int(least/time.Second), int(most/time.Second)) {
		*dst = time.Duration(n) * time.Second
	}
}

func readAuth(m *yamldoc.Map) APIAuth {
	a := APIAuth{Mode: AuthDisabled}
	if m.Has("keys") {
		a.Mode = AuthStaticKeys
	}
	if m.Has("jwt") {
		a.Mode = AuthJWT
	}
	readMode(m, &a.Mode)
	for _, n := range m.List("keys") {
		key, ok := readKey(n.Map())
		if !ok {
			continue
		}
		if slices.ContainsFunc(a.Keys, func(k auth.Key) bool { return k.ID == key.ID }) {
			n.Errorf("has the same key_id as another key")
		}
		a.Keys = append(a.Keys, key)
	}
	switch {
	case a.Mode == AuthDisabled && len(a.Keys) > 0:
		m.Get("mode").Warnf("every request is allowed without a key").Hint = "write mode: " + AuthStaticKeys + " to ask for one of the keys"
	case a.Mode == AuthJWT && len(a.Keys) > 0:
		m.Get("keys").Warnf("keys are not valid beside tokens").Hint = "write mode: " + AuthStaticKeys + " to ask for one of the keys instead of a token"
	case a.Mode != AuthJWT && m.Has("jwt"):
		m.Get("jwt").Warnf("tokens are not valid with mode %s", a.Mode).Hint = "write mode: " + AuthJWT + " to ask for tokens"
	}
	if jwt := m.Map("jwt"); jwt != nil {
		a.JWT = readJWT(jwt)
	} else if a.Mode == AuthJWT {
		m.Require("jwt")
	}
	m.Done()
	return a
}

// readMode reads the mode, which may also be spelled in camel case.
func readMode(m *yamldoc.Map, mode *string) {
	var text string
	if !m.Text("mode", &text) {
		return
	}
	switch text {
	case AuthDisabled, "Disabled":
		*mode = AuthDisabled
	case AuthStaticKeys, "StaticKeys":
		*mode = AuthStaticKeys
	case AuthJWT, "Jwt":
		*mode = AuthJWT
	default:
		m.Get("mode").Errorf("unknown value %q", text).Hint = yamldoc.OneOf(text, []string{AuthDisabled, AuthStaticKeys, AuthJWT})
	}
}

func readKey(m *yamldoc.Map) (key auth.Key, ok bool) {
	ok = len(m.Require("subject", "key_hash", "scopes")) == 0 && m != nil
	var hash string
	if m.Str("subject", &key.Subject) {
		if err := auth.CheckSubject(key.Subject); err != nil {
			m.Get("subject").Errorf("%v", err)
		}
	}
	if m.Str("key_hash", &hash) {
		var err error
		if key.Hash, err = auth.ParseHash(hash); err != nil {
			m.Get("key_hash").Errorf("%v", err).Hint = "loki --key add SUBJECT makes a key and writes its hash here"
		}
	}
	for _, n := range m.List("scopes") {
		s, _ := n.Str()
		scope := auth.Scope(s)
		if s != "" && !scope.Known() {
			n.Warnf("unknown scope %q allows nothing", s).Hint = yamldoc.OneOf(s, auth.ScopeNames())
		}
		key.Scopes = append(key.Scopes, scope)
	}
	for _, n := range m.List("groups") {
		group, ok := n.Str()
		if ok && auth.CheckSubject(group) != nil {
			n.Errorf("want a group of printable characters")
		}
		key.Groups = append(key.Groups, group)
	}
	if !m.Text("key_id", &key.ID) {
		key.ID = auth.IDOfHash(hash)
	} else if err := auth.CheckID(key.ID); err != nil {
		m.Get("key_id").Errorf("%v", err)
	}
	m.Done()
	return key, ok
}

func readJWT(m *yamldoc.Map) *APIJWT {
	j := &APIJWT{Refresh: time.Hour, SubjectClaim: "sub", ScopesClaim: "scope", GroupsClaim: "groups", Leeway: time.Minute}
	m.Require("issuer", "audience", "jwks_url")
	m.Str("issuer", &j.Issuer)
	m.Str("audience", &j.Audience)
	if m.Str("jwks_url", &j.JWKSURL) {
		if err := issuer.CheckURL(j.JWKSURL); err != nil {
			m.Get("jwks_url").Errorf("%v", err)
		}
	}
	readSpan(m, "jwks_refresh_seconds", &j.Refresh, time.Minute, 7*24*time.Hour)
	m.Str("subject_claim", &j.SubjectClaim)
	m.Str("scopes_claim", &j.ScopesClaim)
	m.Str("groups_claim", &j.GroupsClaim)
	for _, key := range []string{"issuer", "audience", "subject_claim", "scopes_claim", "groups_claim"} { // a token without a claim must not match
		if n := m.Get(key); n != nil && n.Literal() == "" {
			n.Errorf("is empty")
		}
	}
	readSpan(m, "leeway_seconds", &j.Leeway, 0, 10*time.Minute)
	m.Done()
	return j
}

// readURL reads an address of the web, of which a part may be a secret.
func readURL(m *yamldoc.Map, key string, dst *string) {
	if !m.Str(key, dst) || HasSecretPlaceholder(*dst) {
		return
	}
	u, err := url.Parse(*dst)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		m.Get(key).Errorf("not an address that begins with https:// or http://")
	}
}

func readCORS(m *yamldoc.Map) (c APICORS) {
	m.Strs("allowed_origins", &c.AllowedOrigins)
	for _, n := range m.List("allowed_origins") {
		origin, ok := n.Str()
		if u, err := url.Parse(origin); ok && origin != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin) {
			n.Errorf("not an origin").Hint = `write a scheme, a host and, if it is not the usual one, a port, such as "https://example.com:8443"`
		}
	}
	m.Bool("allow_credentials", &c.AllowCredentials)
	if c.AllowCredentials && slices.Contains(c.AllowedOrigins, "*") {
		m.Get("allow_credentials").Errorf(`is not possible with the origin "*"`).Hint = "list the origins"
	}
	m.Done()
	return c
}

// readUnknownMembers reports whether the section openai refuses members that are not known.
func readUnknownMembers(m *yamldoc.Map) bool {
	const ignore, refuse = "ignore", "refuse"
	policy := ignore
	yamldoc.Choice(m, "unknown_members", &policy, ignore, refuse)
	m.Done()
	return policy == refuse
}

func (l *APILimits) read(m *yamldoc.Map) {
	m.Int("max_body_bytes", &l.MaxBodyBytes, 1, maxBody)
	m.Int("max_concurrent_requests", &l.MaxConcurrentRequests, 1, maxCount)
	m.Int("per_subject_concurrency", &l.PerSubjectConcurrency, 1, maxCount)
	m.Int("rate_limit_per_minute", &l.RateLimitPerMinute, 1, maxCount)
	m.Int("rate_limit_burst", &l.RateLimitBurst, 1, maxCount)
	m.Int("max_concurrent_runs", &l.MaxConcurrentRuns, 1, maxCount)
	m.Int("max_runs_per_subject", &l.MaxRunsPerSubject, 1, maxCount)
	m.Done()
}

// readProxies reads addresses and networks.
func readProxies(m *yamldoc.Map) (list []netip.Prefix) {
	for _, n := range m.List("trusted_proxies") {
		text, ok := n.Str()
		if !ok {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			n.Errorf("not an address or a network").Hint = `write it as "10.0.0.7" or "10.0.0.0/8"`
			continue
		}
		list = append(list, network.Masked())
	}
	return list
}

func readAudit(m *yamldoc.Map, dir string) *APIAudit {
	a := &APIAudit{Sink: AuditStderr, MaxBytes: 100 << 20, Keep: 10}
	yamldoc.Choice(m, "sink", &a.Sink, AuditStderr, AuditFile, AuditSyslog)
	if a.Sink == AuditFile {
		m.Require("path")
	}
	if m.Str("path", &a.Path) && !filepath.IsAbs(a.Path) {
		a.Path = filepath.Join(dir, a.Path)
	}
	m.Int("max_bytes", &a.MaxBytes, 1<<10, 1<<30)
	m.Int("keep", &a.Keep, 0, maxCount)
	m.Done()
	return a
}

// readRoots reads directories. A relative one is below dir, the directory of the file.
func readRoots(m *yamldoc.Map, dir string) (list []string) {
	for _, n := range m.List("roots") {
		root, ok := n.Str()
		switch {
		case !ok:
			continue
		case root == "":
			n.Errorf("is empty").Hint = "write the path of a directory"
			continue
		case !filepath.IsAbs(root):
			root = filepath.Join(dir, root)
		}
		list = append(list, filepath.Clean(root))
	}
	m.Done()
	return list
}

func readWebhook(m *yamldoc.Map) (w Webhook) {
	m.Require("url", "secret")
	m.Str("agent", &w.Agent)
	readURL(m, "url", &w.URL)
	m.Strs("events", &w.Events)
	for _, n := range m.List("events") {
		if event, ok := n.Str(); ok && !slices.Contains(webhook.Types(), event) {
			n.Errorf("unknown event %q", event).Hint = yamldoc.OneOf(event, webhook.Types())
		}
	}
	m.Str("secret", &w.Secret)
	m.Done()
	return w
}
