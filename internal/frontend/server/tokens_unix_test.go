//go:build unix

package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"loki/internal/frontend/server/servertest"
)

// identities is a program that makes tokens and publishes its key.
type identities struct {
	t    *testing.T
	URL  string
	key  ed25519.PrivateKey
	down atomic.Bool
}

func newIdentities(t *testing.T) *identities {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &identities{t: t, key: private}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	t.Cleanup(s.Close)
	i.URL = s.URL
	return i
}

// config returns a section api.auth.
func (i *identities) config(audience string) string {
	return fmt.Sprintf("  auth:\n    mode: Jwt\n    jwt: {issuer: %q, audience: %s, jwks_url: %q}\n", i.URL, audience, i.URL+"/keys")
}

// token returns a header with a token of a subject. more replaces claims.
func (i *identities) token(subject, scopes string, more jwt.MapClaims) []string {
	i.t.Helper()
	claims := jwt.MapClaims{"iss": i.URL, "aud": "loki", "sub": subject, "scope": scopes, "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range more {
		claims[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"] = "k1"
	text, err := token.SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + text}
}

// logged returns what a server has logged.
func logged(t *testing.T, s *servertest.Server) (text string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Dir, "cache"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "loki.log" {
			return err
		}
		b, err := os.ReadFile(path)
		text += string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return text
}

func TestTokens(t *testing.T) {
	id := newIdentities(t)
	id.down.Store(true)
	s := servertest.Program(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\napi:\n  trusted_proxies: [127.0.0.1]\n" + id.config("loki")})
	alice := id.token("alice", "read:models run:agents openid", nil)
	get := func(header ...string) servertest.Answer { return s.Post("/v1/auth/check", "", header...) }

	// Without the issuer's keys nobody is let in, and the server works.
	if a := get(alice...); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || a.Code() != "overloaded" {
		t.Errorf("before the keys are known: %d %v %s", a.Status, a.Header, a.Body)
	}
	if a := s.Get("/healthz/live"); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	id.down.Store(false)
	until(t, "the keys", func() bool { return get(alice...).Status == http.StatusOK })

	a := get(alice...)
	var who struct {
		Subject string
		KeyID   string `json:"key_id"`
		Scopes  []string
	}
	a.JSON(t, &who)
	if fmt.Sprint(who) != "{alice k1 [read:models run:agents]}" {
		t.Errorf("%+v", who)
	}
	if a := s.Get("/v1/runs", alice...); a.Status != http.StatusForbidden || !strings.Contains(a.Body, "read:runs") {
		t.Errorf("without the scope: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/v1/info"); a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a token: %d %v", a.Status, a.Header)
	}

	// The client learns that its token is not valid, the log why.
	for n, header := range [][]string{
		id.token("alice", "*", jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}), id.token("alice", "*", jwt.MapClaims{"aud": "other"}),
		id.token("alice", "*", jwt.MapClaims{"iss": "https://evil.example"}), id.token("anonymous", "*", nil),
		{"Authorization", "Bearer a.b.c"},
		{"Authorization", alice[1][:len(alice[1])-9] + "AAAAAAAAA"},
	} {
		reason := []string{"expired", "audience", "issuer", "claims", "malformed", "signature"}[n]
		a := get(append(header, "X-Request-Id", "test-"+reason)...)
		var body struct {
			Error struct{ Message, Hint string }
		}
		a.JSON(t, &body)
		if a.Status != http.StatusUnauthorized || body.Error.Message != "the token is not valid" || a.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
			t.Errorf("%s: %d %v %s", reason, a.Status, a.Header, a.Body)
		}
		line := ""
		until(t, "the log", func() bool {
			_, line, _ = strings.Cut(logged(t, s), "test-"+reason)
			return line != ""
		})
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, reason) || strings.Contains(line, alice[1][20:60]) {
			t.Errorf("the log has %s for %s", line, reason)
		}
	}

	// An address that sends too many is refused, for its bad tokens and for none.
	statuses := make(map[int]int)
	for n := range 100 {
		a := get("Authorization", "Bearer a.b."+strconv.Itoa(n), "X-Forwarded-For", "192.0.2.1")
		statuses[a.Status]++
		if a.Status == http.StatusTooManyRequests && (a.Header.Get("Retry-After") == "" || a.Code() != "rate_limited") {
			t.Errorf("%v %s", a.Header, a.Body)
		}
	}
	if statuses[http.StatusUnauthorized] != 70 || statuses[http.StatusTooManyRequests] != 30 {
		t.Errorf("statuses %v", statuses)
	}
	for address, want := range map[string]int{"192.0.2.1": 429, "192.0.2.1:4711": 429, "192.0.2.2": 401, "6.6.6.6, 192.0.2.1": 429, "192.0.2.1, 10.9.8.7": 401} {
		if a := s.Get("/v1/info", "X-Forwarded-For", address); a.Status != want {
			t.Errorf("from %s: %d", address, a.Status)
		}
	}
	if a := get(append(alice, "X-Forwarded-For", "192.0.2.1")...); a.Status != http.StatusOK {
		t.Errorf("a good token from that address: %d %s", a.Status, a.Body)
	}
	for range 100 {
		if a := s.Get("/healthz/ready", "X-Forwarded-For", "192.0.2.1"); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// TestTokensAreReadAgain: rules of tokens and limits change with SIGHUP, all of them or none.
func TestTokensAreReadAgain(t *testing.T) {
	id := newIdentities(t)
	const head = "model: builtin:echo\nclients: []\napi:\n"
	s := servertest.Program(t, servertest.Files{"config.yaml": head + id.config("loki")})
	write := func(text, say string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(s.Stderr(), "read again")
		s.Signal(syscall.SIGHUP)
		until(t, "SIGHUP", func() bool { return strings.Count(s.Stderr(), "read again") > before })
		if !strings.Contains(s.Stderr(), say) {
			t.Errorf("the server does not say %q:\n%s", say, s.Stderr())
		}
	}
	status := func(header []string, want int) {
		t.Helper()
		if a := s.Post("/v1/auth/check", "", header...); a.Status != want {
			t.Errorf("%d %s, want %d", a.Status, a.Body, want)
		}
	}
	loki, other := id.token("alice", "*", nil), id.token("alice", "*", jwt.MapClaims{"aud": "other"})
	until(t, "the keys", func() bool { return s.Post("/v1/auth/check", "", loki...).Status == http.StatusOK })
	status(other, 401)
	id.down.Store(true) // the keys are those of the same issuer, and are not fetched again
	write(head+id.config("other"), "")
	status(other, 200)
	status(loki, 401)

	// A mistake in one section keeps the others as they were, too.
	write(head+id.config("loki")+"  limits: {rate_limit_per_minute: 0}\n", "nothing has changed")
	status(other, 200)
	write(head+strings.Replace(id.config("loki"), id.URL+"/keys", "http://id.example.com/keys", 1), "nothing has changed")
	status(other, 200)

	// Keys instead of tokens, and tokens again; but not nothing.
	key, entry := servertest.Key("bob", 1, "read")
	write(head+"  auth:\n    keys:\n"+entry, "")
	status(other, 401)
	status([]string{"Authorization", "Bearer " + key}, 200)
	write(head, "needs a restart: api.auth.mode")
	status([]string{"Authorization", "Bearer " + key}, 401)
	id.down.Store(false)
	write(head+id.config("loki")+"  limits: {rate_limit_per_minute: 5, rate_limit_burst: 2}\n", "")
	until(t, "the keys", func() bool { return s.Post("/v1/auth/check", "", loki...).Status == http.StatusOK })
	carol, dave := id.token("carol", "read", nil), id.token("dave", "read", nil)
	for range 7 {
		status(carol, 200)
	}
	a := s.Get("/v1/info", carol...)
	var body struct{ Error struct{ Message string } }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil || a.Status != http.StatusTooManyRequests || a.Code() != "rate_limited" || !strings.HasPrefix(body.Error.Message, "too many requests,") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 120 {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	status(dave, 200)
	if a := s.Get("/healthz/ready"); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestReadyWithKeys: a server that cannot check tokens is not ready. One that has the keys stays so although the issuer is away.
func TestReadyWithKeys(t *testing.T) {
	id := newIdentities(t)
	id.down.Store(true)
	s := servertest.Program(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\napi:\n" + id.config("loki")})
	if a := s.Get("/healthz/ready"); a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Body, "the keys of the issuer of tokens are not known yet") {
		t.Errorf("without keys: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/healthz/live"); a.Status != http.StatusOK {
		t.Errorf("without keys: %d %s", a.Status, a.Body)
	}
	id.down.Store(false)
	until(t, "the keys", func() bool { return s.Get("/healthz/ready").Status == http.StatusOK })
	id.down.Store(true)
	if a := s.Post("/v1/auth/check", "", id.token("alice", "*", nil)...); a.Status != http.StatusOK {
		t.Errorf("with keys: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/healthz/ready"); a.Status != http.StatusOK {
		t.Errorf("the issuer is away again: %d %s", a.Status, a.Body)
	}
}

// TestExpiredTokenEndsStreams has a token expire while its owner watches a run.
func TestExpiredTokenEndsStreams(t *testing.T) {
	id := newIdentities(t)
	s := servertest.Program(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\nclients: []\napi:\n" + strings.Replace(id.config("loki"), "jwt: {", "jwt: {leeway_seconds: 0, ", 1),
		"agents/asks/graph.yaml": askAgent,
	})
	alice := id.token("alice", "*", nil)
	until(t, "the keys", func() bool { return s.Post("/v1/auth/check", "", alice...).Status == http.StatusOK })
	var run struct{ ID string }
	s.Post("/v1/agents/asks/runs", `{"prompt": "x", "wait": 60}`, alice...).JSON(t, &run)
	brief := id.token("alice", "*", jwt.MapClaims{"exp": time.Now().Add(2 * time.Second).Unix()})
	if a := s.Get("/v1/runs/"+run.ID+"/events", brief...); !strings.Contains(a.Body, "the token has expired") { // it ends
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
