package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// Post sends payload as JSON to target, a URL, and returns the response, which succeeded;
// the caller closes its body. stream says that the reply is asked for as server-sent
// events. fields are further header fields, names and values in turn; one without a value
// is not sent. ctx is one of [wire.WithCall]. The error may be a [*wire.Rejection].
func (f *Frame) Post(ctx context.Context, target string, payload any, stream bool, fields ...string) (*http.Response, error) {
	data, err := value.Marshal(payload)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be made: its URL is malformed", Err: err}
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if stream {
		for name, value := range streamFields() {
			req.Header.Set(name, value)
		}
	}
	return f.send(ctx, req, fields...)
}

// send sends a request as [Frame.Post] does.
func (f *Frame) send(ctx context.Context, req *http.Request, fields ...string) (*http.Response, error) {
	if err := f.Authorize(ctx, req.Header); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			req.Header.Set(fields[i], fields[i+1])
		}
	}
	resp, err := f.HTTP.Do(req)
	if err != nil {
		if r, ok := errors.AsType[*wire.Rejection](err); ok {
			return nil, r
		}
		return nil, f.RequestError(ctx, err)
	}
	return resp, nil
}

// maxList bounds the reply with the models of a server, in bytes.
const maxList = 4 << 20

// List returns the names of the models that a server lists at target, a URL, in the form of OpenAI, Anthropic, Gemini or Cohere. fields
// are further header fields, see [Frame.Post].
func (f *Frame) List(ctx context.Context, target string, fields ...string) (names []string, err error) {
	ctx = wire.WithCall(ctx, wire.Call{}) // for which there is no patch
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be made: its URL is malformed", Err: err}
	}
	req.Header = http.Header{"Accept": {"application/json"}}
	resp, err := f.send(ctx, req, fields...)
	if r, ok := err.(*wire.Rejection); ok {
		return nil, r.Err
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Data   []struct{ ID string }
		Models []struct{ Name string }
	}
	if err = json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&list); err != nil {
		return nil, f.ReplyError(ctx, err)
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	for _, m := range list.Models {
		names = append(names, strings.TrimPrefix(m.Name, "models/")) // as Gemini writes them
	}
	return names, nil
}

// streamFields returns the header fields of a request for a stream.
func streamFields() map[string]string {
	return map[string]string{
		"Accept":          "text/event-stream",
		"Cache-Control":   "no-store",
		"Accept-Encoding": "identity", // compression makes proxies hold chunks back
	}
}

// Ask is [Frame.Post] for a reply in one piece, which it gives to read.
func (f *Frame) Ask(ctx context.Context, target string, payload any, read func([]byte) error) error {
	resp, err := f.Post(ctx, target, payload, false)
	if r, ok := err.(*wire.Rejection); ok {
		return r.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		err = read(data)
	}
	return f.ReplyError(ctx, err)
}
