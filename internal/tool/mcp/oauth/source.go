package oauth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// Source returns the token of one client. Its methods may be called from several
// goroutines, and several processes may share a store.
type Source struct {
	// Provider returns the provider that renews tokens. It is called only when a
	// token must be renewed.
	Provider func() (Provider, error)
	Name     string // of the client
	Store    Store
	Now      func() time.Time // nil means time.Now

	// Seen, if not nil, is called with each token that is read or obtained, before it is
	// used.
	Seen func(*oauth2.Token)

	// turn is held by the goroutine that uses token. It is a channel of one place, so
	// that waiting for a renewal can be canceled.
	begin   sync.Once
	turn    chan struct{}
	token   *oauth2.Token
	refused string // access token that the server did not accept, whatever its expiry says
}

const (
	// early is how long before its end a token is renewed, for the time that requests take.
	early = time.Minute

	// lockTimeout bounds how long to wait for another process that renews the token.
	lockTimeout = requestTimeout + 5*time.Second

	// grace is how long a renewal may continue after its caller was canceled. Many servers
	// accept a refresh token only once: if the new one is lost, the user has to log in
	// again.
	grace = 3 * time.Second

	// assumedLifetime is the lifetime of a renewable token whose lifetime the server
	// does not state.
	assumedLifetime = time.Hour
)

// Token returns a token that is valid for a while. Without one, or if it cannot be
// renewed, the error says how to log in. A token that cannot be renewed in time is
// returned until it expires.
func (s *Source) Token(ctx context.Context) (string, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if s.valid(s.token) {
		return s.token.AccessToken, nil
	}
	token, err := s.load()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", s.again(err, "reading the token")
	case err == nil && s.valid(token):
		s.token = token
		return token.AccessToken, nil
	}
	renewed, err := s.obtain(ctx)
	if err != nil {
		if token != nil && ctx.Err() == nil && s.now().Before(token.Expiry) {
			return token.AccessToken, nil
		}
		return "", err
	}
	s.token = renewed
	return renewed.AccessToken, nil
}

// Reject notes that the server did not accept a token: the next call of Token renews it, unless another process has.
func (s *Source) Reject(ctx context.Context, token string) {
	if leave, err := s.enter(ctx); err == nil {
		s.refused = token
		leave()
	}
}

// enter waits until no other goroutine uses the token.
func (s *Source) enter(ctx context.Context) (leave func(), err error) {
	s.begin.Do(func() { s.turn = make(chan struct{}, 1) })
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Source) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// load returns the token in the store.
func (s *Source) load() (*oauth2.Token, error) {
	token, err := s.Store.Load()
	if err == nil {
		s.see(token)
	}
	return token, err
}

func (s *Source) see(token *oauth2.Token) {
	if s.Seen != nil {
		s.Seen(token)
	}
}

func (s *Source) valid(t *oauth2.Token) bool {
	return t != nil && t.AccessToken != s.refused && (t.Expiry.IsZero() || s.now().Add(early).Before(t.Expiry))
}

// withLifetime returns t, with an expiry if it can be renewed.
func withLifetime(t *oauth2.Token, now time.Time) *oauth2.Token {
	if t.Expiry.IsZero() && t.RefreshToken != "" {
		t.Expiry = now.Add(assumedLifetime)
	}
	return t
}

// again returns an error with the hint to log in again.
func (s *Source) again(err error, doing string) error {
	return fault.Wrap(fault.Provider, err, "client %s: %s", s.Name, doing).WithHint("log in again: loki --authenticate %s", s.Name)
}

// obtain gets and stores a new token, once for all processes: many servers accept a
// refresh token only once.
func (s *Source) obtain(ctx context.Context) (*oauth2.Token, error) {
	p, err := s.Provider()
	if err != nil {
		return nil, err
	}
	if p.Flow == ClientCredentials { // without a login, the directory may be missing
		if err := os.MkdirAll(filepath.Dir(s.Store.File), 0o700); err != nil {
			return nil, fault.Wrap(fault.Failure, err, "client %s: storing the token", s.Name)
		}
	} else if _, err := s.load(); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Provider, "client %s: not logged in yet", s.Name).WithHint("log in: loki --authenticate %s", s.Name)
	}
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := atomicfile.OpenLocked(lockCtx, s.Store.File+".lock")
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fault.Wrap(fault.Failure, err, "client %s: renewing the token", s.Name)
	}
	defer lock.Close()
	token, err := s.load()
	switch {
	case err == nil && s.valid(token): // another process has renewed it
		return token, nil
	case p.Flow == ClientCredentials:
		token, err = Login(ctx, p, nil)
	case err == nil:
		token, err = s.renew(ctx, p, token)
	default:
		err = s.again(err, "reading the token")
	}
	if err != nil {
		return nil, err
	}
	s.see(token)
	if err := s.Store.Save(token); err != nil {
		return nil, fault.Wrap(fault.Failure, err, "client %s: storing the token", s.Name)
	}
	return token, nil
}

// renew exchanges the refresh token of an expired token.
func (s *Source) renew(ctx context.Context, p Provider, expired *oauth2.Token) (*oauth2.Token, error) {
	if expired.RefreshToken == "" {
		return nil, fault.New(fault.Provider, "client %s: the token has expired", s.Name).WithHint("log in again: loki --authenticate %s", s.Name)
	}
	lasting, cancel := outlast(ctx, grace)
	defer cancel()
	// Without an access token the library treats the token as expired, whatever its
	// expiry.
	ask := &oauth2.Token{RefreshToken: expired.RefreshToken}
	renewed, err := p.config(p.RedirectURI).TokenSource(p.withClient(lasting), ask).Token()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			err = errors.New(refusal(e))
		}
		return nil, s.again(err, "the token has expired and cannot be renewed")
	}
	if renewed.RefreshToken == "" {
		renewed.RefreshToken = expired.RefreshToken
	}
	return withLifetime(renewed, s.now()), nil
}

// outlast returns a context that ends some time after ctx.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(by)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-lasting.Done():
		}
	})
	return lasting, func() {
		stop()
		cancel()
	}
}
