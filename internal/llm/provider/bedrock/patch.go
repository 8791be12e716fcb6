package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/restjson1"

	"loki/internal/llm/provider/wire"
)

const eventStreamType = "application/vnd.amazon.eventstream"

// options returns the changes of the SDK's options for one call: whom it is signed
// by, its patches, and, for a stream, a check that the reply is one.
func (c *Client) options(a access, call wire.Call, stream bool) func(*bedrockruntime.Options) {
	patches := c.patches
	return func(o *bedrockruntime.Options) {
		a.configure(o)
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			// Everything from the hash of the payload on depends on the body.
			return s.Finalize.Insert(patcher{patches, call}, "ComputePayloadHash", middleware.Before)
		})
		if stream {
			// The event decoder of a protocol is made at its first use without a lock,
			// a data race of streams that begin together: each has its own.
			o.Protocol = restjson1.New(schemas.AmazonBedrockFrontendService)
			o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
				// Innermost, so that it sees the response before it is decoded.
				return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("LokiStreamCheck", checkStream), middleware.After)
			})
		}
	}
}

// patcher is the step that applies the patches of a call to the request.
type patcher struct {
	patches wire.Patches
	call    wire.Call
}

// ID names the step.
func (patcher) ID() string { return "LokiPatches" }

// HandleFinalize patches the request and passes it on.
func (p patcher) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("request of unknown type %T", in.Request)
	}
	patched, err := p.apply(ctx, req)
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	in.Request = patched
	return next.HandleFinalize(ctx, in)
}

func (p patcher) apply(ctx context.Context, req *smithyhttp.Request) (*smithyhttp.Request, error) {
	plain := req.Build(ctx)
	target, host := *plain.URL, plain.Host
	if err := wire.Apply(plain, p.patches, p.call); err != nil {
		return nil, err
	}
	var body []byte
	if plain.Body != nil {
		var err error
		if body, err = io.ReadAll(plain.Body); err != nil {
			return nil, err
		}
		_ = plain.Body.Close() // it is in memory
	}
	// The SDK keeps the body beside its request.
	patched, err := req.SetStream(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	patched.Header, patched.URL, patched.Host = plain.Header, &target, host
	patched.ContentLength = int64(len(body))
	return patched, nil
}

// maxShown is how much of a body is read that is only going to be shown.
const maxShown = 4 << 10

// maxWhole bounds a reply in one piece that is read in the place of a stream, in bytes.
const maxWhole = 64 << 20

// wholeReply is the error of a reply that came in one piece where a stream was asked for, as
// gateways send it.
type wholeReply struct{ body []byte }

func (*wholeReply) Error() string { return "the reply is not an event stream" }

// asWhole returns options that have the SDK read r as the answer to the next request,
// which is not sent.
func (r *wholeReply) asWhole(o func(*bedrockruntime.Options)) func(*bedrockruntime.Options) {
	return func(opts *bedrockruntime.Options) {
		o(opts)
		opts.HTTPClient = smithyhttp.ClientDoFunc(func(req *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(r.body)),
			}, nil
		})
	}
}

// checkStream refuses a reply that is not an event stream: the SDK would take the first
// bytes of a page or a JSON document for the length of a frame. The error is a
// [*wholeReply] for one that is a reply all the same.
func checkStream(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, meta, err
	}
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok || resp.StatusCode/100 != 2 || strings.HasPrefix(resp.Header.Get("Content-Type"), eventStreamType) {
		return out, meta, nil
	}
	var limit int64 = maxShown
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		limit = maxWhole
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, limit)) // as much as there is
	_ = resp.Body.Close()
	if err := wire.ReplyError(body); err != nil {
		return out, meta, err
	}
	var doc struct {
		Output struct{ Message json.RawMessage }
	}
	if json.Unmarshal(body, &doc) == nil && doc.Output.Message != nil {
		return out, meta, &wholeReply{body}
	}
	return out, meta, wire.BadReply("the reply is not an event stream", body)
}
