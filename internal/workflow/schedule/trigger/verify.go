package trigger

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/run/webhook"
)

// Verify says how requests prove that they come from who knows the secret.
type Verify string

// The ways.
const (
	GitHub   Verify = "github"
	GitLab   Verify = "gitlab"
	Stripe   Verify = "stripe"
	Standard Verify = "standard" // Standard Webhooks
	HMAC     Verify = "hmac"
	Token    Verify = "token"
	None     Verify = "none" // for programs of the same machine
)

// Webhook is the part of a trigger that is about requests.
type Webhook struct {
	Verify                              Verify
	Secrets                             []string // one of which signs; each may refer to secrets
	Header, Prefix, Encoding, Algorithm string   // of HMAC; Header is also that of Token, "" for a bearer token
	IDHeader                            string   // has the id of a delivery; "" for the way's own
	MaxBody                             int      // bytes
	Rate                                Rate
}

// maxAge is how old a signature may be, and how far ahead the clock of the sender.
const maxAge = 300 * time.Second

// Headers with signatures.
const (
	gitHubHeader   = "X-Hub-Signature-256"
	gitLabHeader   = "X-Gitlab-Token"
	stripeHeader   = "Stripe-Signature"
	standardHeader = "Webhook-Signature"
	standardID     = "Webhook-Id"
	standardTime   = "Webhook-Timestamp"
)

func readWebhook(m *yamldoc.Map) *Webhook {
	w := &Webhook{Encoding: "hex", Algorithm: "sha256", MaxBody: 1 << 20, Rate: Rate{60, time.Minute}}
	m.Only("verify", "secret", "header", "prefix", "encoding", "algorithm", "id_header", "max_body_bytes", "rate")
	m.Require("verify")
	yamldoc.Choice(m, "verify", &w.Verify, GitHub, GitLab, Stripe, Standard, HMAC, Token, None)
	if n := m.Get("secret"); n != nil && n.Kind() == yamldoc.List {
		m.Strs("secret", &w.Secrets)
	} else if n != nil {
		w.Secrets = make([]string, 1)
		m.Str("secret", &w.Secrets[0])
	}
	switch {
	case w.Verify == None && w.Secrets != nil:
		m.Get("secret").Errorf("verify: none checks no secret")
	case w.Verify != None && len(w.Secrets) == 0:
		m.Require("secret")
	case slices.Contains(w.Secrets, ""):
		m.Get("secret").Errorf("is empty")
	}
	m.Str("header", &w.Header)
	m.Str("id_header", &w.IDHeader)
	if w.Verify == HMAC {
		m.Require("header")
		m.Str("prefix", &w.Prefix)
		yamldoc.Choice(m, "encoding", &w.Encoding, "hex", "base64")
		yamldoc.Choice(m, "algorithm", &w.Algorithm, "sha256", "sha512")
	}
	for key, ways := range map[string][]Verify{"header": {HMAC, Token}, "id_header": {HMAC, Token, None}, "prefix": {HMAC}, "encoding": {HMAC}, "algorithm": {HMAC}} {
		if w.Verify != "" && m.Has(key) && !slices.Contains(ways, w.Verify) {
			m.Get(key).KeyErrorf("verify: %s has no %s", w.Verify, key)
		}
	}
	m.Int("max_body_bytes", &w.MaxBody, 1, 25<<20)
	readRate(m, "rate", &w.Rate)
	return w
}

// ErrSignature is the error of a request that is not signed as it has to be. What is wrong is not for its sender.
var ErrSignature = errors.New("the signature is missing or not valid")

// Check returns an error that is [ErrSignature] unless a request is signed with one of the secrets, at about now.
func (w *Webhook) Check(r Request, secrets []string, now time.Time) error {
	signed := false
	for _, secret := range secrets { // all of them, so that the time it takes does not tell which
		if secret != "" && w.signed(r, secret, now) {
			signed = true
		}
	}
	if signed || w.Verify == None {
		return nil
	}
	return ErrSignature
}

func (w *Webhook) signed(r Request, secret string, now time.Time) bool {
	switch w.Verify {
	case GitHub:
		return signedBy(sha256.New, secret, r.Body, "sha256=", hex.DecodeString, r.Header.Get(gitHubHeader))
	case GitLab:
		if len(r.Header.Values(standardHeader)) == 0 {
			return same(r.Header.Get(gitLabHeader), secret)
		}
		return signedStandard(r, secret, now)
	case Stripe:
		return signedStripe(r, secret, now)
	case Standard:
		return signedStandard(r, secret, now)
	case HMAC:
		algorithm, decode := sha256.New, hex.DecodeString
		if w.Algorithm == "sha512" {
			algorithm = sha512.New
		}
		if w.Encoding == "base64" {
			decode = base64.StdEncoding.Strict().DecodeString
		}
		return signedBy(algorithm, secret, r.Body, w.Prefix, decode, r.Header.Get(w.Header))
	case Token:
		given := r.Header.Get(w.Header)
		if w.Header == "" {
			scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if !strings.EqualFold(scheme, "Bearer") {
				return false
			}
			given = token
		}
		return same(given, secret)
	}
	return false
}

// same compares two texts in a time that depends on neither.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// signedBy reports whether a header is a prefix and the HMAC of a text.
func signedBy(algorithm func() hash.Hash, secret string, text []byte, prefix string, decode func(string) ([]byte, error), header string) bool {
	encoded, ok := strings.CutPrefix(header, prefix)
	given, err := decode(encoded)
	mac := hmac.New(algorithm, []byte(secret))
	mac.Write(text)
	return ok && err == nil && hmac.Equal(given, mac.Sum(nil))
}

// fresh reads seconds since 1970, and reports whether they are about now.
func fresh(seconds string, now time.Time) (at time.Time, ok bool) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	at = time.Unix(n, 0)
	return at, err == nil && n > 0 && n < 1<<40 && now.Truncate(time.Second).Sub(at).Abs() <= maxAge
}

// signedStripe checks a header "t=TIME,v1=HEX,...", the HMAC of TIME.BODY.
//
// Source: https://docs.stripe.com/webhooks#verify-manually
func signedStripe(r Request, secret string, now time.Time) bool {
	var at string
	var signatures []string
	for item := range strings.SplitSeq(r.Header.Get(stripeHeader), ",") {
		switch key, text, _ := strings.Cut(strings.TrimSpace(item), "="); key {
		case "t":
			at = text
		case "v1":
			signatures = append(signatures, text)
		}
	}
	if _, ok := fresh(at, now); !ok {
		return false
	}
	signed := false
	for _, s := range signatures {
		if signedBy(sha256.New, secret, append([]byte(at+"."), r.Body...), "", hex.DecodeString, s) {
			signed = true
		}
	}
	return signed
}

// signedStandard checks the headers of Standard Webhooks.
func signedStandard(r Request, secret string, now time.Time) bool {
	at, ok := fresh(r.Header.Get(standardTime), now)
	id := r.Header.Get(standardID)
	if !ok || id == "" {
		return false
	}
	wanted, signed := webhook.Sign(secret, id, at, r.Body), false
	for given := range strings.FieldsSeq(r.Header.Get(standardHeader)) {
		if same(given, wanted) {
			signed = true
		}
	}
	return signed
}

// ID returns the id of a delivery: the sender's or, if there is none, the hash of the body.
func (w *Webhook) ID(r Request, d Delivery) string {
	id := ""
	switch w.Verify {
	case GitHub:
		id = r.Header.Get("X-GitHub-Delivery")
	case GitLab:
		if id = r.Header.Get("Idempotency-Key"); id == "" {
			id = r.Header.Get("X-Gitlab-Event-UUID")
		}
	case Stripe:
		v, _ := d[bodyKey].AsObject().Get("id")
		id, _ = v.AsString()
	case Standard:
		id = r.Header.Get(standardID)
	case Token, None:
		id = r.Header.Get("Idempotency-Key")
	}
	if w.IDHeader != "" {
		id = r.Header.Get(w.IDHeader)
	}
	if id != "" && len(id) <= 200 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return id
	}
	sum := sha256.Sum256(append([]byte(id+"\n"), r.Body...))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// public returns the headers of a request without secrets and signatures.
func (w *Webhook) public(all http.Header) http.Header {
	secret := []string{"Authorization", "Proxy-Authorization", "Cookie", gitHubHeader, "X-Hub-Signature", gitLabHeader, stripeHeader, standardHeader, http.CanonicalHeaderKey(w.Header)}
	public := make(http.Header)
	for name, texts := range all {
		if name = http.CanonicalHeaderKey(name); !slices.Contains(secret, name) {
			public[name] = texts
		}
	}
	return public
}

// WithoutSignature returns a request as it is kept, without its signature.
func (w *Webhook) WithoutSignature(r Request) Request {
	r.Header = w.public(r.Header)
	return r
}

// json returns the body of a request, of a form its field payload.
func (r Request) json() ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return r.Body, nil
	}
	_, wrong := value.ParseJSON(r.Body)
	if wrong == nil { // as curl -d sends it
		return r.Body, nil
	}
	form, err := url.ParseQuery(string(r.Body))
	if err != nil || len(form["payload"]) != 1 {
		return nil, fmt.Errorf("the content type says that the body is a form (%s), but it has no field payload, or several; as JSON, it is not valid: %w; expected is JSON with the content type application/json, or a form with the JSON in one field payload", kind, wrong)
	}
	return []byte(form.Get("payload")), nil
}
