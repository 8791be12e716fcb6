package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/service/auth"
)

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("rsa", "old", nil)))
		i := start(t, p)
		old, next := sign(t, "RS256", "old", signers()["rsa"], claims(nil), nil), sign(t, "RS256", "next", signers()["rsa2"], claims(nil), nil)
		check(t, i, old, "")
		p.set(jwks(jwk("rsa", "old", nil), jwk("rsa2", "next", nil)))
		check(t, i, next, "") // fetched at once
		check(t, i, old, "")
		p.set(jwks(jwk("rsa2", "next", nil)))
		check(t, i, old, "") // it is not known yet that it is gone

		// Another unknown id within a minute does not cause a fetch.
		fetches := p.count()
		for n := range 1000 {
			check(t, i, sign(t, "EdDSA", fmt.Sprint("guess", n), signers()["ed"], claims(nil), nil), auth.ReasonUnknownKey)
		}
		if got := p.count(); got != fetches {
			t.Errorf("%d fetches", got-fetches)
		}
		time.Sleep(time.Minute)
		check(t, i, sign(t, "EdDSA", "guess", signers()["ed"], claims(nil), nil), auth.ReasonUnknownKey)
		if got := p.count(); got != fetches+1 {
			t.Errorf("%d fetches", got-fetches)
		}
		check(t, i, old, auth.ReasonUnknownKey)

		// Without unknown ids the keys are fetched every hour.
		p.set(jwks(jwk("rsa", "old", nil)))
		time.Sleep(time.Hour + time.Second)
		check(t, i, sign(t, "RS256", "old", signers()["rsa"], claims(nil), nil), "")
	})
}

func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		i := start(t, p)
		token := sign(t, "EdDSA", "ed", signers()["ed"], claims(object{"exp": time.Now().Add(24 * time.Hour).Unix()}), nil)
		check(t, i, token, auth.ReasonUnavailable)
		time.Sleep(10 * time.Minute)
		if n := p.count(); n < 12 || n > 18 { // 1, 2, 4 ... 60 seconds apart
			t.Errorf("%d fetches in 10 minutes", n)
		}
		check(t, i, token, auth.ReasonUnavailable)
		p.set(jwks(jwk("ed", "ed", nil)))
		time.Sleep(time.Minute)
		check(t, i, token, "")

		// Later the keys that are known stay, and those that are not known are refused.
		p.mu.Lock()
		p.answer = func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }
		p.mu.Unlock()
		time.Sleep(3 * time.Hour)
		check(t, i, token, "")
		check(t, i, sign(t, "EdDSA", "other", signers()["ed"], claims(nil), nil), auth.ReasonUnknownKey)
	})
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		document := jwks(jwk("ed", "ed", nil))
		p.answer = func(r *http.Request) (*http.Response, error) {
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(8 * time.Second):
				return reply(http.StatusOK, document), nil
			}
		}
		i := start(t, p)
		token := sign(t, "EdDSA", "ed", signers()["ed"], claims(nil), nil)
		begun := time.Now()
		check(t, i, token, auth.ReasonUnavailable) // at once
		if took := time.Since(begun); took != 0 {
			t.Errorf("it takes %v", took)
		}
		time.Sleep(9 * time.Second)
		check(t, i, token, "")

		// Requests with an unknown key wait for a while, and not too many do.
		var all sync.WaitGroup
		var refused atomic.Int32
		begun = time.Now()
		unknown := sign(t, "EdDSA", "unknown", signers()["ed"], claims(nil), nil)
		for range 2 * maxWaiting {
			all.Go(func() {
				_, err := i.Verify(t.Context(), netip.Addr{}, unknown)
				if auth.Reason(err) != auth.ReasonUnavailable {
					t.Errorf("error %v", err)
				}
				if time.Since(begun) == 0 {
					refused.Add(1)
				}
			})
		}
		all.Wait()
		if n := refused.Load(); n != maxWaiting || time.Since(begun) != patience {
			t.Errorf("%d are refused at once, the others after %v", n, time.Since(begun))
		}
		check(t, i, token, "")

		// One that does not answer at all is given up.
		p.mu.Lock()
		p.answer = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		p.mu.Unlock()
		time.Sleep(2 * time.Hour)
		if n := p.count(); n < 20 {
			t.Errorf("%d fetches", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := i.Verify(ctx, netip.Addr{}, sign(t, "EdDSA", "gone", signers()["ed"], claims(nil), nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has gone: %v", err)
		}
	})
}

func TestDocuments(t *testing.T) {
	many := make([]object, maxKeys+1)
	for n := range many {
		many[n] = jwk("ed", fmt.Sprint(n), nil)
	}
	for _, tt := range []struct {
		name, document string
		want           string // a part of the error
	}{
		{"huge", `{"keys":[],"x":"` + strings.Repeat("x", maxDocument) + `"}`, "more than 1048576 bytes"},
		{"huge_key", jwks(object{"kty": "RSA", "n": strings.Repeat("A", maxDocument)}), "more than 1048576 bytes"},
		{"many_keys", jwks(many...), "101 keys"},
		{"html", "<html>", "not a JSON Web Key Set"},
		{"empty", "", "not a JSON Web Key Set"},
		{"one_key", `{"kty":"RSA"}`, "it has no list keys"},
		{"keys_is_text", `{"keys":"x"}`, "not a JSON Web Key Set"},
		{"none", `{"keys":[]}`, ""},
		{"nonsense", `{"keys":[null,1,"x",{},{"kty":"EC","crv":"P-256"}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := new(published)
			p.set(tt.document)
			keys, _, err := NewKeys(KeysOptions{URL: keysURL, HTTP: p}).fetch(t.Context())
			if tt.want == "" {
				if err != nil || keys == nil || len(keys) != 0 {
					t.Errorf("%v, %v", keys, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	to := func(location string) *published {
		return &published{answer: func(r *http.Request) (*http.Response, error) {
			if r.URL.String() == "https://id.example.com/moved" {
				return reply(http.StatusOK, `{"keys":[]}`), nil
			}
			a := reply(http.StatusFound, "")
			a.Header.Set("Location", location)
			return a, nil
		}}
	}
	for location, want := range map[string]string{
		"/moved": "", "http://id.example.com/moved": "https only", "file:///etc/passwd": "not an address", keysURL: "more than three times",
	} {
		_, _, err := NewKeys(KeysOptions{URL: keysURL, HTTP: to(location)}).fetch(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", location, err)
		}
	}
}

func TestKeyIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(published)
		p.set(jwks(jwk("rsa", "twice", nil), jwk("rsa2", "twice", nil), jwk("ed", "twice", nil), jwk("p256", "", object{"kid": nil})))
		i := start(t, p)
		for _, key := range []string{"rsa", "rsa2"} {
			check(t, i, sign(t, "RS256", "twice", signers()[key], claims(nil), nil), "")
		}
		check(t, i, sign(t, "EdDSA", "twice", signers()["ed"], claims(nil), nil), "")
		check(t, i, sign(t, "ES256", "twice", signers()["p256"], claims(nil), nil), auth.ReasonAlgorithm)

		// A token without kid is one of any key that fits, also of one without kid.
		check(t, i, sign(t, "ES256", "", signers()["p256"], claims(nil), nil), "")
		check(t, i, sign(t, "RS256", "", signers()["rsa2"], claims(nil), nil), "")
		check(t, i, sign(t, "RS256", "", signers()["rsa"], claims(nil), nil), "")
		check(t, i, sign(t, "ES384", "", signers()["p384"], claims(nil), nil), auth.ReasonAlgorithm)
		check(t, i, sign(t, "ES256", "p256", signers()["p256"], claims(nil), nil), auth.ReasonUnknownKey)
	})
	var list []key
	for range 10 {
		list = append(list, key{public: signers()["ed"].Public()})
	}
	if _, chosen := choose(list, "", "EdDSA"); len(chosen) != maxTried {
		t.Errorf("a token without kid is tried with %d keys", len(chosen))
	}
}

func TestParseKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  object
		ok   bool
	}{
		{"rsa", jwk("rsa", "a", nil), true},
		{"without_use", jwk("rsa", "a", object{"use": nil}), true},
		{"for_verifying", jwk("rsa", "a", object{"key_ops": []string{"verify"}}), true},
		{"for_encryption", jwk("rsa", "a", object{"use": "enc"}), false},
		{"for_signing", jwk("rsa", "a", object{"key_ops": []string{"sign"}}), false},
		{"for_hmac", jwk("rsa", "a", object{"alg": "HS256"}), false},
		{"small", jwk("rsa", "a", object{"n": "w7Zdfmece8iaB0kiTY8pCtiBtzbptJmP28nSWwtdjRu0f2GFpajvWE4VhfJAjEsOcwYzay7XGN0b-X84BfC8hmCTOj2b2eHT7NsZegFPKRUQzJ9wW8ipn_aDJWMGDuB1XyqT1E7DYqjUCEOD1b4FLpy_xPn6oV_TYOfQ9fZdbE5HGxJUzekuGcOKqOQ8M7wfYHhHHLxGpQVgL0apWuP2gDDOdTtpuld4D2LK1MZK99s9gaSjRHE8JDb1Z4IGhEcEyzkxswVdPndUWzfvWBBWXWxtSUvQGBRkuy1BHOa4sP6FKjWEeeF7gm7UMs2Nm2QUgNZw6xvEDGaLk4KASdIxR"[:172]}), false},
		{"exponent_of_one", jwk("rsa", "a", object{"e": "AQ"}), false},
		{"even_exponent", jwk("rsa", "a", object{"e": "BA"}), false},
		{"large_exponent", jwk("rsa", "a", object{"e": "AQAAAAE"}), false},
		{"rsa_without_n", jwk("rsa", "a", object{"n": nil}), false},
		{"p256", jwk("p256", "a", nil), true},
		{"p384", jwk("p384", "a", nil), true},
		{"p521", jwk("p521", "a", nil), false},
		{"other_curve", jwk("p256", "a", object{"crv": "P-384"}), false},
		{"not_on_the_curve", jwk("p256", "a", object{"x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}), false},
		{"ed", jwk("ed", "a", nil), true},
		{"short_ed", jwk("ed", "a", object{"x": "AAAA"}), false},
		{"padding", jwk("ed", "a", object{"x": "AAAA===="}), false},
		{"secret", object{"kty": "oct", "k": "AAAA"}, false},
		{"kid_is_a_number", jwk("ed", "a", object{"kid": 1}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, skipped, err := parse([]byte(jwks(tt.key)))
			if err != nil || (len(keys) == 1) != tt.ok || len(keys)+skipped != 1 {
				t.Errorf("%v, %d skipped, error %v", keys, skipped, err)
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://id.example.com/keys": true, "http://127.0.0.1:8080/keys": true, "http://[::1]/keys": true, "http://localhost/keys": true,
		"http://id.example.com/keys": false, "http://localhost.example.com/": false, "ftp://id.example.com": false, "https:///keys": false, "keys": false, "": false,
	} {
		if err := CheckURL(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte(jwks(jwk("rsa", "rsa", nil), jwk("p256", "p256", nil), jwk("p384", "p384", object{"alg": "ES384"}), jwk("ed", "", nil))))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"},null,{"kty":"EC","crv":"P-256","x":"","y":""}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, skipped, err := parse(document)
		if err != nil {
			return
		}
		if len(keys)+skipped > maxKeys {
			t.Errorf("%d keys", len(keys))
		}
		for _, k := range keys {
			n := 0
			for _, algorithm := range algorithms() {
				if fits(algorithm, k.public) {
					n++
				}
			}
			if n == 0 || fits("HS256", k.public) || fits("none", k.public) {
				t.Errorf("%+v", k)
			}
		}
	})
}
