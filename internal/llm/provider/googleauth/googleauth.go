// Package googleauth finds application default credentials and turns them into access
// tokens for Google Cloud.
//
// # Terms
//
// An access token is what a request bears; it expires within the hour. Credentials are
// what tokens are issued for. A file holds those of a user (the refresh token that `gcloud
// auth application-default login` leaves), a service account (a private key), an external
// account (workload and workforce identity federation: a token of another provider, which
// a file, a URL, AWS or a command supplies), or an account that another of them
// impersonates. On Google's own machines the metadata server takes the place of a file.
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
// golang.org/x/oauth2/google exchanges credentials for tokens. The search, the errors and
// the metadata server are this package's own: the library ignores CLOUDSDK_CONFIG, and
// turns the causes of its errors into text.
//
// Errors name files and what the server says, and hold no secret.
package googleauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"loki/internal/llm/provider/wire"
)

// scope is the scope that tokens are asked for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// early is how long before its expiry a token is replaced.
const early = time.Minute

// Options configures a [Source]. The zero value of a field is its default.
type Options struct {
	Client string // the client's name in the configuration, for messages
	File   string // the credentials file; empty means that it is looked for

	// HTTP asks token endpoints, not the metadata server. It must be one for credentials, see
	// wire.Options. Nil means a client of [wire.NewClient].
	HTTP *http.Client

	Getenv func(string) string // nil means os.Getenv

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
		client: o.Client, file: o.File, http: o.HTTP, getenv: o.Getenv,
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
	if s.token.access != "" && time.Now().Before(s.token.until) {
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
			return token{}, rejectedError("the google credentials cannot be read: %v", err)
		}
	}
	t, err := s.fromMetadata(ctx)
	switch {
	case ctx.Err() != nil:
		return token{}, fmt.Errorf("%s: %w", askingMetadata, ctx.Err())
	case errors.Is(err, errNoServer):
		return token{}, rejectedError("client %q has no google credentials: run \"gcloud auth application-default login\", or set adc_file or GOOGLE_APPLICATION_CREDENTIALS to a credentials file", s.client)
	}
	return t, err
}

// credentialsFile returns the file to read, empty if there is no place for one, and
// whether the configuration or the environment names it.
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
