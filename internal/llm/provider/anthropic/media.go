package anthropic

import (
	"encoding/base64"
	"strings"

	"loki/internal/llm/provider/normalize"
)

// media translates the URL of an image: what a data URL holds is sent along, anything
// else the API fetches. A PDF becomes a document. The error is of kind [provider.Invalid].
func media(address string) (content, error) {
	if !normalize.IsDataURL(address) {
		scheme, _, _ := strings.Cut(strings.ToLower(address), ":")
		if scheme != "http" && scheme != "https" {
			return content{}, normalize.ImageError("its URL is neither data: nor https:")
		}
		return content{Type: imageBlock, Source: &source{Type: "url", URL: address}}, nil
	}
	typ, data, err := normalize.DataURL(address)
	if err != nil {
		return content{}, err
	}
	block := imageBlock
	switch typ {
	case "application/pdf":
		block = documentBlock
	case "image/jpg":
		typ = "image/jpeg"
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return content{}, normalize.ImageError("its media type is not image/jpeg, image/png, image/gif, image/webp or application/pdf")
	}
	return content{Type: block, Source: &source{Type: "base64", MediaType: typ, Data: base64.StdEncoding.EncodeToString(data)}}, nil
}
