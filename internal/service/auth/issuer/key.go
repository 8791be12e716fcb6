package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// key is one that is published.
type key struct {
	id        string // may be empty, and that of several keys
	algorithm string // the only one that it is for; "" for all that its type allows
	public    crypto.PublicKey
}

// choose returns the keys that may verify a token, at most four. named reports whether any of list is the one
// that the token names. The empty id names all.
func choose(list []key, id, algorithm string) (named bool, chosen []crypto.PublicKey) {
	for _, k := range list {
		if id != "" && k.id != id {
			continue
		}
		named = true
		if fits(algorithm, k.public) && (k.algorithm == "" || k.algorithm == algorithm) && len(chosen) < maxTried {
			chosen = append(chosen, k.public)
		}
	}
	return named, chosen
}

// fits reports whether a key can be one for an algorithm. So a token cannot choose how its key is used.
func fits(algorithm string, public crypto.PublicKey) bool {
	switch public := public.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]string{"RS256", "RS384", "RS512", "PS256"}, algorithm)
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && public.Curve == elliptic.P256() || algorithm == "ES384" && public.Curve == elliptic.P384()
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// Sizes of RSA keys, in bits. Smaller ones are weak (RFC 7518, section 3.3), larger ones slow.
const (
	minRSA = 2048
	maxRSA = 8192
)

// parseKey reads a JSON Web Key. The error says why no token can be verified with it.
//
// Source: RFC 7517, RFC 7518 section 6, RFC 8037.
func parseKey(text []byte) (key, error) {
	var j struct {
		Kty, Kid, Use, Alg, Crv, N, E, X, Y string
		KeyOps                              []string `json:"key_ops"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return key{}, err
	}
	if j.Use != "" && j.Use != "sig" || j.KeyOps != nil && !slices.Contains(j.KeyOps, "verify") {
		return key{}, errors.New("not a key for signatures")
	}
	if j.Alg != "" && !slices.Contains(algorithms(), j.Alg) {
		return key{}, fmt.Errorf("a key for %s", j.Alg)
	}
	k := key{id: j.Kid, algorithm: j.Alg}
	var err error
	switch j.Kty + " " + j.Crv {
	case "RSA ":
		k.public, err = rsaKey(j.N, j.E)
	case "EC P-256":
		k.public, err = ecKey(elliptic.P256(), j.X, j.Y)
	case "EC P-384":
		k.public, err = ecKey(elliptic.P384(), j.X, j.Y)
	case "OKP Ed25519":
		var x []byte
		if x, err = decode(j.X); len(x) != ed25519.PublicKeySize {
			return key{}, errors.New("not a key of Ed25519")
		}
		k.public = ed25519.PublicKey(x)
	default:
		return key{}, fmt.Errorf("a key of type %s %s", j.Kty, j.Crv)
	}
	return k, err
}

func decode(text string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(text) }

func rsaKey(n, e string) (*rsa.PublicKey, error) {
	modulus, err := decode(n)
	if err != nil {
		return nil, err
	}
	exponent, err := decode(e)
	if err != nil {
		return nil, err
	}
	k := &rsa.PublicKey{N: new(big.Int).SetBytes(modulus)}
	if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
		return nil, fmt.Errorf("an RSA key of %d bits", bits)
	}
	if big := new(big.Int).SetBytes(exponent); big.BitLen() < 32 {
		k.E = int(big.Int64())
	}
	if k.E < 3 || k.E%2 == 0 {
		return nil, errors.New("an RSA key with a strange exponent")
	}
	return k, nil
}

func ecKey(curve elliptic.Curve, x, y string) (*ecdsa.PublicKey, error) {
	size := (curve.Params().BitSize + 7) / 8
	point := []byte{4} // uncompressed
	for _, text := range []string{x, y} {
		coordinate, err := decode(text)
		if err != nil {
			return nil, err
		}
		if len(coordinate) != size {
			return nil, fmt.Errorf("a coordinate of %d bytes", len(coordinate))
		}
		point = append(point, coordinate...)
	}
	return ecdsa.ParseUncompressedPublicKey(curve, point)
}
