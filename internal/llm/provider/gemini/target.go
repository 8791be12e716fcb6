package gemini

import (
	"fmt"
	"strings"

	"loki/internal/llm/provider"
)

// Methods of models, with the query of streams.
const (
	generateContent       = ":generateContent"
	streamGenerateContent = ":streamGenerateContent?alt=sse"
	batchEmbedContents    = ":batchEmbedContents"
	embedContent          = ":embedContent"
	predict               = ":predict"
)

// resource returns the full name of a model: what it is called or, of a short name,
// where models are.
func (c *Client) resource(model string) string {
	known := []string{"models/", "tunedModels/"}
	if c.place != "" {
		known = []string{"projects/", "models/", "publishers/"}
	}
	for _, prefix := range known {
		if strings.HasPrefix(model, prefix) {
			return model
		}
	}
	if c.place == "" {
		return "models/" + model
	}
	publisher, name, ok := strings.Cut(model, "/")
	if !ok {
		publisher, name = "google", model
	}
	return "publishers/" + publisher + "/models/" + name
}

// target returns the URL of a method of a model. A name that would lead elsewhere is an
// error.
func (c *Client) target(model, method string) (string, error) {
	if model == "" || strings.ContainsAny(model, "?#%&") || strings.Contains(model, "..") {
		return "", &provider.Error{Kind: provider.Invalid, Msg: fmt.Sprintf("the request cannot be made: %q cannot be the name of a model", model)}
	}
	path := c.resource(model)
	if c.place != "" && !strings.HasPrefix(path, "projects/") {
		path = c.place + "/" + path
	}
	return c.frame.URL("/" + path + method), nil
}
