package issuer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"loki/internal/service/auth"
)

// signers are the private keys of the tests, by their kid. It takes time to make them.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	must := func(k crypto.Signer, err error) crypto.Signer {
		if err != nil {
			panic(err)
		}
		return k
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	return map[string]crypto.Signer{
		"rsa": must(rsa.GenerateKey(rand.Reader, 2048)), "rsa2": must(rsa.GenerateKey(rand.Reader, 2048)), "ed": must(ed, err),
		"p256": must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "p384": must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), "p521": must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
	}
})

type object = map[string]any

// jwk returns the public half of a signer as a JSON Web Key. Further members replace those it has; nil takes one away.
func jwk(signer, kid string, more object) object {
	b64 := base64.RawURLEncoding.EncodeToString
	k := object{"kid": kid, "use": "sig"}
	switch p := signers()[signer].Public().(type) {
	case *rsa.PublicKey:
		k["kty"], k["n"], k["e"] = "RSA", b64(p.N.Bytes()), b64(big.NewInt(int64(p.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := p.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(point) / 2
		k["kty"], k["crv"], k["x"], k["y"] = "EC", p.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", b64(p)
	}
	for name, value := range more {
		k[name] = value
		if value == nil {
			delete(k, name)
		}
	}
	return k
}

func jwks(keys ...object) string {
	text, err := json.Marshal(object{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// published is an address with keys. Its zero value answers 503.
type published struct {
	mu      sync.Mutex
	answer  func(*http.Request) (*http.Response, error)
	fetches int
}

func (p *published) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.fetches++
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return reply(http.StatusServiceUnavailable, ""), nil
	}
	return answer(r)
}

func (p *published) set(document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(*http.Request) (*http.Response, error) { return reply(http.StatusOK, document), nil }
}

func (p *published) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

func reply(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

const (
	issuerName = "https://id.example.com/"
	audience   = "loki"
	keysURL    = "https://id.example.com/keys"
)

// start returns an issuer whose keys are published by p. They are fetched until the test ends. It is called in a bubble.
func start(t *testing.T, p *published) *Issuer {
	t.Helper()
	keys := NewKeys(KeysOptions{URL: keysURL, HTTP: p})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { keys.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return New(Options{Issuer: issuerName, Audience: audience, SubjectClaim: "sub", ScopesClaim: "scope", Leeway: time.Minute, Keys: keys})
}

// claims returns those of a valid token of Alice. Further ones replace them; nil takes one away.
func claims(more object) jwt.MapClaims {
	c := jwt.MapClaims{"iss": issuerName, "aud": audience, "sub": "alice", "scope": "openid read:runs write", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range more {
		c[name] = value
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

// sign returns a token. An empty kid is left out.
func sign(t testing.TB, algorithm, kid string, key any, c jwt.MapClaims, header object) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(algorithm), c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	for name, value := range header {
		token.Header[name] = value
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func check(t *testing.T, i *Issuer, token, reason string) {
	t.Helper()
	who, err := i.Verify(t.Context(), netip.Addr{}, token)
	if auth.Reason(err) != reason || (err == nil) != (reason == "") || (err != nil) != (who.Subject == "") {
		t.Errorf("%+v, error %v, want %q", who, err, reason)
	}
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("rsa", "rsa", nil), jwk("p256", "p256", nil), jwk("p384", "p384", nil), jwk("ed", "ed", nil), jwk("rsa2", "only384", object{"alg": "RS384"})))
		i := start(t, p)
		for _, algorithm := range []string{"RS256 rsa", "RS384 rsa", "RS512 rsa", "PS256 rsa", "ES256 p256", "ES384 p384", "EdDSA ed"} {
			name, kid, _ := strings.Cut(algorithm, " ")
			who, err := i.Verify(t.Context(), netip.Addr{}, sign(t, name, kid, signers()[kid], claims(nil), nil))
			want := auth.Identity{Subject: "alice", KeyID: kid, Scopes: []auth.Scope{auth.ReadRuns, auth.Write}, Until: time.Unix(time.Now().Add(time.Hour).Unix(), 0).Add(time.Minute)}
			if diff := cmp.Diff(want, who); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", algorithm, err, diff)
			}
			if !i.Has(who) || i.Has(auth.Identity{Subject: "alice", KeyID: "other"}) {
				t.Errorf("%s: Has is wrong", algorithm)
			}
		}
		check(t, i, sign(t, "RS384", "only384", signers()["rsa2"], claims(nil), nil), "")
		check(t, i, sign(t, "RS256", "only384", signers()["rsa2"], claims(nil), nil), auth.ReasonAlgorithm)
		for kid, algorithm := range map[string]string{"rsa": "EdDSA", "p256": "EdDSA", "p384": "EdDSA"} { // the key is of another type
			check(t, i, sign(t, algorithm, kid, signers()["ed"], claims(nil), nil), auth.ReasonAlgorithm)
		}
		check(t, i, sign(t, "RS256", "p256", signers()["rsa"], claims(nil), nil), auth.ReasonAlgorithm)
		check(t, i, sign(t, "ES256", "p384", signers()["p256"], claims(nil), nil), auth.ReasonAlgorithm)
		check(t, i, sign(t, "RS256", "rsa", signers()["rsa2"], claims(nil), nil), auth.ReasonSignature)
		check(t, i, sign(t, "PS384", "rsa", signers()["rsa"], claims(nil), nil), auth.ReasonAlgorithm) // not one of ours
		check(t, i, sign(t, "ES512", "p256", signers()["p521"], claims(nil), nil), auth.ReasonAlgorithm)
	})
}

// TestAlgorithmConfusion signs with what all know: nothing, or the public key as the secret of an HMAC.
func TestAlgorithmConfusion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("rsa", "rsa", nil), jwk("ed", "ed", nil), object{"kty": "oct", "kid": "secret", "k": "c2VjcmV0"}))
		i := start(t, p)
		public := signers()["rsa"].Public()
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range [][]byte{
			der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), x509.MarshalPKCS1PublicKey(public.(*rsa.PublicKey)),
			public.(*rsa.PublicKey).N.Bytes(), signers()["ed"].Public().(ed25519.PublicKey), []byte("secret"),
			{},
		} {
			for _, kid := range []string{"rsa", "ed", "secret", ""} {
				for _, algorithm := range []string{"HS256", "HS384", "HS512"} {
					check(t, i, sign(t, algorithm, kid, secret, claims(nil), nil), auth.ReasonAlgorithm)
				}
				// A header that says RS256 does not help.
				forged := sign(t, "HS256", kid, secret, claims(nil), object{"alg": "RS256"})
				if _, err := i.Verify(t.Context(), netip.Addr{}, forged); err == nil {
					t.Error("a forged token is accepted")
				}
			}
		}
		none := sign(t, "none", "rsa", jwt.UnsafeAllowNoneSignatureType, claims(nil), nil)
		check(t, i, none, auth.ReasonAlgorithm)
		for _, alg := range []string{"none", "None", "NONE", "nOnE", "", "RS256\x00", "rs256"} {
			head, err := json.Marshal(object{"alg": alg, "kid": "rsa"})
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(none, ".")
			check(t, i, base64.RawURLEncoding.EncodeToString(head)+"."+rest, auth.ReasonAlgorithm)
		}
	})
}

func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("ed", "ed", nil)))
		i := start(t, p)
		in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
		for _, tt := range []struct {
			name   string
			claims object
			reason string
		}{
			{"several_audiences", object{"aud": []string{"x", audience}}, ""},
			{"other_audience", object{"aud": "other"}, auth.ReasonAudience},
			{"longer_audience", object{"aud": audience + "2"}, auth.ReasonAudience},
			{"no_audience", object{"aud": nil}, auth.ReasonAudience},
			{"audience_is_a_number", object{"aud": 1}, auth.ReasonAudience},
			{"other_issuer", object{"iss": strings.TrimSuffix(issuerName, "/")}, auth.ReasonIssuer},
			{"no_issuer", object{"iss": nil}, auth.ReasonIssuer},
			{"expired", object{"exp": in(-61 * time.Second)}, auth.ReasonExpired},
			{"expires_at_the_end_of_the_leeway", object{"exp": in(-60 * time.Second)}, auth.ReasonExpired},
			{"within_the_leeway", object{"exp": in(-59 * time.Second)}, ""},
			{"no_expiry", object{"exp": nil}, auth.ReasonClaims},
			{"expiry_is_text", object{"exp": "tomorrow"}, auth.ReasonClaims},
			{"not_yet", object{"nbf": in(61 * time.Second)}, auth.ReasonNotYet},
			{"soon", object{"nbf": in(60 * time.Second)}, ""},
			{"no_subject", object{"sub": nil}, auth.ReasonClaims},
			{"subject_is_a_number", object{"sub": 7}, auth.ReasonClaims},
			{"subject_of_nobody", object{"sub": auth.Anonymous}, auth.ReasonClaims},
			{"subject_with_line", object{"sub": "alice\nbob"}, auth.ReasonClaims},
			{"long_subject", object{"sub": strings.Repeat("a", 129)}, auth.ReasonClaims},
			{"no_scopes", object{"scope": nil}, ""},
			{"scopes_in_a_list", object{"scope": []string{"read:runs", "email"}}, ""},
			{"scopes_are_numbers", object{"scope": []int{1}}, auth.ReasonClaims},
			{"scopes_are_an_object", object{"scope": object{"read": true}}, auth.ReasonClaims},
		} {
			_, err := i.Verify(t.Context(), netip.Addr{}, sign(t, "EdDSA", "ed", signers()["ed"], claims(tt.claims), nil))
			if auth.Reason(err) != tt.reason || (err == nil) != (tt.reason == "") {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.reason)
			}
		}
		who, err := i.Verify(t.Context(), netip.Addr{}, sign(t, "EdDSA", "ed", signers()["ed"], claims(object{"scope": []string{"read:runs", "email", "read:runs", "*"}}), nil))
		if diff := cmp.Diff([]auth.Scope{auth.ReadRuns, auth.All}, who.Scopes); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func TestMalformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("ed", "ed", nil)))
		i := start(t, p)
		good := sign(t, "EdDSA", "ed", signers()["ed"], claims(nil), nil)
		parts := strings.Split(good, ".")
		for _, token := range []string{
			"", ".", "..", "a.b.c", "loki_0123456789ab_SECRET", parts[0] + "." + parts[1], good + ".", good + "." + parts[2], "." + parts[1] + "." + parts[2], parts[0] + ".." + parts[2],
			"bm90IGpzb24." + parts[1] + "." + parts[2], parts[0] + ".bm90IGpzb24." + parts[2], strings.Repeat("a", auth.MaxBearer+1), good + "=",
			sign(t, "EdDSA", "ed", signers()["ed"], claims(nil), object{"crit": []string{"exp"}}),
			sign(t, "EdDSA", "ed", signers()["ed"], claims(nil), object{"kid": 5}),
			sign(t, "EdDSA", "ed", signers()["ed"], claims(nil), object{"kid": ""}),
		} {
			check(t, i, token, auth.ReasonMalformed)
		}
		check(t, i, parts[0]+"."+parts[1]+".", auth.ReasonSignature)
		other := strings.Split(sign(t, "EdDSA", "ed", signers()["ed"], claims(object{"sub": "bob"}), nil), ".")
		check(t, i, parts[0]+"."+other[1]+"."+parts[2], auth.ReasonSignature)
		check(t, i, good, "")

		// What is logged is short, whatever is in the token.
		long := sign(t, "EdDSA", strings.Repeat("k", 4000), signers()["ed"], claims(nil), nil)
		if _, err := i.Verify(t.Context(), netip.Addr{}, long); err == nil || len(err.Error()) > 500 {
			t.Errorf("%d bytes are logged", len(err.Error()))
		}
	})
}

// TestRepeatedMembers signs tokens whose header or claims have a member twice, with values of which the last would be right.
func TestRepeatedMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("ed", "ed", nil)))
		i := start(t, p)
		signed := func(header, claims string) string {
			text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
			signature, err := signers()["ed"].Sign(rand.Reader, []byte(text), crypto.Hash(0))
			if err != nil {
				t.Fatal(err)
			}
			return text + "." + base64.RawURLEncoding.EncodeToString(signature)
		}
		const header = `{"alg":"EdDSA","kid":"ed"}`
		good, err := json.Marshal(claims(object{"act": object{"sub": "a:b"}}))
		if err != nil {
			t.Fatal(err)
		}
		check(t, i, signed(header, string(good)), "")
		for _, member := range []string{`"sub":"root"`, `"\u0073ub":"root"`, `"aud":"other"`, `"exp":1`, `"scope":"*"`, `"act":{}`, `"x":{"y":1,"y":2}`} {
			check(t, i, signed(header, "{"+member+","+string(good)[1:]), auth.ReasonMalformed)
		}
		for _, member := range []string{`"alg":"none"`, `"kid":"other"`, `"x":1,"x":2`} {
			check(t, i, signed("{"+member+","+header[1:], string(good)), auth.ReasonMalformed)
		}
		_, err = i.Verify(t.Context(), netip.Addr{}, signed(header, `{"sub":"root",`+string(good)[1:]))
		if err == nil || !strings.Contains(err.Error(), `its claims have the member "sub" more than once`) {
			t.Errorf("the log says %v", err)
		}
	})
}

// FuzzVerify has tokens of all kinds, of which only the first is signed with the issuer's key.
func FuzzVerify(f *testing.F) {
	p := new(published)
	keys := NewKeys(KeysOptions{URL: keysURL, HTTP: p})
	list, _, err := parse([]byte(jwks(jwk("ed", "ed", nil), jwk("rsa", "rsa", nil))))
	if err != nil {
		f.Fatal(err)
	}
	keys.keys, keys.asked = list, time.Now().Add(time.Hour) // nothing is fetched
	i := New(Options{Issuer: issuerName, Audience: audience, SubjectClaim: "sub", ScopesClaim: "scope", Keys: keys})
	good := sign(f, "EdDSA", "ed", signers()["ed"], claims(nil), nil)
	f.Add(good)
	f.Add(sign(f, "none", "ed", jwt.UnsafeAllowNoneSignatureType, claims(nil), nil))
	f.Add(sign(f, "HS256", "ed", []byte("x"), claims(object{"exp": 1e300, "aud": nil}), object{"crit": nil}))
	f.Add(sign(f, "RS256", "rsa", signers()["rsa2"], claims(object{"scope": []any{1}}), nil))
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, token string) {
		who, err := i.Verify(t.Context(), netip.Addr{}, token)
		if err == nil && token != good {
			t.Errorf("%q is accepted: %+v", token, who)
		}
		if e, ok := errors.AsType[*auth.TokenError](err); err != nil && (!ok || e.Reason == "" || e.Detail == "" || len(e.Detail) > 1000) {
			t.Errorf("%v", err)
		}
	})
}

// FuzzClaims has claims of all kinds, signed with the issuer's key.
func FuzzClaims(f *testing.F) {
	i := New(Options{Issuer: issuerName, Audience: audience, SubjectClaim: "sub", ScopesClaim: "scope", Keys: NewKeys(KeysOptions{URL: keysURL})})
	for _, c := range []object{{}, {"exp": 1e300}, {"nbf": -1e300}, {"aud": []any{"loki", nil}}, {"scope": []any{[]any{}}}, {"sub": []any{"a"}}, {"iss": nil}} {
		text, err := json.Marshal(claims(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := jwt.MapClaims{}
		if json.Unmarshal([]byte(text), &c) != nil {
			return
		}
		who, err := i.identity(&jwt.Token{Header: object{"kid": "k"}}, c)
		if err != nil {
			if auth.Reason(err) == "" || who.Subject != "" {
				t.Errorf("%+v, %v", who, err)
			}
			return
		}
		if auth.CheckSubject(who.Subject) != nil || who.KeyID != "k" || who.Until.IsZero() {
			t.Errorf("%+v", who)
		}
		for _, s := range who.Scopes {
			if !s.Known() {
				t.Errorf("scope %q", s)
			}
		}
	})
}

// TestGroups: groups in a form that is not expected are none, and do not make a token invalid.
func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		claim any
		want  []string
	}{
		{nil, nil},
		{"", nil},
		{"the authors", []string{"the authors"}},
		{[]any{"editors", "", 7, "authors"}, []string{"editors", "authors"}},
		{map[string]any{"editors": true}, nil},
		{true, nil},
	} {
		if got := groupsOf(tt.claim); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.claim, got, tt.want)
		}
	}
}
