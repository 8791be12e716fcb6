package googleauth

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"loki/internal/provider/wire"
)

// metadataHost is the address of the metadata server. A name would have to be looked
// up, which can take long where there is none.
const metadataHost = "169.254.169.254"

// metadataTimeout is how long the metadata server may take to accept a connection. It
// runs on the same machine.
const metadataTimeout = time.Second

// errNoServer says that there is no metadata server.
var errNoServer = errors.New("no metadata server")

// fromMetadata asks the metadata server for a token of the machine's service account.
func (s *Source) fromMetadata(ctx context.Context) (token, error) {
	host := cmp.Or(s.metadataHost, s.getenv("GCE_METADATA_HOST"), metadataHost)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token?scopes="+url.QueryEscape(scope), nil)
	if err != nil {
		return token{}, rejected("the address of the metadata server, %q, is malformed", host)
	}
	req.Header.Set("Metadata-Flavor", "Google")
	direct := &http.Transport{ // never through a proxy: the answer is a secret of this machine
		DialContext:           (&net.Dialer{Timeout: metadataTimeout}).DialContext,
		ResponseHeaderTimeout: 10 * metadataTimeout,
		DisableKeepAlives:     true,
	}
	t, err := s.ask(ctx, &http.Client{Transport: direct}, req)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return token{}, errNoServer
	}
	if refusal, ok := errors.AsType[*oauthError](err); ok {
		return token{}, rejected("the metadata server gives no token: %s", refusal)
	}
	return t, wire.Failure(ctx, "asking the metadata server", err)
}
