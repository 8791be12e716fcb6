package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"
)

// envelope is a secret in the older form, which is only read:
//
//	$VAULT;v1;argon2id;m=19456,t=2,p=1;salt=<base64>;nonce=<base64>;ct=<base64>
//
// Its key is Argon2id (RFC 9106) of the password and the salt, with m KiB of memory, t
// passes and p lanes; the cipher is XChaCha20-Poly1305, whose associated data are the four
// fields in front of the salt. Older still are envelopes with less associated data, and
// those whose key is all zeroes.
type envelope struct {
	head              string // the fields in front of the salt
	memory            uint32 // KiB
	passes            uint32
	lanes             uint8
	salt, nonce, text []byte
}

// Bounds on the cost of an envelope: it comes from a file, and must not exhaust the machine.
const (
	mostMemory = 256 << 10 // KiB
	mostPasses = 16
	mostLanes  = 16
)

const oldestHead = "$VAULT;v1"

func parseEnvelope(stored string) (envelope, error) {
	fields := strings.Split(strings.TrimSpace(stored), ";")
	if len(fields) != 7 || fields[0] != "$VAULT" {
		return envelope{}, errors.New("it is not an envelope")
	}
	if fields[1] != "v1" || fields[2] != "argon2id" {
		return envelope{}, fmt.Errorf("unknown form of envelope %s %s", quoteJSON(fields[1]), quoteJSON(fields[2]))
	}
	e := envelope{head: strings.Join(fields[:4], ";")}
	_, err := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &e.memory, &e.passes, &e.lanes)
	if err != nil || fields[3] != fmt.Sprintf("m=%d,t=%d,p=%d", e.memory, e.passes, e.lanes) {
		return envelope{}, errors.New("its parameters cannot be read")
	}
	if e.passes < 1 || e.passes > mostPasses || e.lanes < 1 || e.lanes > mostLanes || e.memory > mostMemory {
		return envelope{}, errors.New("its parameters are out of range")
	}
	for i, part := range []struct {
		name string
		dst  *[]byte
	}{{"salt", &e.salt}, {"nonce", &e.nonce}, {"ct", &e.text}} {
		text, ok := strings.CutPrefix(fields[4+i], part.name+"=")
		if *part.dst, err = base64.StdEncoding.DecodeString(text); !ok || err != nil {
			return envelope{}, fmt.Errorf("its %s cannot be read", part.name)
		}
	}
	if len(e.salt) < 8 || len(e.nonce) != chacha20poly1305.NonceSizeX || len(e.text) < chacha20poly1305.Overhead {
		return envelope{}, errors.New("it is cut off")
	}
	return e, nil
}

// open decrypts e; protected is false if that took no password.
func (e envelope) open(password string) (text string, protected bool, err error) {
	derived := argon2.IDKey([]byte(password), e.salt, e.passes, e.memory, e.lanes, chacha20poly1305.KeySize)
	for _, try := range []struct {
		key       []byte
		data      string
		protected bool
	}{
		{derived, e.head, true},
		{derived, oldestHead, true},
		{make([]byte, chacha20poly1305.KeySize), oldestHead, false},
	} {
		aead, err := chacha20poly1305.NewX(try.key)
		if err != nil {
			panic(err) // the length is right
		}
		if text, err := aead.Open(nil, e.nonce, e.text, []byte(try.data)); err == nil {
			return string(text), try.protected, nil
		}
	}
	return "", false, ErrPassword
}
