package issuer

import (
	"net/netip"
	"strings"
	"testing"
)

func BenchmarkVerify(b *testing.B) {
	for _, algorithm := range []string{"RS256 rsa", "PS256 rsa", "ES256 p256", "ES384 p384", "EdDSA ed"} {
		name, kid, _ := strings.Cut(algorithm, " ")
		b.Run(name, func(b *testing.B) {
			keys := NewKeys(KeysOptions{URL: keysURL})
			list, _, err := parse([]byte(jwks(jwk(kid, kid, nil))))
			if err != nil {
				b.Fatal(err)
			}
			keys.set(list, nil, nil)
			i := New(Options{Issuer: issuerName, Audience: audience, SubjectClaim: "sub", ScopesClaim: "scope", Keys: keys})
			token := sign(b, name, kid, signers()[kid], claims(nil), nil)
			for b.Loop() {
				if _, err := i.Verify(b.Context(), netip.Addr{}, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
