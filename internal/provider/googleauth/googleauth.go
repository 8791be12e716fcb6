// Package googleauth finds application default credentials and turns them into access
// tokens for Google Cloud.
//
// # Terms
//
// An access token is what a request bears; it expires within the hour. Credentials are
// what tokens are got for: of a user, a refresh token that `gcloud auth
// application-default login` has left in a file; of a service account, a private key
// that signs an assertion (RFC 7523); on Google's own machines, the metadata server.
//
// # Where credentials are looked for
//
//  1. the file that [Options] names
//  2. the file that GOOGLE_APPLICATION_CREDENTIALS names
//  3. application_default_credentials.json in the directory of gcloud, which is
//     CLOUDSDK_CONFIG, or %APPDATA%\gcloud on Windows, or ~/.config/gcloud
//  4. the metadata server
//
// Files are read when a token is needed, so that a new login takes effect at once.
// Errors name files and what the server says, and hold no secret.
package googleauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// scope is the scope that tokens are asked for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// early is how long before its expiry a token is replaced.
const early = time.Minute

// Options configures a [Source]. The zero value of a field is its default.
type Options struct {
	Client string // the client's name in the configuration, for messages
	File   string // the credentials file; empty means that it is looked for

	// HTTP asks token endpoints, not the metadata server. It has to be one for
	// credentials, see wire.Options. Nil means a client of [wire.NewClient].
	HTTP *http.Client

	Getenv func(string) string // nil means os.Getenv
	Now    func() time.Time    // nil means time.Now

	// MetadataHost is host and port of the metadata server. Empty means the variable
	// GCE_METADATA_HOST, or Google's.
	MetadataHost string
}

// Source is a source of access tokens. Its method may be called from several
// goroutines.
type Source struct {
	client       string
	file         string
	http         *http.Client
	getenv       func(string) string
	now          func() time.Time
	metadataHost string

	turn  chan struct{} // holds one element while token is in use
	token token
}

// token is an access token and the time until which it is used.
type token struct {
	access string
	until  time.Time
}

// New returns a source. It looks for nothing yet.
func New(o Options) (*Source, error) {
	s := &Source{
		client: o.Client, file: o.File, http: o.HTTP, getenv: o.Getenv, now: o.Now,
		metadataHost: o.MetadataHost, turn: make(chan struct{}, 1),
	}
	if s.http == nil {
		var err error
		if s.http, err = wire.NewClient(wire.Options{Client: o.Client, ReadTimeout: 30 * time.Second, Credentials: true}); err != nil {
			return nil, err
		}
	}
	if s.getenv == nil {
		s.getenv = os.Getenv
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Token returns an access token that is valid for at least a minute. One that is kept
// is used as long as that holds; several callers wait for one request. The error is a
// [*provider.Error] or wraps ctx's error.
func (s *Source) Token(ctx context.Context) (string, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for a google access token: %w", ctx.Err())
	}
	if s.token.access != "" && s.now().Before(s.token.until) {
		return s.token.access, nil
	}
	fresh, err := s.fetch(ctx)
	if err != nil {
		return "", err
	}
	s.token = fresh
	return fresh.access, nil
}

// fetch gets a token for the first credentials there are.
func (s *Source) fetch(ctx context.Context) (token, error) {
	file, required := s.credentialsFile()
	if file != "" {
		data, err := os.ReadFile(file)
		switch {
		case err == nil:
			return s.fromFile(ctx, file, data)
		case required || !errors.Is(err, fs.ErrNotExist):
			return token{}, rejected("the google credentials cannot be read: %v", err)
		}
	}
	t, err := s.fromMetadata(ctx)
	switch {
	case ctx.Err() != nil:
		return token{}, fmt.Errorf("asking the metadata server: %w", ctx.Err())
	case errors.Is(err, errNoServer):
		return token{}, rejected("client %q has no google credentials: run \"gcloud auth application-default login\", or set adc_file or GOOGLE_APPLICATION_CREDENTIALS to a credentials file", s.client)
	}
	return t, err
}

// credentialsFile returns the file to read, empty if there is no place for one, and
// whether somebody has named it.
func (s *Source) credentialsFile() (file string, required bool) {
	if s.file != "" {
		return s.file, true
	}
	if file := s.getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		return file, true
	}
	const name = "application_default_credentials.json"
	switch dir := s.getenv("CLOUDSDK_CONFIG"); {
	case dir != "":
		return filepath.Join(dir, name), false
	case runtime.GOOS == "windows" && s.getenv("APPDATA") != "":
		return filepath.Join(s.getenv("APPDATA"), "gcloud", name), false
	case s.getenv("HOME") != "":
		return filepath.Join(s.getenv("HOME"), ".config", "gcloud", name), false
	}
	return "", false
}

// credentials is a credentials file.
type credentials struct {
	Type string `json:"type"`

	// Of a user.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`

	// Of a service account.
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`

	TokenURI string `json:"token_uri"`
}

func (s *Source) fromFile(ctx context.Context, file string, data []byte) (token, error) {
	var c credentials
	if err := json.Unmarshal(data, &c); err != nil {
		return token{}, rejected("the google credentials in %s are not a JSON object", file) // err may quote them
	}
	switch {
	case c.Type == "authorized_user", c.Type == "" && c.RefreshToken != "":
		return s.forUser(ctx, file, c)
	case c.Type == "service_account":
		return s.forServiceAccount(ctx, file, c)
	case c.Type == "":
		return token{}, rejected("%s holds no google credentials", file)
	}
	return token{}, rejected("the google credentials in %s are of the unsupported type %q: those of users and service accounts can be used", file, c.Type)
}

// rejected returns the error for credentials that cannot be used.
func rejected(format string, args ...any) error {
	return &provider.Error{Kind: provider.Authentication, Msg: fmt.Sprintf(format, args...)}
}
