package oauth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// Store keeps the tokens of one client in a file that only its owner may read.
type Store struct{ File string }

// StoreIn returns the store of the client called name in a directory. Any name is allowed.
func StoreIn(dir, name string) Store {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, name)
	return Store{File: filepath.Join(dir, name+"_oauth_tokens.json")}
}

// tokenFile is the content of the file.
type tokenFile struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token,omitempty"`
	ExpiresAt    int64  `json:"expires_at"` // seconds since 1970; 0 is never
}

// Load returns the token, or an error that wraps [fs.ErrNotExist].
func (s Store) Load() (*oauth2.Token, error) {
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, err
	}
	var t tokenFile
	if err := json.Unmarshal(data, &t); err != nil || t.AccessToken == "" {
		return nil, fault.New(fault.Config, "%s holds no token", s.File)
	}
	token := &oauth2.Token{AccessToken: t.AccessToken, RefreshToken: t.RefreshToken}
	if t.ExpiresAt != 0 {
		token.Expiry = time.Unix(t.ExpiresAt, 0)
	}
	return token, nil
}

// Save replaces the stored token.
func (s Store) Save(token *oauth2.Token) error {
	t := tokenFile{AccessToken: token.AccessToken, RefreshToken: token.RefreshToken}
	if !token.Expiry.IsZero() {
		t.ExpiresAt = token.Expiry.Unix()
	}
	return SaveJSON(s.File, t)
}

// SaveJSON replaces a file that only its owner may read.
func SaveJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(data, '\n'), atomicfile.Options{Mode: atomicfile.Private})
}
