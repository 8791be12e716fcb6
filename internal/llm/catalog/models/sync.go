package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/value/yamldoc"
)

const (
	syncTimeout = 16 * time.Second // for the whole download
	maxDownload = 4 << 20          // bytes; the built-in list has a fortieth of it
)

// errTimeout is the cause of a download that took longer than syncTimeout.
var errTimeout = errors.New("no complete answer within " + syncTimeout.String())

// Synced says what [Sync] has fetched.
type Synced struct {
	Providers int
	Models    int
	Warnings  []*yamldoc.Problem // the parts of the list that are ignored
}

// Sync downloads the list of models at address, in the form of models.yaml, and
// writes it to dest as the override file for version. Nothing is written unless the
// whole list has arrived and can be used; dest is replaced in one step and is never
// incomplete. A download of more than 16 seconds or 4 MiB is an error.
//
// A nil client is [http.DefaultClient]. The errors are [*fault.Error] with code Config
// without an address and Failure otherwise; a canceled ctx is wrapped.
func Sync(ctx context.Context, client *http.Client, address, dest, version string) (Synced, error) {
	if address == "" {
		return Synced{}, fault.New(fault.Config, "no address to download the list of models from").
			WithHint("set sync_models_url in config.yaml, or LOKI_SYNC_MODELS_URL")
	}
	src, err := download(ctx, client, address)
	if err != nil {
		return Synced{}, fault.Wrap(fault.Failure, err, "cannot fetch the list of models").
			WithHint("check the network, the proxy and sync_models_url")
	}
	doc, err := yamldoc.Parse(withoutPassword(address), src)
	if err != nil {
		return Synced{}, unusable(err)
	}
	list := decodeList(doc.Root())
	if err := doc.Err(); err != nil {
		return Synced{}, unusable(err)
	}
	if count(list) == 0 {
		return Synced{}, unusable(fmt.Errorf("%s: no model is in it", withoutPassword(address)))
	}
	text, err := encodeOverride(version, list)
	if err == nil {
		err = atomicfile.Write(dest, text, atomicfile.Options{Mode: 0o644})
	}
	if err != nil {
		return Synced{}, fault.Wrap(fault.Failure, err, "cannot save the list of models")
	}
	return Synced{Providers: len(list), Models: count(list), Warnings: doc.Warnings()}, nil
}

func unusable(err error) error {
	return fault.Wrap(fault.Failure, err, "the downloaded file is not a list of models").
		WithHint("check sync_models_url; nothing was changed")
}

// download returns the body at address.
func download(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, syncTimeout, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, late(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", withoutPassword(address), resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	switch {
	case err != nil:
		return nil, late(ctx, fmt.Errorf("%s: %w", withoutPassword(address), err))
	case len(body) > maxDownload:
		return nil, fmt.Errorf("%s: more than %d MiB", withoutPassword(address), maxDownload>>20)
	}
	return body, nil
}

// late says that err is only the consequence of the time limit, if it is.
func late(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return cause
	}
	return err
}

// withoutPassword returns address without its password.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return u.Redacted()
}
