package config

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/service/auth/issuer"
)

// hash is that of no key that anybody has.
const hash = "$argon2id$v=19$m=32768,t=2,p=1$c2FsdHNhbHRzYWx0$c3Vtc3Vtc3Vtc3Vtc3Vtc3Vtc3Vtc3Vtc3Vtc3Vt"

func TestLoadAPI(t *testing.T) {
	cfg, warnings, err := load(t, `
api:
  enabled: false
  listen_addr: "[::1]:0"
  public_url: https://loki.example.com
  auth:
    mode: StaticKeys
    keys:
      - {subject: alice, key_hash: "`+hash+`", scopes: [read, "run:agents"], key_id: 0a1b2c3d4e5f}
      - {subject: bob, key_hash: "`+hash+`", scopes: [], groups: [editors, "the authors"]}
  cors: {allowed_origins: ["https://example.com:8443"], allow_credentials: true}
  limits: {max_body_bytes: 10, max_concurrent_requests: 2, per_subject_concurrency: 1, rate_limit_per_minute: null, rate_limit_burst: 3, max_concurrent_runs: 4, max_runs_per_subject: 5}
  request_timeout_seconds: 3599
  shutdown_grace_seconds: 0
  force_https: true
  trusted_proxies: [10.0.0.7, "fd00::1/8"]
  files: {roots: [shared, /srv/files/]}
  adopt_unowned: true
  resume_on_start: false
  memory: read
  webhooks:
    - {agent: digest, url: "https://example.com/hook", events: [finished], secret: "{{HOOK}}"}
`)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	alice, err := auth.ParseHash(hash)
	if err != nil {
		t.Fatal(err)
	}
	want := &API{
		ListenAddr: "[::1]:0", PublicURL: "https://loki.example.com",
		Auth: APIAuth{Mode: AuthStaticKeys, Keys: []auth.Key{
			{Subject: "alice", ID: "0a1b2c3d4e5f", Hash: alice, Scopes: []auth.Scope{auth.Read, auth.RunAgents}},
			{Subject: "bob", ID: auth.IDOfHash(hash), Hash: alice, Groups: []string{"editors", "the authors"}},
		}},
		CORS:           APICORS{AllowedOrigins: []string{"https://example.com:8443"}, AllowCredentials: true},
		Limits:         APILimits{MaxBodyBytes: 10, MaxConcurrentRequests: 2, PerSubjectConcurrency: 1, RateLimitBurst: 3, MaxConcurrentRuns: 4, MaxRunsPerSubject: 5},
		RequestTimeout: 3599 * time.Second,
		ForceHTTPS:     true,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("fd00::/8")},
		LogFormat:      "json",
		FileRoots:      []string{filepath.Join(filepath.Dir(cfg.File), "shared"), "/srv/files"},
		AdoptUnowned:   true,
		Memory:         chat.MemoryRead,
		Webhooks:       []Webhook{{Agent: "digest", URL: "https://example.com/hook", Events: []string{"finished"}, Secret: "{{HOOK}}"}},
	}
	if diff := cmp.Diff(want, cfg.API, cmp.Comparer(func(a, b auth.Hash) bool { return a.String() == b.String() }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadAPIDefaults(t *testing.T) {
	if api := mustLoad(t, "api:\n").API; api != nil {
		t.Errorf("a section without a value is %+v", api)
	}
	if diff := cmp.Diff(DefaultAPI(), mustLoad(t, "api: {}").API); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for text, mode := range map[string]string{
		"keys: []":                 AuthStaticKeys,
		"keys:":                    AuthStaticKeys,
		"mode: Disabled":           AuthDisabled,
		"{}":                       AuthDisabled,
		"{mode: disabled, keys: }": AuthDisabled,
		"jwt: {issuer: i, audience: a, jwks_url: \"https://example.com/keys\"}": AuthJWT,
	} {
		if got := mustLoad(t, "api:\n  auth:\n    "+text).API.Auth.Mode; got != mode {
			t.Errorf("%s is mode %s", text, got)
		}
	}
}

func TestLoadAPIReportsAllProblems(t *testing.T) {
	secret := "sk-in-the-wrong-place"
	_, _, err := load(t, `api:
  enabled: perhaps
  listen_addr: localhost
  metrics_listen_addr: localhost:65536
  auth:
    mode: keys
    keys:
      - {subject: "", key_hash: `+secret+`, scopes: [read]}
      - {subject: anonymous, key_hash: "`+hash+`", scopes: read, key_id: "a b"}
      - {key_id: x}
    jwt: {audience: a, jwks_url: "ftp://example.com"}
  cors: {allowed_origins: ["*", "https://example.com/", example.com], allow_credentials: true}
  limits: {max_body_bytes: 104857600, max_concurrent_requests: 0, rate_limit_per_minute: -1}
  request_timeout_seconds: 3600
  shutdown_grace_seconds: -1
  trusted_proxies: [10.0.0.0/33, example.com]
  log_format: xml
  audit: {sink: file}
  files: {roots: [""]}
  webhooks: [{url: example.com}, {url: "https://example.com", secret: s, events: [finished, finish]}]
`)
	if fault.CodeOf(err) != fault.Config || fault.ExitCode(err) != 3 {
		t.Fatalf("code %s of %v", fault.CodeOf(err), err)
	}
	problems := yamldoc.AsProblems(err)
	var got []string
	for _, p := range problems {
		if p.Pos.Line == 0 || p.Pos.Column == 0 {
			t.Errorf("%v is nowhere", p)
		}
		got = append(got, p.Path+" "+p.Key)
	}
	for _, path := range []string{
		"api.enabled", "api.listen_addr", "api.metrics_listen_addr", "api.auth.mode", "api.auth.keys[0].subject", "api.auth.keys[0].key_hash",
		"api.auth.keys[1].subject", "api.auth.keys[1].scopes", "api.auth.keys[1].key_id", "api.auth.keys[2]", "api.auth.jwt", "api.auth.jwt.jwks_url",
		"api.cors.allowed_origins[1]", "api.cors.allowed_origins[2]", "api.cors.allow_credentials", "api.limits.max_body_bytes", "api.limits.max_concurrent_requests",
		"api.limits.rate_limit_per_minute", "api.request_timeout_seconds", "api.shutdown_grace_seconds", "api.trusted_proxies[0]", "api.trusted_proxies[1]",
		"api.log_format", "api.audit", "api.files.roots[0]", "api.webhooks[0]", "api.webhooks[0].url", "api.webhooks[1].events[1]",
	} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, path+" ") }) {
			t.Errorf("no problem at %s", path)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Error("the error shows what stands where a hash has to be")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestLoadAPIWarnings(t *testing.T) {
	_, warnings, err := load(t, `api:
  adopt_unowed: true
  auth:
    mode: disabled
    keys: [{subject: alice, key_hash: "`+hash+`", scopes: ["read:session"], key_id: a}]
`)
	want := []string{
		`2:3: api: unknown key "adopt_unowed" is ignored | did you mean "adopt_unowned"?`,
		`4:11: api.auth.mode: every request is allowed without a key | write mode: static_keys to ask for one of the keys`,
		`5:`,
	}
	if err != nil || len(warnings) != len(want) {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	for i, w := range want {
		if !strings.HasPrefix(warnings[i], w) {
			t.Errorf("warning %q, want %q", warnings[i], w)
		}
	}
	if !strings.Contains(warnings[2], `unknown scope "read:session" allows nothing | did you mean "read:sessions"?`) {
		t.Errorf("warning %q", warnings[2])
	}
}

func TestLoadJWT(t *testing.T) {
	const section = "api:\n  auth:\n    mode: Jwt\n    jwt: {issuer: i, audience: a, jwks_url: \"https://example.com/keys\"}\n"
	cfg := mustLoad(t, section)
	if cfg.API.Auth.Mode != AuthJWT {
		t.Errorf("mode %s", cfg.API.Auth.Mode)
	}
	wantJWT := &APIJWT{Issuer: "i", Audience: "a", JWKSURL: "https://example.com/keys", Refresh: time.Hour, SubjectClaim: "sub", ScopesClaim: "scope", GroupsClaim: "groups", Leeway: time.Minute}
	if diff := cmp.Diff(wantJWT, cfg.API.Auth.JWT); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadJWTMistakes(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{`issuer: "", audience: a, jwks_url: "https://example.com/keys"`, "api.auth.jwt.issuer: is empty"},
		{`issuer: i, audience: "", jwks_url: "https://example.com/keys"`, "api.auth.jwt.audience: is empty"},
		{`issuer: i, audience: a, scopes_claim: "", jwks_url: "https://example.com/keys"`, "api.auth.jwt.scopes_claim: is empty"},
		{`issuer: i, audience: a, jwks_url: "http://example.com/keys"`, "keys are fetched with https only"},
		{`issuer: i, audience: a, jwks_url: "keys"`, "not an address that begins with https://"},
		{`issuer: i, audience: a`, "jwks_url"},
	} {
		if _, _, err := load(t, "api:\n  auth:\n    jwt: {"+tt.section+"}\n"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v", tt.section, err)
		}
	}
	const jwt = "    jwt: {issuer: i, audience: a, jwks_url: \"https://example.com/keys\"}\n"
	for section, want := range map[string]string{
		"    mode: static_keys\n" + jwt: "tokens are not valid with mode static_keys",
		jwt + `    keys: [{subject: alice, key_hash: "` + hash + `", scopes: [read], key_id: a}]` + "\n": "keys are not valid beside tokens",
	} {
		_, warnings, err := load(t, "api:\n  auth:\n"+section)
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("error %v, warnings %q, want %q", err, warnings, want)
		}
	}
}

func FuzzAPI(f *testing.F) {
	f.Add("enabled: true\nlisten_addr: 127.0.0.1:3400")
	f.Add("auth: {mode: static_keys, keys: [{subject: a, key_hash: \"" + hash + "\", scopes: [read]}]}")
	f.Add("auth: {mode: jwt, jwt: {issuer: i, audience: a, jwks_url: https://example.com}}")
	f.Add("cors: {allowed_origins: ['*'], allow_credentials: true}\nlimits: {max_body_bytes: 1}")
	f.Add("trusted_proxies: [10.0.0.0/8, ::1, fe80::1%eth0]\nfiles: {roots: [a, /b]}\nwebhooks: [{url: 'https://a', secret: b}]\naudit: {sink: file, path: x}")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := yamldoc.Parse("config.yaml", []byte(text), yamldoc.HideSource)
		if err != nil {
			return
		}
		api := readAPI(doc.Root().Map(), "/etc/loki/config.yaml")
		if api == nil || doc.Err() != nil {
			return
		}
		l := api.Limits
		if l.MaxBodyBytes < 1 || l.MaxConcurrentRequests < 1 || l.PerSubjectConcurrency < 1 || l.RateLimitBurst < 1 || l.MaxConcurrentRuns < 1 || api.RequestTimeout <= 0 || api.ShutdownGrace < 0 {
			t.Errorf("limits %+v", l)
		}
		ids := make(map[string]bool)
		for _, k := range api.Auth.Keys {
			if ids[k.ID] || auth.CheckID(k.ID) != nil || auth.CheckSubject(k.Subject) != nil || k.Hash.String() == (auth.Hash{}).String() {
				t.Errorf("key %+v", k)
			}
			ids[k.ID] = true
		}
		if api.CORS.AllowCredentials && slices.Contains(api.CORS.AllowedOrigins, "*") {
			t.Error("credentials for all origins")
		}
		for _, root := range api.FileRoots {
			if !filepath.IsAbs(root) {
				t.Errorf("root %q", root)
			}
		}
		if api.Auth.Mode == AuthJWT && (api.Auth.JWT == nil || api.Auth.JWT.Issuer == "" || api.Auth.JWT.Audience == "" || issuer.CheckURL(api.Auth.JWT.JWKSURL) != nil) {
			t.Error("a server would accept tokens that it cannot check")
		}
	})
}
