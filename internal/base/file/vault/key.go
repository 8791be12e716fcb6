package vault

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/crypto/chacha20poly1305"
)

const (
	// workFactor is the binary logarithm of scrypt's N for new keys.
	workFactor = 15

	// mostWork is the largest work factor that a file may ask for: 256 MiB and a second.
	mostWork = 18
)

// key is what the secrets of a vault are encrypted with.
type key [chacha20poly1305.KeySize]byte

func newKey() *key {
	k := new(key)
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// seal returns k encrypted with password, as an armored age file.
func (k *key) seal(password string, workFactor int) (string, error) {
	recipient, err := age.NewScryptRecipient(password)
	if err != nil {
		return "", err
	}
	recipient.SetWorkFactor(workFactor)
	var b bytes.Buffer
	armored := armor.NewWriter(&b)
	w, err := age.Encrypt(armored, recipient)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(k[:]); err != nil {
		return "", err
	}
	if err := errors.Join(w.Close(), armored.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

// openKey is the reverse of seal. Its error is [ErrPassword] or names the damage.
func openKey(sealed, password string) (*key, error) {
	identity, err := age.NewScryptIdentity(password)
	if err != nil {
		return nil, err
	}
	identity.SetMaxWorkFactor(mostWork)
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), identity)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return nil, ErrPassword
	}
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, chacha20poly1305.KeySize+1))
	if err != nil {
		return nil, err
	}
	if len(plain) != chacha20poly1305.KeySize {
		return nil, errors.New("it has not the length of a key")
	}
	return (*key)(plain), nil
}

// boundData returns the data to which encryption binds a secret: its name and its
// kind.
func boundData(name string) []byte { return []byte("loki vault 2 secret\x00" + name) }

// encrypt returns a secret as the file holds it: nonce, ciphertext and tag in base64.
func (k *key) encrypt(name, text string) string {
	aead, err := chacha20poly1305.NewX(k[:])
	if err != nil {
		panic(err) // the length is right
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(text)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.StdEncoding.EncodeToString(aead.Seal(nonce, nonce, []byte(text), boundData(name)))
}

// decrypt is the reverse of encrypt.
func (k *key) decrypt(name, stored string) (string, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(stored)
	if err != nil {
		return "", errors.New("it is not base64")
	}
	aead, err := chacha20poly1305.NewX(k[:])
	if err != nil {
		panic(err) // the length is right
	}
	if len(data) < aead.NonceSize()+aead.Overhead() {
		return "", fmt.Errorf("it is cut off after %d bytes", len(data))
	}
	text, err := aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], boundData(name))
	if err != nil {
		return "", errors.New("it does not decrypt")
	}
	return string(text), nil
}
