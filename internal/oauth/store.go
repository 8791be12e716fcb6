package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/fault"
	"loki/internal/filelock"
)

// Store keeps the tokens of one client in a file that only its owner may read.
type Store struct{ File string }

// StoreIn returns the store of the client called name in a directory.
func StoreIn(dir, name string) Store {
	return Store{File: filepath.Join(dir, name+"_oauth_tokens.json")}
}

// stored is what the file holds.
type stored struct {
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
	var t stored
	if err := json.Unmarshal(data, &t); err != nil || t.AccessToken == "" {
		return nil, fault.New(fault.Config, "%s holds no token", s.File)
	}
	token := &oauth2.Token{AccessToken: t.AccessToken, RefreshToken: t.RefreshToken}
	if t.ExpiresAt != 0 {
		token.Expiry = time.Unix(t.ExpiresAt, 0)
	}
	return token, nil
}

// Save writes the token in place of the one before.
func (s Store) Save(token *oauth2.Token) error {
	t := stored{AccessToken: token.AccessToken, RefreshToken: token.RefreshToken}
	if !token.Expiry.IsZero() {
		t.ExpiresAt = token.Expiry.Unix()
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.File)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".tokens-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails once it is renamed
	_, err = temp.Write(append(data, '\n'))
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), s.File)
}

// Source hands out the token of one client. Its method may be called from several
// goroutines, and several processes may share a store.
type Source struct {
	// Provider returns where tokens are renewed. It is called when one has to be.
	Provider func() (Provider, error)
	Name     string // of the client
	Store    Store
	Now      func() time.Time // nil means time.Now

	mu    sync.Mutex
	token *oauth2.Token
}

// early is how long before its end a token is renewed, for the time that requests take.
const early = time.Minute

// lockTimeout bounds how long to wait for another process that renews the token.
const lockTimeout = requestTimeout + 5*time.Second

// Token returns a token that is valid for a while. Without one, or if it cannot be
// renewed, the error says how to log in.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.valid(s.token) {
		return s.token.AccessToken, nil
	}
	token, err := s.Store.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if token, err = s.grant(ctx); err != nil {
			return "", err
		}
	case err != nil:
		return "", s.again(err, "reading the token")
	case !s.valid(token):
		if token, err = s.renew(ctx); err != nil {
			return "", err
		}
	}
	s.token = token
	return token.AccessToken, nil
}

func (s *Source) valid(t *oauth2.Token) bool {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return t != nil && (t.Expiry.IsZero() || now().Add(early).Before(t.Expiry))
}

// again tells what failed, and that logging in helps.
func (s *Source) again(err error, doing string) error {
	return fault.Wrap(fault.Provider, err, "client %s: %s", s.Name, doing).WithHint("log in again: loki --authenticate %s", s.Name)
}

// grant gets the first token where no user is needed.
func (s *Source) grant(ctx context.Context) (*oauth2.Token, error) {
	p, err := s.Provider()
	if err != nil {
		return nil, err
	}
	if p.Flow != ClientCredentials {
		return nil, fault.New(fault.Provider, "client %s: nobody has logged in yet", s.Name).WithHint("log in: loki --authenticate %s", s.Name)
	}
	token, err := Login(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	return token, s.Store.Save(token)
}

// renew gets a new token for the expired one, once for all processes: many servers take
// a refresh token only once.
func (s *Source) renew(ctx context.Context) (*oauth2.Token, error) {
	p, err := s.Provider()
	if err != nil {
		return nil, err
	}
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := filelock.Open(lockCtx, s.Store.File+".lock")
	if err != nil {
		return nil, s.again(err, "renewing the token")
	}
	defer lock.Close()
	token, err := s.Store.Load() // perhaps another process has been here
	switch {
	case err != nil:
		return nil, s.again(err, "renewing the token")
	case s.valid(token):
		return token, nil
	case p.Flow == ClientCredentials:
		return s.grant(ctx)
	case token.RefreshToken == "":
		return nil, fault.New(fault.Provider, "client %s: the token has expired", s.Name).WithHint("log in again: loki --authenticate %s", s.Name)
	}
	// Whatever the library thinks of the time, the token is renewed.
	expired := &oauth2.Token{RefreshToken: token.RefreshToken}
	renewed, err := p.config(p.RedirectURI).TokenSource(p.withClient(ctx), expired).Token()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.again(p.failed("renewing the token", err), "the token has expired")
	}
	if renewed.RefreshToken == "" {
		renewed.RefreshToken = token.RefreshToken
	}
	return renewed, s.Store.Save(renewed)
}
