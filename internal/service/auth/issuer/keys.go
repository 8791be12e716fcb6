package issuer

import (
	"cmp"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/base/web"
	"loki/internal/service/auth"
)

// Limits of what is asked for keys.
const (
	maxDocument = 1 << 20          // bytes of the document
	maxKeys     = 100              // in it
	maxTried    = 4                // keys that a token without kid is tried with
	maxWaiting  = 64               // requests that wait for a fetch at once
	fetchTime   = 10 * time.Second // of a fetch
	patience    = 5 * time.Second  // of a request
	pause       = time.Minute      // between fetches because of unknown ids
)

// CheckURL returns what is wrong with the address of keys, nil if nothing is: the keys decide which
// tokens are good, so they have to come over https, or from this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("not an address that begins with https://")
	case u.Scheme == "http" && !web.Loopback(u.Hostname()):
		return errors.New("keys are fetched with https only, except from this machine")
	}
	return nil
}

// KeysOptions configure NewKeys.
type KeysOptions struct {
	URL     string            // that [CheckURL] accepts; required
	Refresh time.Duration     // after which the keys are fetched again; 0 means an hour
	HTTP    http.RoundTripper // nil means that of net/http, without connections that stay
	Log     *slog.Logger      // nil for none
}

// Keys are the keys that an issuer publishes. Run fetches them. The methods may be called from several goroutines.
type Keys struct {
	o      KeysOptions
	client *http.Client
	wake   chan struct{} // has an element while a fetch is wanted

	mu      sync.Mutex
	keys    []key         // nil until they were fetched for the first time
	asked   time.Time     // when a fetch was last wanted
	wanted  chan struct{} // closed once the keys were fetched that are wanted; nil if there are none
	waiting int           // requests that wait for that
}

// NewKeys returns keys that are not known yet.
func NewKeys(o KeysOptions) *Keys {
	o.Refresh = cmp.Or(o.Refresh, time.Hour)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives = true // the next request is an hour away
		o.HTTP = t
	}
	return &Keys{o: o, wake: make(chan struct{}, 1), client: &http.Client{Transport: o.HTTP, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 {
			return errors.New("it redirects more than three times")
		}
		return CheckURL(r.URL.String())
	}}}
}

// Serves reports whether the keys are the ones that the options ask for.
func (k *Keys) Serves(o KeysOptions) bool {
	return k.o.URL == o.URL && k.o.Refresh == cmp.Or(o.Refresh, time.Hour)
}

// Run fetches the keys: at once, regularly, sooner after a failure, and when a token names a key that is not among
// them. It returns when ctx ends.
func (k *Keys) Run(ctx context.Context) {
	after := retry.Policy{Attempts: 1 << 30, Backoff: time.Second, Factor: 2, MaxBackoff: min(time.Minute, k.o.Refresh)}
	for failures := 0; ctx.Err() == nil; {
		k.mu.Lock()
		wanted := k.wanted
		k.mu.Unlock()
		keys, skipped, err := k.fetch(ctx)
		wait := k.o.Refresh
		if failures++; err == nil {
			failures = 0
			k.o.Log.Info("the keys of the issuer were fetched", "url", k.o.URL, "keys", len(keys), "skipped", skipped)
		} else if ctx.Err() == nil {
			wait, _ = after.Wait(failures, 0, 0)
			k.o.Log.Warn("the keys of the issuer cannot be fetched", "url", k.o.URL, "error", err.Error(), "again_in_seconds", wait.Seconds())
		}
		k.set(keys, err, wanted)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// set keeps the result of a fetch. A failure leaves the keys as they were.
func (k *Keys) set(keys []key, err error, wanted chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.keys = keys
	}
	if wanted != nil {
		close(wanted)
		k.wanted = nil
	}
}

// fetch returns the keys that are published now. skipped is the number of keys that no token could be verified with.
func (k *Keys) fetch(ctx context.Context) (keys []key, skipped int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.o.URL, nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	res, err := k.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("the answer is %s", res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return nil, 0, err
	}
	if len(text) > maxDocument {
		return nil, 0, fmt.Errorf("the document has more than %d bytes", maxDocument)
	}
	return parse(text)
}

// parse reads a JSON Web Key Set. Keys that are of no use here are skipped, as the standard wants it.
func parse(text []byte) (keys []key, skipped int, err error) {
	var document struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, 0, fmt.Errorf("the document is not a JSON Web Key Set: %w", err)
	}
	if document.Keys == nil {
		return nil, 0, errors.New("the document is not a JSON Web Key Set: it has no list keys")
	}
	if len(document.Keys) > maxKeys {
		return nil, 0, fmt.Errorf("the document has %d keys, more than %d", len(document.Keys), maxKeys)
	}
	keys = make([]key, 0, len(document.Keys))
	for _, one := range document.Keys {
		parsed, err := parseKey(one)
		if err != nil {
			skipped++
			continue
		}
		keys = append(keys, parsed)
	}
	return keys, skipped, nil
}

// Known reports whether the keys were fetched at least once. Known keys stay known.
func (k *Keys) Known() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys != nil
}

// has reports whether a key with an id is among the keys.
func (k *Keys) has(kid string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	named, _ := choose(k.keys, kid, "")
	return named
}

// find returns the keys that may have signed a token: those with its kid, or any if it has none, for an algorithm. If none has
// that id, they are fetched again, unless that was done in the last minute. The error is an [*auth.TokenError] or that of ctx.
func (k *Keys) find(ctx context.Context, kid, algorithm string) ([]crypto.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	named, list := choose(k.keys, kid, algorithm)
	if k.keys != nil && !named {
		if err := k.again(ctx); err != nil {
			return nil, err
		}
		named, list = choose(k.keys, kid, algorithm)
	}
	switch {
	case k.keys == nil:
		return nil, refusalError(auth.ReasonUnavailable, "the keys of the issuer were not fetched yet")
	case !named:
		return nil, refusalError(auth.ReasonUnknownKey, "the issuer does not publish the key %.100q", kid)
	case len(list) == 0:
		return nil, refusalError(auth.ReasonAlgorithm, "the key %.100q is not one for %s", kid, algorithm)
	}
	return list, nil
}

// again waits until the keys were fetched again, unless that was wanted in the last minute and is done. The caller holds mu, which
// is released meanwhile.
func (k *Keys) again(ctx context.Context) error {
	if k.wanted == nil {
		if !k.asked.IsZero() && time.Since(k.asked) < pause {
			return nil
		}
		k.asked, k.wanted = time.Now(), make(chan struct{})
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
	if k.waiting >= maxWaiting {
		return refusalError(auth.ReasonUnavailable, "the keys of the issuer are being fetched, and %d requests wait for that", maxWaiting)
	}
	wanted := k.wanted
	k.waiting++
	k.mu.Unlock()
	timer := time.NewTimer(patience)
	var err error
	select {
	case <-wanted:
	case <-timer.C:
		err = refusalError(auth.ReasonUnavailable, "the keys of the issuer are being fetched, which takes more than %v", patience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	timer.Stop()
	k.mu.Lock()
	k.waiting--
	return err
}
