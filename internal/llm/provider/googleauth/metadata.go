package googleauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// metadataHost is the address of the metadata server. A name would have to be looked
// up, which can take long where there is none.
const metadataHost = "169.254.169.254"

// metadataTimeout is how long the metadata server may take to accept a connection. It
// runs on the same machine.
const metadataTimeout = time.Second

// maxMetadataReply bounds the reply of the metadata server, in bytes.
const maxMetadataReply = 1 << 20

// askingMetadata is what errors say was being done.
const askingMetadata = "asking the metadata server"

// errNoServer reports that there is no metadata server.
var errNoServer = errors.New("no metadata server")

// fromMetadata asks the metadata server for a token of the machine's service account.
//
// The library would take several seconds to find out that there is no server, and could
// not be canceled.
func (s *Source) fromMetadata(ctx context.Context) (token, error) {
	host := cmp.Or(s.metadataHost, s.getenv("GCE_METADATA_HOST"), metadataHost)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token?scopes="+url.QueryEscape(scope), nil)
	if err != nil {
		return token{}, rejectedError("the address of the metadata server, %q, is malformed", host)
	}
	req.Header.Set("Metadata-Flavor", "Google")
	direct := &http.Transport{ // never through a proxy: the answer is a secret of this machine
		DialContext:           (&net.Dialer{Timeout: metadataTimeout}).DialContext,
		ResponseHeaderTimeout: 10 * metadataTimeout,
		DisableKeepAlives:     true,
	}
	sent := time.Now()
	resp, err := (&http.Client{Transport: direct}).Do(req)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return token{}, errNoServer
	}
	if err != nil {
		return token{}, wire.Failure(ctx, askingMetadata, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadataReply))
	if err != nil {
		return token{}, wire.Failure(ctx, askingMetadata, err)
	}
	if resp.StatusCode != http.StatusOK {
		return token{}, metadataRefusal(resp.StatusCode, body)
	}
	var reply struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.AccessToken == "" {
		return token{}, wire.BadReply("the reply of the metadata server holds no access token", nil) // it may hold others
	}
	return token{access: reply.AccessToken, until: sent.Add(time.Duration(reply.ExpiresIn)*time.Second - early)}, nil
}

// metadataRefusal returns the error for a reply with another status than 200.
func metadataRefusal(status int, body []byte) error {
	if refusal := refusalOf(status, body); refusal != nil {
		return rejectedError("the metadata server gives no token: %s", refusal)
	}
	kind := provider.Transient
	if status < 500 && status != http.StatusTooManyRequests {
		kind = provider.Authentication
	}
	return &provider.Error{Kind: kind, Status: status, Msg: "the metadata server gives no access token"}
}
