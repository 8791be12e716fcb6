package anthropic

import (
	"encoding/base64"
	"net/url"
	"strings"

	"loki/internal/llm/provider"
)

// media translates the URL of an image: what a data URL holds is sent along, anything
// else the API fetches. A PDF becomes a document. The error is of kind [provider.Invalid].
func media(address string) (content, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "http", "https":
		return content{Type: imageBlock, Source: &source{Type: "url", URL: address}}, nil
	case "data":
	default:
		return content{}, badImage("its URL is neither data: nor https:")
	}
	header, data, ok := strings.Cut(rest, ",")
	if !ok || data == "" {
		return content{}, badImage("its data URL has no data")
	}
	header = strings.ToLower(header)
	typ, _, _ := strings.Cut(header, ";")
	data, err := encodeData(data, strings.HasSuffix(header, ";base64"))
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
		return content{}, badImage("its media type is not image/jpeg, image/png, image/gif, image/webp or application/pdf")
	}
	return content{Type: block, Source: &source{Type: "base64", MediaType: typ, Data: data}}, nil
}

// encodeData returns the data of a data URL in padded base64.
func encodeData(data string, isBase64 bool) (string, error) {
	if !isBase64 {
		text, err := url.PathUnescape(data)
		if err != nil {
			return "", badImage("its data URL is malformed")
		}
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	}
	data = strings.TrimRight(strings.ReplaceAll(data, "%3D", "="), "=")
	raw, err := base64.RawStdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return "", badImage("the data of its URL is not base64")
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

func badImage(why string) error {
	return &provider.Error{Kind: provider.Invalid, Msg: "an image cannot be sent: " + why}
}
