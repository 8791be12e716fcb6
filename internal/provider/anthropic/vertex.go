package anthropic

import (
	"cmp"
	"context"
	"net/url"

	"loki/internal/fault"
	"loki/internal/provider/wire"
)

// Vertex is a place on Google's Vertex AI.
type Vertex struct {
	Project  string
	Location string // such as europe-west1 or global

	// Token returns an access token of Google Cloud. It is called for each request.
	Token func(ctx context.Context) (string, error)

	// BaseURL is the URL, with the version of the API, that /projects/... is appended
	// to. Empty means the one of the location.
	BaseURL string
}

// vertexVersion is what stands for the header anthropic-version on Vertex AI.
const vertexVersion = "vertex-2023-10-16"

// base returns the URL of the place, which the name of a model is appended to.
func (v *Vertex) base(client string) (string, error) {
	switch {
	case v.Project == "" || v.Location == "":
		return "", fault.New(fault.Config, "client %q needs a project_id and a location", client)
	case v.Token == nil:
		return "", fault.New(fault.Config, "client %q needs credentials of Google Cloud", client)
	}
	base, err := wire.BaseURL(client, cmp.Or(v.BaseURL, vertexHost(v.Location)+"/v1"), "https://europe-west1-aiplatform.googleapis.com/v1")
	if err != nil {
		return "", err
	}
	return base + "/projects/" + url.PathEscape(v.Project) + "/locations/" + url.PathEscape(v.Location) + "/publishers/anthropic/models/", nil
}

// vertexHost returns the URL of the host that serves a location.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// endpoint returns the URL of a request.
func (c *Client) endpoint(model string, stream bool) string {
	switch {
	case !c.vertex:
		return c.base + "/messages"
	case stream:
		return c.base + url.PathEscape(model) + ":streamRawPredict"
	}
	return c.base + url.PathEscape(model) + ":rawPredict"
}
