package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/service/postgres"
)

// Links makes and reads the tokens of links with which a question can be answered without a key.
type Links struct {
	key []byte
	now func() time.Time
}

// Link is what a token means: one question, as it was asked at one time. It is used up once that
// question does not wait any more.
type Link struct {
	Run      string    `json:"r"`
	Question string    `json:"q"`
	Asked    int64     `json:"a"` // nanoseconds since 1970
	Expires  time.Time `json:"e"`
}

// ErrLink says that a token is not one of these links, or that its time is over.
var ErrLink = errors.New("this link is not valid or has expired")

// OpenLinks returns the links whose key is in the file at path, which is made if it is not there. A nil now
// means time.Now.
func OpenLinks(path string, now func() time.Time) (*Links, error) {
	if now == nil {
		now = time.Now
	}
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		err = atomicfile.Write(path, key, atomicfile.Options{Mode: atomicfile.Private})
	}
	if err == nil && len(key) != sha256.Size {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a key of links: remove it")}
	}
	return &Links{key, now}, err
}

// SharedLinks returns the links of all servers that share a database, in which their key is. A nil now means time.Now.
func SharedLinks(ctx context.Context, db *postgres.DB, now func() time.Time) (*Links, error) {
	if now == nil {
		now = time.Now
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	err := sharedTables(db).Scan(ctx, []any{&key}, `INSERT INTO loki.keys (name, value) VALUES ('links', $1) ON CONFLICT (name) DO UPDATE SET value = keys.value RETURNING value`, key)
	return &Links{key, now}, err
}

// Token returns the token of a link: base64url of its JSON and of the HMAC of that, with a dot between.
func (l *Links) Token(link Link) (string, error) {
	text, err := json.Marshal(link)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(text) + "." + enc.EncodeToString(l.mac(text)), nil
}

// Read returns the link of a token, or [ErrLink].
func (l *Links) Read(token string) (Link, error) {
	first, second, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	mac, macErr := base64.RawURLEncoding.DecodeString(second)
	if err != nil || macErr != nil || !hmac.Equal(mac, l.mac(text)) {
		return Link{}, ErrLink
	}
	var link Link
	if err := json.Unmarshal(text, &link); err != nil || l.now().After(link.Expires) {
		return Link{}, ErrLink
	}
	return link, nil
}

func (l *Links) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write(text)
	return mac.Sum(nil)
}
