package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Hash is what is kept of a key. Its text is that of the reference implementation of
// argon2: "$argon2id$v=19$m=65536,t=3,p=1$SALT$HASH", with m in KiB, and salt and hash in
// base64 without padding. The zero Hash matches no key.
//
// Source: RFC 9106.
type Hash struct {
	time, memory uint32 // passes, and KiB
	threads      uint8
	salt, sum    []byte
}

// What a new hash costs: about 100 ms. The keys themselves cannot be guessed, so it is a
// matter of hand-made ones.
const (
	hashTime   = 2
	hashMemory = 32 << 10
)

// Limits of what a hash may cost, so that a slip of the pen does not stop a server.
const (
	maxTime    = 64
	maxMemory  = 1 << 20 // 1 GiB
	maxThreads = 64
)

// ParseHash reads a hash. The error does not show text.
func ParseHash(text string) (Hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return Hash{}, errors.New("want an argon2id hash, as loki --key add writes it: $argon2id$v=19$m=...,t=...,p=...$SALT$HASH")
	}
	if parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return Hash{}, fmt.Errorf("want version %d of argon2id", argon2.Version)
	}
	var h Hash
	costs := strings.Split(parts[3], ",")
	if len(costs) != 3 {
		return Hash{}, errors.New("want the three costs m, t and p of argon2id")
	}
	for i, cost := range []struct {
		name        string
		least, most uint64
	}{{"m=", 8, maxMemory}, {"t=", 1, maxTime}, {"p=", 1, maxThreads}} {
		digits, named := strings.CutPrefix(costs[i], cost.name)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !named || err != nil || n < cost.least || n > cost.most {
			return Hash{}, fmt.Errorf("want %s%d to %d in an argon2id hash", cost.name, cost.least, cost.most)
		}
		switch i {
		case 0:
			h.memory = uint32(n)
		case 1:
			h.time = uint32(n)
		case 2:
			h.threads = uint8(n)
		}
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return Hash{}, errors.New("want 8 to 64 bytes of salt in base64 without padding in an argon2id hash")
	}
	if h.sum, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(h.sum) < 16 || len(h.sum) > 64 {
		return Hash{}, errors.New("want 16 to 64 bytes of hash in base64 without padding in an argon2id hash")
	}
	return h, nil
}

// String returns the text of h.
func (h Hash) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads, b64(h.salt), b64(h.sum))
}

// matches reports whether h is the hash of key. It takes the time and the memory that h
// says, whatever the result.
func (h Hash) matches(key string) bool {
	if len(h.sum) == 0 {
		return false
	}
	sum := argon2.IDKey([]byte(key), h.salt, h.time, h.memory, h.threads, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1
}

// hashOf returns a new hash of key.
func hashOf(key string) Hash {
	h := Hash{time: hashTime, memory: hashMemory, threads: 1, salt: make([]byte, 16)}
	_, _ = rand.Read(h.salt) // which does not fail
	h.sum = argon2.IDKey([]byte(key), h.salt, h.time, h.memory, h.threads, 32)
	return h
}

// NewKey makes a key that cannot be guessed. Its text has the id in it, so that a server
// knows which hash to compare it with: "loki_ID_SECRET".
func NewKey() (text, id string, h Hash) {
	var random [idBytes]byte
	_, _ = rand.Read(random[:])
	id = hex.EncodeToString(random[:])
	text = keyPrefix + id + "_" + rand.Text() + rand.Text()
	return text, id, hashOf(text)
}

const (
	keyPrefix = "loki_"
	idBytes   = 6
)

// madeHere reports whether id looks like one of [NewKey].
func madeHere(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && len(raw) == idBytes
}

// idOf returns the id in the text of a key that [NewKey] made, "" if it is another text.
func idOf(key string) string {
	rest, ours := strings.CutPrefix(key, keyPrefix)
	id, _, ok := strings.Cut(rest, "_")
	if !ours || !ok {
		return ""
	}
	return id
}

// CheckID returns what is wrong with the id of a key, nil if nothing is: 1 to 64 ASCII
// letters, digits, dots, dashes and underscores.
func CheckID(id string) error {
	strange := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	}
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, strange) {
		return errors.New("want an id of 1 to 64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// IDOfHash returns the id of a key that has none of its own: it follows from the text of the
// hash.
func IDOfHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
