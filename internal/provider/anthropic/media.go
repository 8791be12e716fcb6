package anthropic

import (
	"encoding/base64"
	"net/url"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/provider"
)

// media translates the URL of an image: what a data URL holds is sent along, anything
// else the API fetches. A PDF becomes a document. Exactly one of image and document is
// set unless there is an error, which is of kind [provider.Invalid].
func media(address string) (image *sdk.ImageBlockParam, document *sdk.DocumentBlockParam, err error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "http", "https":
		source := &sdk.URLImageSourceParam{URL: address}
		return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfURL: source}}, nil, nil
	case "data":
	default:
		return nil, nil, badImage("its URL is neither data: nor https:")
	}
	header, data, ok := strings.Cut(rest, ",")
	if !ok || data == "" {
		return nil, nil, badImage("its data URL has no data")
	}
	header = strings.ToLower(header)
	typ, _, _ := strings.Cut(header, ";")
	if data, err = encoded(data, strings.HasSuffix(header, ";base64")); err != nil {
		return nil, nil, err
	}
	switch typ {
	case "application/pdf":
		source := &sdk.Base64PDFSourceParam{Data: data}
		return nil, &sdk.DocumentBlockParam{Source: sdk.DocumentBlockParamSourceUnion{OfBase64: source}}, nil
	case "image/jpg":
		typ = "image/jpeg"
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return nil, nil, badImage("its media type is none of image/jpeg, image/png, image/gif, image/webp and application/pdf")
	}
	source := &sdk.Base64ImageSourceParam{Data: data, MediaType: sdk.Base64ImageSourceMediaType(typ)}
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: source}}, nil, nil
}

// encoded returns the data of a data URL in padded base64.
func encoded(data string, isBase64 bool) (string, error) {
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
