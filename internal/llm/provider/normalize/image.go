package normalize

import (
	"encoding/base64"
	"mime"
	"net/url"
	"strings"

	"loki/internal/llm/provider"
)

// ImageError returns the error, of kind [provider.Invalid], for an image that cannot be sent.
func ImageError(why string) error {
	return &provider.Error{Kind: provider.Invalid, Msg: "an image cannot be sent: " + why}
}

// IsDataURL reports whether address is a data: URL.
func IsDataURL(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	return ok && strings.EqualFold(scheme, "data")
}

// DataURL returns the media type of a data: URL (RFC 2397), in lower case and without
// parameters, and its data, of which there is some. The error is an [ImageError].
func DataURL(address string) (media string, data []byte, err error) {
	_, rest, _ := strings.Cut(address, ":")
	header, text, ok := strings.Cut(rest, ",")
	if !ok {
		return "", nil, ImageError("its data URL has no data")
	}
	header, encoded := strings.CutSuffix(strings.ToLower(header), ";base64")
	media, _, _ = mime.ParseMediaType(header)
	if !strings.Contains(media, "/") {
		return "", nil, ImageError("its data URL names no media type")
	}
	text, err = url.PathUnescape(text)
	if data = []byte(text); err == nil && encoded {
		data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	}
	if err != nil || len(data) == 0 {
		return "", nil, ImageError("the data of its URL cannot be decoded")
	}
	return media, data, nil
}
