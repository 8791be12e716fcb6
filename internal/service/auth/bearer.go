package auth

import (
	"errors"
	"strings"
)

// The lengths of the longest key of [Keys], and of the longest key or token, in bytes.
const (
	maxKey    = 512
	MaxBearer = 8 << 10
)

// The errors of [Bearer]. Neither has a part of the header in it.
var (
	ErrNoKey     = errors.New("the request has no key")
	ErrMalformed = errors.New("the Authorization header is not of the form \"Bearer KEY\"")
)

// Bearer returns the key of the Authorization headers of a request: one header, the word
// Bearer in any case, spaces, and a key or token of 1 to [MaxBearer] visible ASCII characters. The error is
// [ErrNoKey] if there is no such header, otherwise [ErrMalformed].
func Bearer(headers []string) (key string, err error) {
	switch len(headers) {
	case 0:
		return "", ErrNoKey
	case 1:
	default:
		return "", ErrMalformed
	}
	scheme, key, _ := strings.Cut(headers[0], " ")
	key = strings.Trim(key, " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" || len(key) > MaxBearer {
		return "", ErrMalformed
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return "", ErrMalformed
		}
	}
	return key, nil
}
