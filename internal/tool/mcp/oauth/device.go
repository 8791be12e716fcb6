package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
)

// device runs the flow of RFC 8628. The library asks for the token, and slows down when
// the server requests it.
func (p Provider) device(ctx context.Context, user User) (*oauth2.Token, error) {
	begun, err := p.deviceCode(ctx)
	if err != nil {
		return nil, err
	}
	if err := user.Visit(cmp.Or(begun.VerificationURIComplete, begun.VerificationURI), begun.UserCode); err != nil {
		return nil, err
	}
	for failures := 0; ; failures++ {
		token, err := p.config("").DeviceAccessToken(ctx, begun)
		e, answer := errors.AsType[*oauth2.RetrieveError](err)
		switch {
		case err == nil || ctx.Err() != nil:
			return token, err
		case answer && e.ErrorCode == "expired_token", !begun.Expiry.IsZero() && !time.Now().Before(begun.Expiry):
			return nil, p.notAgreed("the code expired before it was entered")
		case answer && e.ErrorCode == "access_denied":
			return nil, p.notAgreed("refused: " + refusal(e))
		case answer || failures == mostFailures:
			return nil, err
		}
		// The server did not answer. The user is busy elsewhere and need not know.
		// The interval doubles (RFC 8628, section 3.5).
		begun.Interval = 2 * cmp.Or(begun.Interval, 5)
	}
}

// mostFailures is how often in a row the server may be unreachable while the program
// waits for the user to enter the code.
const mostFailures = 5

func (p Provider) notAgreed(text string) error {
	return fault.New(fault.Provider, "%s", text).WithHint("try again: loki --authenticate %s", p.Name)
}

// maxReply is how much of a reply is read, in bytes.
const maxReply = 1 << 20

// deviceCode asks for the code that the user enters. The library would do so without ctx,
// and would not report why a server refuses.
func (p Provider) deviceCode(ctx context.Context) (*oauth2.DeviceAuthResponse, error) {
	form := url.Values{"client_id": {p.ClientID}}
	if len(p.Scopes) > 0 {
		form.Set("scope", strings.Join(p.Scopes, " "))
	}
	for _, param := range p.ExtraParams {
		form.Set(param.Name, param.Value)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.DeviceURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	begun := time.Now()
	resp, err := p.client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, err
	}
	var refusal struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	parseErr := json.Unmarshal(data, &refusal)
	if resp.StatusCode != http.StatusOK || refusal.Code != "" {
		return nil, &oauth2.RetrieveError{Response: resp, ErrorCode: refusal.Code, ErrorDescription: refusal.Description}
	}
	code := new(oauth2.DeviceAuthResponse)
	if err := cmp.Or(parseErr, json.Unmarshal(data, code)); err != nil {
		return nil, errors.New("the answer to the request for a code cannot be read")
	}
	if code.DeviceCode == "" || code.UserCode == "" || code.VerificationURI == "" {
		return nil, fmt.Errorf("the answer to the request for a code lacks the code or the address to enter it at")
	}
	if !code.Expiry.IsZero() {
		code.Expiry = code.Expiry.Add(-time.Since(begun))
	}
	return code, nil
}
