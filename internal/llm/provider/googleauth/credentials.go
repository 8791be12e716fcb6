package googleauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// credentials are the parts of a credentials file that are checked before it is used.
type credentials struct {
	Type google.CredentialsType `json:"type"`

	// Of a user.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`

	// Of a service account.
	ClientEmail string `json:"client_email"`
	PrivateKey  string `json:"private_key"`
}

// fromFile gets a token for the credentials in data, which is the content of file.
func (s *Source) fromFile(ctx context.Context, file string, data []byte) (token, error) {
	var c credentials
	if err := json.Unmarshal(data, &c); err != nil {
		return token{}, rejectedError("the google credentials in %s are not a JSON object", file) // err may quote them
	}
	if c.Type == "" && c.RefreshToken != "" {
		c.Type, data = google.AuthorizedUser, withType(data, google.AuthorizedUser)
	}
	if err := c.check(file); err != nil {
		return token{}, err
	}
	requests := &recorder{next: cmp.Or(s.http.Transport, http.DefaultTransport), ctx: ctx}
	client := *s.http
	client.Transport = requests
	found, err := google.CredentialsFromJSONWithTypeAndParams(context.WithValue(ctx, oauth2.HTTPClient, &client), data, c.Type,
		google.CredentialsParams{Scopes: []string{scope}})
	if err != nil {
		return token{}, unusable(file, err)
	}
	t, err := found.TokenSource.Token()
	switch {
	case err == nil && t.AccessToken != "":
		return token{access: t.AccessToken, until: t.Expiry.Add(-early)}, nil
	case requests.err != nil:
		return token{}, c.refusal(ctx, file, requests.err)
	case ctx.Err() != nil:
		return token{}, wire.Failure(ctx, asking, ctx.Err())
	case requests.host != "":
		return token{}, wire.BadReply("the reply of "+requests.host+" holds no access token", nil) // it may hold others
	}
	return token{}, unusable(file, err)
}

// asking is what errors say was being done.
const asking = "getting a google access token"

// withType returns the JSON object with the member type.
func withType(object []byte, t google.CredentialsType) []byte {
	var members map[string]any
	_ = json.Unmarshal(object, &members) // was read before
	members["type"] = t
	data, _ := json.Marshal(members) // consists of what was read
	return data
}

// check returns an error for credentials of an unknown kind and for ones that lack something, for
// which the library would ask the server all the same.
func (c credentials) check(file string) error {
	switch c.Type {
	case google.AuthorizedUser:
		if c.ClientID == "" || c.ClientSecret == "" || c.RefreshToken == "" {
			return rejectedError("the google credentials in %s lack client_id, client_secret or refresh_token", file)
		}
	case google.ServiceAccount:
		if c.ClientEmail == "" || c.PrivateKey == "" {
			return rejectedError("the google credentials in %s lack client_email or private_key", file)
		}
	case google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount:
	case "":
		return rejectedError("%s holds no google credentials", file)
	default:
		return rejectedError("the google credentials in %s are of the unsupported type %q", file, c.Type)
	}
	return nil
}

// unusable returns the error for credentials that failed before a server was asked. What
// follows the first line of err is the output of a command, which may be a token.
func unusable(file string, err error) error {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return rejectedError("the google credentials in %s cannot be used: %s", file, reason)
}

// refusal returns the error for a request that failed with err.
func (c credentials) refusal(ctx context.Context, file string, err error) error {
	var refusal *oauthError
	if r, ok := errors.AsType[*wire.Rejection](err); ok {
		refusal = refusalOf(r.Err.Status, r.Body)
	}
	switch {
	case refusal == nil:
		return wire.Failure(ctx, asking, err)
	case refusal.Code == "invalid_grant" && c.Type == google.AuthorizedUser:
		return rejectedError("the login in %s is no longer valid (%s): run \"gcloud auth application-default login\"", file, refusal)
	}
	return rejectedError("google rejects the credentials in %s: %s", file, refusal)
}

// oauthError is an error reply of a token endpoint: RFC 6749, section 5.2.
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

// String returns the code and the description, if there is one.
func (e *oauthError) String() string {
	if e.Description == "" {
		return e.Code
	}
	return e.Code + ": " + e.Description
}

// refusalOf returns the error in a reply with a status that blames the request, nil if
// there is none.
func refusalOf(status int, body []byte) *oauthError {
	var e oauthError
	if status < 400 || status > 499 || status == http.StatusTooManyRequests || json.Unmarshal(body, &e) != nil || e.Code == "" {
		return nil
	}
	return &e
}

// recorder is a transport for one token. It remembers how its last request ended, because
// the library keeps the texts of errors only, and it gives all requests ctx, because the
// library leaves some without one. Its method is called by one goroutine.
type recorder struct {
	next http.RoundTripper
	ctx  context.Context // of the one call of Source.Token that this is made for

	err  error  // of the last request
	host string // that answered last, empty if none has
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req.WithContext(r.ctx))
	r.err = err
	if err == nil {
		r.host = req.URL.Host
	}
	return resp, err
}

// rejectedError returns the error for credentials that cannot be used.
func rejectedError(format string, args ...any) error {
	return &provider.Error{Kind: provider.Authentication, Msg: fmt.Sprintf(format, args...)}
}
