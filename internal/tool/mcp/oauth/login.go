package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"loki/internal/base/fault"
)

// User is the user interface during a login.
type User interface {
	// Visit asks the user to open an address. code is the code to enter there, in the
	// device flow, and "" otherwise.
	Visit(address, code string) error
	// Code asks for the code that the page shows after the user has agreed, or in the browser flow for the last address of
	// a browser that cannot reach this machine; an empty one then means to wait for it.
	Code(ctx context.Context, flow Flow) (string, error)
}

// callbackTimeout bounds how long the user may take in the browser.
const callbackTimeout = 10 * time.Minute

// Login runs the flow of p and returns the token. The errors have code Provider,
// or Config if p is not complete.
func Login(ctx context.Context, p Provider, user User) (*oauth2.Token, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	ctx = p.withClient(ctx)
	var token *oauth2.Token
	var err error
	switch p.Flow {
	case Browser:
		token, err = p.browser(ctx, user)
	case Paste:
		token, err = p.paste(ctx, user)
	case Device:
		token, err = p.device(ctx, user)
	case ClientCredentials:
		token, err = p.credentials(ctx)
	default:
		return nil, fault.New(fault.Config, "client %s: there is no OAuth flow %q", p.Name, p.Flow)
	}
	if err != nil {
		return nil, p.flowError("logging in", err)
	}
	return withLifetime(token, time.Now()), nil
}

// flowError returns an error of the flow, without the contents of the request.
func (p Provider) flowError(doing string, err error) error {
	code := fault.Provider
	if c := fault.CodeOf(err); c != fault.Failure {
		code = c
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fault.New(fault.Provider, "client %s: %s: %s", p.Name, doing, refusal(e))
	}
	return fault.Wrap(code, err, "client %s: %s", p.Name, doing)
}

// refusal returns the reason that a server gave for refusing a request. A body that is not
// an OAuth error is not shown, since it may repeat secrets.
func refusal(e *oauth2.RetrieveError) string {
	text := strings.TrimSpace(e.ErrorCode + " " + e.ErrorDescription)
	if text == "" && e.Response != nil {
		text = e.Response.Status
	}
	return "the server answers: " + text
}

func (p Provider) browser(ctx context.Context, user User) (*oauth2.Token, error) {
	listener, redirect, path, err := p.listen(ctx)
	if err != nil {
		return nil, err
	}
	attempt := newAttempt()
	answers := make(chan callback, 1)
	server := &http.Server{Handler: p.receiver(path, attempt.state, answers), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Shutdown
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
		<-served
	}()
	if err := user.Visit(p.authorizeURL(redirect, attempt), ""); err != nil {
		return nil, err
	}
	asking, answered := context.WithCancel(ctx)
	var pasting sync.WaitGroup
	defer pasting.Wait()
	defer answered()
	pasting.Go(func() { // ends with asking
		if text, err := user.Code(asking, Browser); err == nil && strings.TrimSpace(text) != "" {
			a := p.readPasted(text, attempt)
			select {
			case answers <- a:
			default: // the browser was faster
			}
		}
	})
	timer := time.NewTimer(callbackTimeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		return p.exchange(ctx, redirect, attempt, a.code)
	case <-timer.C:
		return nil, fmt.Errorf("no answer from the browser within %v", callbackTimeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen opens the port to which the browser is redirected: that of the redirect URI, or
// any free one, which servers have to accept (RFC 8252, section 7.3).
func (p Provider) listen(ctx context.Context) (l net.Listener, redirect, path string, err error) {
	u, err := url.Parse(cmp.Or(p.RedirectURI, "http://127.0.0.1/callback"))
	if err != nil {
		return nil, "", "", err
	}
	host := u.Hostname()
	if host == "localhost" { // the address that browsers try first, and where any program can listen
		host = "127.0.0.1"
	}
	port := cmp.Or(u.Port(), "0")
	l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, "", "", err
	}
	if port == "0" {
		_, free, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, "", "", errors.Join(err, l.Close())
		}
		u.Host = net.JoinHostPort(u.Hostname(), free)
		return l, u.String(), cmp.Or(u.Path, "/"), nil
	}
	return l, p.RedirectURI, cmp.Or(u.Path, "/"), nil
}

// callback is the answer of the browser.
type callback struct {
	code string
	err  error
}

// receiver answers the browser. Only requests with the state of this attempt count: any
// page can make the browser send others.
func (p Provider) receiver(path, state string, answers chan<- callback) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.URL.Path != path:
			http.NotFound(w, r)
			return
		case q.Get("state") != state:
			http.Error(w, "This link belongs to another login. Start again from the terminal.", http.StatusBadRequest)
			return
		}
		a := p.readAnswer(q)
		text := "You are logged in. You may close this page."
		if a.err != nil {
			text = "The login failed. The terminal says why."
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, text)
		select {
		case answers <- a:
		default: // the browser asks again for the same
		}
	})
}

func (p Provider) paste(ctx context.Context, user User) (*oauth2.Token, error) {
	attempt := newAttempt()
	if err := user.Visit(p.authorizeURL(p.RedirectURI, attempt), ""); err != nil {
		return nil, err
	}
	text, err := user.Code(ctx, Paste)
	if err != nil {
		return nil, err
	}
	back := p.readPasted(text, attempt)
	if back.err != nil {
		return nil, back.err
	}
	return p.exchange(ctx, p.RedirectURI, attempt, back.code)
}

// readPasted reads what the user pasted.
func (p Provider) readPasted(text string, a attempt) callback {
	q, err := parsePasted(text)
	switch {
	case err != nil:
		return callback{err: err}
	case q.Get("state") != a.state:
		return callback{err: errors.New("the code belongs to another login (its state differs): start again")}
	}
	return p.readAnswer(q)
}

// readAnswer reads the answer of the browser, whose state is right.
func (p Provider) readAnswer(q url.Values) callback {
	iss := q.Get("iss")
	switch {
	case p.Issuer != "" && iss != "" && iss != p.Issuer, p.NeedsIss && iss == "": // RFC 9207
		return callback{err: fmt.Errorf("the answer of the browser is not that of %s", p.Issuer)}
	case q.Get("error") != "":
		return callback{err: fmt.Errorf("the server answers: %s", strings.TrimSpace(q.Get("error")+" "+q.Get("error_description")))}
	case q.Get("code") == "":
		return callback{err: errors.New("the answer of the browser has no code")}
	}
	return callback{code: q.Get("code")}
}

// parsePasted reads CODE#STATE, or the last address of the browser.
func parsePasted(text string) (url.Values, error) {
	text = strings.TrimSpace(text)
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && (u.Query().Has("code") || u.Query().Has("error")) {
		return u.Query(), nil
	}
	code, state, ok := strings.Cut(text, "#")
	if !ok || code == "" || state == "" {
		return nil, errors.New("that is not a login code: paste CODE#STATE or the full address")
	}
	return url.Values{"code": {code}, "state": {state}}, nil
}

// attempt holds the values that tie the answer to this login.
type attempt struct{ state, verifier string }

func newAttempt() attempt { return attempt{state: rand.Text(), verifier: oauth2.GenerateVerifier()} }

func (p Provider) authorizeURL(redirect string, a attempt) string {
	return p.config(redirect).AuthCodeURL(a.state, append(p.options(), oauth2.S256ChallengeOption(a.verifier))...)
}

func (p Provider) exchange(ctx context.Context, redirect string, a attempt, code string) (*oauth2.Token, error) {
	return p.config(redirect).Exchange(ctx, code, oauth2.VerifierOption(a.verifier), oauth2.SetAuthURLParam("state", a.state))
}

func (p Provider) credentials(ctx context.Context) (*oauth2.Token, error) {
	config := clientcredentials.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, TokenURL: p.TokenURL, Scopes: p.Scopes, AuthStyle: oauth2.AuthStyleInParams,
		EndpointParams: make(url.Values),
	}
	for _, param := range p.ExtraParams {
		config.EndpointParams.Set(param.Name, param.Value)
	}
	return config.Token(ctx)
}
