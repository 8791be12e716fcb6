package session

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"loki/internal/base/fault"
)

// ID identifies a session for good. It is a UUID (RFC 9562) in its usual form: 36
// lower-case characters.
type ID string

// NewID returns a random ID, of version 4.
func NewID() ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return FormatID(b, 4)
}

// FormatID returns the ID of version 1 to 8 whose other bits are those of b.
func FormatID(b [16]byte, version byte) ID {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// ParseID reads a UUID, in capitals too. Anything else is an error with code
// Usage.
func ParseID(text string) (ID, error) {
	if isUUID(text) {
		return ID(strings.ToLower(text)), nil
	}
	return "", fault.New(fault.Usage, "%q is not the id of a session", text).WithHint("an id has the form of a UUID; loki --list sessions lists the sessions")
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}
