package googleauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// defaultTokenURI is Google's token endpoint.
const defaultTokenURI = "https://oauth2.googleapis.com/token"

// maxTokenReply bounds the reply of a token endpoint, in bytes.
const maxTokenReply = 1 << 20

func (s *Source) forUser(ctx context.Context, file string, c credentials) (token, error) {
	if c.ClientID == "" || c.ClientSecret == "" || c.RefreshToken == "" {
		return token{}, rejected("the google credentials in %s lack client_id, client_secret or refresh_token", file)
	}
	return s.exchange(ctx, file, c, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret}, "refresh_token": {c.RefreshToken},
	})
}

func (s *Source) forServiceAccount(ctx context.Context, file string, c credentials) (token, error) {
	if c.ClientEmail == "" || c.PrivateKey == "" {
		return token{}, rejected("the google credentials in %s lack client_email or private_key", file)
	}
	assertion, err := s.assertion(c)
	if err != nil {
		return token{}, rejected("the private key in %s cannot be used: %v", file, err)
	}
	return s.exchange(ctx, file, c, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion},
	})
}

// assertion returns a JSON web token, signed with RS256, that asks for a token for the
// service account.
//
// Source: RFC 7523, and "Using OAuth 2.0 for Server to Server Applications" of Google.
func (s *Source) assertion(c credentials) (string, error) {
	key, err := parseKey(c.PrivateKey)
	if err != nil {
		return "", err
	}
	now := s.now()
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": c.PrivateKeyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": c.ClientEmail, "scope": scope, "aud": cmp.Or(c.TokenURI, defaultTokenURI),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// parseKey reads a private RSA key in PEM. Its errors hold nothing of the key.
func parseKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("not in PEM format")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("neither PKCS #8 nor PKCS #1")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("not an RSA key")
	}
	return key, nil
}

// exchange asks the token endpoint.
func (s *Source) exchange(ctx context.Context, file string, c credentials, form url.Values) (token, error) {
	endpoint := cmp.Or(c.TokenURI, defaultTokenURI)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, rejected("the google credentials in %s have a malformed token_uri", file)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	t, err := s.ask(ctx, s.http, req)
	refusal, refused := errors.AsType[*oauthError](err)
	switch {
	case err == nil:
		return t, nil
	case !refused:
		return token{}, wire.Failure(ctx, "getting a google access token", err)
	case refusal.Code == "invalid_grant" && c.RefreshToken != "":
		return token{}, rejected("the login in %s is no longer valid (%s): run \"gcloud auth application-default login\"", file, refusal)
	}
	return token{}, rejected("google rejects the credentials in %s: %s", file, refusal)
}

// oauthError is an error reply of a token endpoint: RFC 6749, section 5.2.
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e *oauthError) Error() string {
	if e.Description == "" {
		return e.Code
	}
	return e.Code + ": " + e.Description
}

// ask sends a request for a token. The error is an [*oauthError] if the server says no.
func (s *Source) ask(ctx context.Context, client *http.Client, req *http.Request) (token, error) {
	sent := s.now()
	resp, err := client.Do(req)
	if r, ok := errors.AsType[*wire.Rejection](err); ok {
		if refusal := refusalOf(r.Err.Status, r.Body); refusal != nil {
			return token{}, refusal
		}
	}
	if err != nil {
		return token{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenReply))
	if err != nil {
		return token{}, err
	}
	if resp.StatusCode != http.StatusOK {
		if refusal := refusalOf(resp.StatusCode, body); refusal != nil {
			return token{}, refusal
		}
		kind := provider.Transient
		if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			kind = provider.Authentication
		}
		return token{}, &provider.Error{Kind: kind, Status: resp.StatusCode, Msg: req.URL.Host + " gives no access token"}
	}
	var reply struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.AccessToken == "" {
		return token{}, wire.BadReply("the reply of "+req.URL.Host+" holds no access token", nil) // it may hold others
	}
	return token{access: reply.AccessToken, until: sent.Add(time.Duration(reply.ExpiresIn)*time.Second - early)}, nil
}

// refusalOf returns the error in a reply with a status that blames the request, nil if
// there is none.
func refusalOf(status int, body []byte) error {
	var e oauthError
	if status < 400 || status > 499 || status == http.StatusTooManyRequests || json.Unmarshal(body, &e) != nil || e.Code == "" {
		return nil
	}
	return &e
}
