package gemini

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
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
	if normalize.IsDataURL(address) {
		media, data, err := normalize.DataURL(address)
		return part{InlineData: &blob{Data: data, MIMEType: media}}, err
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"https", "http", "gs"}, u.Scheme) {
		return part{}, normalize.ImageError("its URL is not data:, https: or gs:")
	}
	return part{FileData: &fileData{FileURI: address, MIMEType: mimeType(u.Path)}}, nil
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
