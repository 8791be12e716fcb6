package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// Methods of models, with the query of streams.
const (
	generateContent       = ":generateContent"
	streamGenerateContent = ":streamGenerateContent?alt=sse"
	batchEmbedContents    = ":batchEmbedContents"
	embedContent          = ":embedContent"
	predict               = ":predict"
)

// post sends payload to a method of a model and returns the response, which succeeded.
// The caller closes its body. ctx is one of [wire.WithCall]; doing says in errors what
// failed.
func (c *Client) post(ctx context.Context, doing, model, method string, payload any) (*http.Response, error) {
	path, err := c.path(model)
	if err != nil {
		return nil, err
	}
	data, err := wire.Encode(payload)
	if err != nil {
		return nil, unsendable("it cannot be written as JSON", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/"+path+method, bytes.NewReader(data))
	if err != nil {
		return nil, unsendable("its URL is malformed", err)
	}
	if err := c.authorize(ctx, req.Header); err != nil {
		return nil, wire.Failure(ctx, "finding the credentials of "+c.name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	return resp, withRetryInfo(wire.Failure(ctx, doing, err), err)
}

// postJSON sends payload and reads the document that answers it into reply.
func (c *Client) postJSON(ctx context.Context, doing, model, method string, payload, reply any) error {
	resp, err := c.post(ctx, doing, model, method, payload)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err == nil {
		err = decode(doc, reply, "the reply")
	}
	return wire.Failure(ctx, doing, err)
}

// decode reads a document, called what in errors, into reply.
func decode(doc []byte, reply any, what string) error {
	if err := wire.ReplyError(doc); err != nil {
		return err
	}
	if json.Unmarshal(doc, reply) != nil {
		return wire.BadReply(what+" is not of the expected form", doc)
	}
	return nil
}

// resource returns the full name of a model: what it is called or, of a short name,
// where models are.
func (c *Client) resource(model string) string {
	known := []string{"models/", "tunedModels/"}
	if c.vertex != nil {
		known = []string{"projects/", "models/", "publishers/"}
	}
	for _, prefix := range known {
		if strings.HasPrefix(model, prefix) {
			return model
		}
	}
	if c.vertex == nil {
		return "models/" + model
	}
	publisher, name, ok := strings.Cut(model, "/")
	if !ok {
		publisher, name = "google", model
	}
	return "publishers/" + publisher + "/models/" + name
}

// path returns the path of a model below the base URL. A name that would lead elsewhere
// is an error.
func (c *Client) path(model string) (string, error) {
	if model == "" || strings.ContainsAny(model, "?#%&") || strings.Contains(model, "..") {
		return "", unsendable(fmt.Sprintf("%q cannot be the name of a model", model), nil)
	}
	path := c.resource(model)
	if c.vertex != nil && !strings.HasPrefix(path, "projects/") {
		path = "projects/" + c.vertex.Project + "/locations/" + c.vertex.Location + "/" + path
	}
	return path, nil
}

// authorize puts the credentials into the header of a request.
func (c *Client) authorize(ctx context.Context, h http.Header) error {
	if c.token != nil {
		token, err := c.token(ctx)
		h.Set("Authorization", "Bearer "+token)
		return err
	}
	key, err := wire.Key(c.name, c.key, true)
	h.Set("X-Goog-Api-Key", key)
	return err
}

func unsendable(why string, err error) error {
	return &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be made: " + why, Err: err}
}
