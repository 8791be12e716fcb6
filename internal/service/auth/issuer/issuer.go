// Package issuer checks the tokens that an issuer signs: JSON Web Tokens (RFC 7519), verified with the keys that it
// publishes, a JSON Web Key Set (RFC 7517). [Keys] fetches those keys and keeps them. [Issuer] has the rules that a
// token has to follow.
package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"loki/internal/base/value"
	"loki/internal/service/auth"
)

// Options configure New. All but GroupsClaim and Leeway are required.
type Options struct {
	Issuer       string        // the claim iss
	Audience     string        // is one of the claim aud
	SubjectClaim string        // the name of a claim with a text that [auth.CheckSubject] accepts
	ScopesClaim  string        // the name of a claim with scopes: a text with spaces between them, or a list of texts
	GroupsClaim  string        // the name of a claim with groups of the subject: a text, or a list of texts; "" for none
	Leeway       time.Duration // by which the clock of the issuer may differ
	Keys         *Keys
}

// Issuer verifies tokens. Its methods may be called from several goroutines.
type Issuer struct {
	o      Options
	parser *jwt.Parser
}

// algorithms returns the names of the ones with which a token may be signed. No such algorithm has a key that both sides know.
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"}
}

// New returns an issuer. The caller has its keys fetched with [Keys.Run].
func New(o Options) *Issuer {
	// The claims are checked here, where it can be said what exactly is wrong.
	return &Issuer{o, jwt.NewParser(jwt.WithValidMethods(algorithms()), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())}
}

// Verify returns who has the token: the subject, the scopes that are known, and as the id of the key that of the issuer's
// key. The address is not used. The error is an [*auth.TokenError] or that of ctx.
func (i *Issuer) Verify(ctx context.Context, _ netip.Addr, token string) (auth.Identity, error) {
	if len(token) > auth.MaxBearer {
		return auth.Identity{}, refusalError(auth.ReasonMalformed, "it has more than %d bytes", auth.MaxBearer)
	}
	claims := jwt.MapClaims{}
	t, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return i.candidates(ctx, t) })
	if err == nil {
		err = i.checkMembers(t, claims)
	}
	if err == nil {
		return i.identity(t, claims)
	}
	if e, ok := errors.AsType[*auth.TokenError](err); ok {
		return auth.Identity{}, e
	}
	switch {
	case ctx.Err() != nil:
		return auth.Identity{}, ctx.Err()
	case errors.Is(err, jwt.ErrTokenMalformed):
		return auth.Identity{}, refusalError(auth.ReasonMalformed, "it is not a JSON Web Token: %s", strings.TrimPrefix(err.Error(), jwt.ErrTokenMalformed.Error()+": "))
	case !slices.Contains(algorithms(), header(t, "alg")):
		return auth.Identity{}, refusalError(auth.ReasonAlgorithm, "it is signed with %.40q, and only %s are accepted", header(t, "alg"), strings.Join(algorithms(), ", "))
	}
	return auth.Identity{}, refusalError(auth.ReasonSignature, "its signature (%s) is not that of key %.100q", header(t, "alg"), header(t, "kid"))
}

// Has reports whether the issuer publishes the key of an identity.
func (i *Issuer) Has(who auth.Identity) bool { return i.o.Keys.has(who.KeyID) }

// header returns a text of the header of a token, "" if it has none of that name.
func header(t *jwt.Token, name string) string {
	text, _ := t.Header[name].(string)
	return text
}

// candidates returns the keys that may have signed a token.
func (i *Issuer) candidates(ctx context.Context, t *jwt.Token) (set jwt.VerificationKeySet, err error) {
	if _, ok := t.Header["crit"]; ok {
		return set, refusalError(auth.ReasonMalformed, "its header has extensions that have to be understood (crit), and none are")
	}
	if kid, ok := t.Header["kid"]; ok && header(t, "kid") == "" {
		return set, refusalError(auth.ReasonMalformed, "the kid of its header is %.40q", fmt.Sprint(kid))
	}
	keys, err := i.o.Keys.find(ctx, header(t, "kid"), t.Method.Alg())
	for _, k := range keys {
		set.Keys = append(set.Keys, k)
	}
	return set, err
}

// checkMembers refuses a token whose header or claims have a member more than once: other readers may take another one of them.
//
// Source: RFC 7515, section 4, and RFC 7519, section 4.
func (i *Issuer) checkMembers(t *jwt.Token, claims jwt.MapClaims) error {
	parts := strings.Split(t.Raw, ".")
	for n, decoded := range []map[string]any{t.Header, claims} {
		text, err := i.parser.DecodeSegment(parts[n])
		if err != nil {
			return err
		}
		if name, ok := value.RepeatedMember(text, decoded); ok {
			return refusalError(auth.ReasonMalformed, "its %s the member %.100q more than once", []string{"header has", "claims have"}[n], name)
		}
	}
	return nil
}

// identity returns who has a token whose signature is right.
func (i *Issuer) identity(t *jwt.Token, claims jwt.MapClaims) (who auth.Identity, err error) {
	now, quote := time.Now(), func(claim string) string { return fmt.Sprintf("%.200q", fmt.Sprint(claims[claim])) }
	audience, audErr := claims.GetAudience()
	expires, expErr := claims.GetExpirationTime()
	begins, nbfErr := claims.GetNotBefore()
	issuer, issErr := claims.GetIssuer()
	if err := errors.Join(audErr, expErr, nbfErr, issErr); err != nil {
		return who, refusalError(auth.ReasonClaims, "%v", err)
	}
	switch {
	case issuer != i.o.Issuer:
		return who, refusalError(auth.ReasonIssuer, "its issuer (iss) is %s, not %q", quote("iss"), i.o.Issuer)
	case !slices.Contains(audience, i.o.Audience):
		return who, refusalError(auth.ReasonAudience, "its audience (aud) is %s, without %q", quote("aud"), i.o.Audience)
	case expires == nil:
		return who, refusalError(auth.ReasonClaims, "it does not say when it expires (exp)")
	case !now.Before(expires.Add(i.o.Leeway)):
		return who, refusalError(auth.ReasonExpired, "it expired at %s", expires.UTC().Format(time.RFC3339))
	case begins != nil && now.Before(begins.Add(-i.o.Leeway)):
		return who, refusalError(auth.ReasonNotYet, "it is valid from %s on", begins.UTC().Format(time.RFC3339))
	}
	subject, _ := claims[i.o.SubjectClaim].(string)
	if err := auth.CheckSubject(subject); err != nil {
		return who, refusalError(auth.ReasonClaims, "its claim %s is %s: %v", i.o.SubjectClaim, quote(i.o.SubjectClaim), err)
	}
	scopes, ok := scopesOf(claims[i.o.ScopesClaim])
	if !ok {
		return who, refusalError(auth.ReasonClaims, "its claim %s is %s: want a text or a list of texts", i.o.ScopesClaim, quote(i.o.ScopesClaim))
	}
	return auth.Identity{Subject: subject, KeyID: header(t, "kid"), Scopes: scopes, Groups: groupsOf(claims[i.o.GroupsClaim]), Until: expires.Add(i.o.Leeway)}, nil
}

// groupsOf returns the groups in a claim, none if it is of another form than is expected.
func groupsOf(claim any) (list []string) {
	switch claim := claim.(type) {
	case string:
		if claim != "" {
			list = []string{claim}
		}
	case []any:
		for _, item := range claim {
			if name, ok := item.(string); ok && name != "" {
				list = append(list, name)
			}
		}
	}
	return list
}

// scopesOf returns the scopes in a claim. Those of other services are left out.
func scopesOf(claim any) (list []auth.Scope, ok bool) {
	var names []string
	switch claim := claim.(type) {
	case nil:
	case string:
		names = strings.Fields(claim)
	case []any:
		for _, item := range claim {
			name, ok := item.(string)
			if !ok {
				return nil, false
			}
			names = append(names, name)
		}
	default:
		return nil, false
	}
	for _, name := range names {
		if s := auth.Scope(name); s.Known() && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, true
}

func refusalError(reason, format string, args ...any) *auth.TokenError {
	return &auth.TokenError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
