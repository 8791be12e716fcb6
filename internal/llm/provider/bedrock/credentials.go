package bedrock

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"

	"loki/internal/llm/provider"
)

// source is where a client's credentials come from. Its methods may be called from
// several goroutines.
type source struct {
	client string
	region string
	getenv func(string) string
	proxy  func(*http.Request) (*url.URL, error)

	accessKeyID, secretAccessKey, sessionToken, apiKey func() (string, error)

	mu   sync.Mutex
	kept *aws.Config // of the chain, nil if it must be read; guarded by mu
}

// access is what one request is sent and signed with: keys or a bearer token.
type access struct {
	region string
	keys   aws.Credentials
	bearer string
}

// configure is a change of the SDK's options for one call.
func (a access) configure(o *bedrockruntime.Options) {
	o.Region = a.region
	if a.bearer != "" {
		o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: a.bearer}}
		o.AuthSchemePreference = []string{"httpBearerAuth"}
		return
	}
	o.AuthSchemePreference = []string{"sigv4"}
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return a.keys, nil })
}

// resolve looks for region and credentials. Errors are ready for the consumer.
func (s *source) resolve(ctx context.Context) (access, error) {
	var a access
	found, err := s.takeConfigured(&a)
	if err != nil {
		return access{}, err
	}
	found = found || s.environment(&a)
	a.region = cmp.Or(s.region, s.getenv("AWS_REGION"), s.getenv("AWS_DEFAULT_REGION"))
	switch {
	case !found:
		a.region, a.keys, err = s.fromChain(ctx, a.region)
	case a.region == "":
		a.region, err = s.profileRegion(ctx)
	}
	if err != nil {
		return access{}, err
	}
	if a.region == "" {
		return access{}, s.missingError("has no region: set " + s.variable("REGION") + " or AWS_REGION, or region in its configuration")
	}
	return a, nil
}

// variable returns the environment variable for a field of the client.
func (s *source) variable(field string) string {
	return strings.ToUpper(strings.ReplaceAll(s.client, "-", "_")) + "_" + field
}

func (s *source) missingError(what string) error {
	return &provider.Error{Kind: provider.Authentication, Msg: "client " + s.client + " " + what}
}

// takeConfigured takes the client's own credentials, and reports whether it has any.
func (s *source) takeConfigured(a *access) (bool, error) {
	for _, part := range []struct {
		name string
		get  func() (string, error)
		to   *string
	}{
		{"access_key_id", s.accessKeyID, &a.keys.AccessKeyID},
		{"secret_access_key", s.secretAccessKey, &a.keys.SecretAccessKey},
		{"session_token", s.sessionToken, &a.keys.SessionToken},
	} {
		if err := s.take(part.name, part.get, part.to); err != nil {
			return false, err
		}
	}
	switch k := a.keys; {
	case k.HasKeys():
		return true, nil
	case k.AccessKeyID != "":
		return false, s.missingError("has an access_key_id but no secret_access_key")
	case k.SecretAccessKey != "":
		return false, s.missingError("has a secret_access_key but no access_key_id")
	}
	a.keys = aws.Credentials{} // a session token alone is of no use
	err := s.take("api_key", s.apiKey, &a.bearer)
	return a.bearer != "", err
}

func (s *source) take(name string, get func() (string, error), to *string) error {
	if get == nil {
		return nil
	}
	v, err := get()
	if err != nil {
		return &provider.Error{Kind: provider.Authentication, Msg: name + " of client " + s.client, Err: err}
	}
	v = strings.TrimSpace(v)
	if strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return s.missingError("has a malformed " + name + ": it holds characters that none has")
	}
	*to = v
	return nil
}

// environment takes the credentials of the usual variables, and reports whether
// there are any.
func (s *source) environment(a *access) bool {
	if a.bearer = strings.TrimSpace(s.getenv("AWS_BEARER_TOKEN_BEDROCK")); a.bearer != "" {
		return true
	}
	keys := aws.Credentials{
		AccessKeyID: s.getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: s.getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: s.getenv("AWS_SESSION_TOKEN"),
	}
	if keys.HasKeys() {
		a.keys = keys
		return true
	}
	return false
}
