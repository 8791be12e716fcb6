package gemini

import (
	"encoding/base64"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// userParts translates text and images.
func userParts(parts []chat.Part) ([]part, error) {
	var list []part
	for _, p := range parts {
		switch {
		case p.Type == chat.TextPart && p.Text != "":
			list = append(list, part{Text: p.Text})
		case p.Type == chat.ImagePart:
			image, err := imagePart(p.URL)
			if err != nil {
				return nil, err
			}
			list = append(list, image)
		}
	}
	return list, nil
}

// imagesOf returns the images among parts.
func imagesOf(parts []chat.Part) []chat.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p chat.Part) bool { return p.Type != chat.ImagePart })
}

// imagePart sends a data URL along and names any other, which the API then fetches.
func imagePart(address string) (part, error) {
	if rest, ok := cutScheme(address, "data"); ok {
		return inlinePart(rest)
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"https", "http", "gs"}, u.Scheme) {
		return part{}, invalidImage("its URL is not data:, https: or gs:")
	}
	return part{FileData: &fileData{FileURI: address, MIMEType: mimeType(u.Path)}}, nil
}

// cutScheme cuts the scheme, which is lower case, from a URL.
func cutScheme(address, scheme string) (string, bool) {
	n := len(scheme) + 1
	if len(address) < n || !strings.EqualFold(address[:n], scheme+":") {
		return "", false
	}
	return address[n:], true
}

// inlinePart decodes a data URL, of which the scheme has been cut off.
func inlinePart(rest string) (part, error) {
	header, data, ok := strings.Cut(rest, ",")
	if !ok {
		return part{}, invalidImage("its data URL has no data")
	}
	typ, isBase64 := strings.CutSuffix(header, ";base64")
	media, _, err := mime.ParseMediaType(typ)
	if err != nil || !strings.Contains(media, "/") {
		return part{}, invalidImage("its data URL names no media type")
	}
	var decoded []byte
	if isBase64 {
		if decoded, err = base64.StdEncoding.DecodeString(data); err != nil {
			decoded, err = base64.RawStdEncoding.DecodeString(data)
		}
	} else {
		var text string
		text, err = url.PathUnescape(data)
		decoded = []byte(text)
	}
	if err != nil || len(decoded) == 0 {
		return part{}, invalidImage("the data of its URL cannot be decoded")
	}
	return part{InlineData: &blob{Data: decoded, MIMEType: media}}, nil
}

func invalidImage(why string) error {
	return &provider.Error{Kind: provider.Invalid, Msg: "an image cannot be sent: " + why}
}

// mimeType guesses the media type of a remote image, which the API has to know.
func mimeType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".webp":
		return "image/webp"
	case ".gif":
		return "image/gif"
	case ".heic":
		return "image/heic"
	case ".heif":
		return "image/heif"
	case ".pdf":
		return "application/pdf"
	}
	return "image/jpeg"
}
