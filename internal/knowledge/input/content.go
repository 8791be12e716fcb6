package input

import (
	"encoding/base64"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/document"
	"loki/internal/base/fault"
)

// imageTypes are the media types of the pictures that models look at, by extension.
var imageTypes = map[string]string{
	"png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg", "jfif": "image/jpeg", "webp": "image/webp", "gif": "image/gif",
}

// errUnusable is in the chain of errors about a picture that models cannot look at.
var errUnusable = errors.New("models look at PNG, JPEG, GIF and WebP pictures")

// Content is how a document is loaded: as a picture, converted, or as text.
type Content struct {
	Image string // media type of the picture, "" for none
	Kind  string // that converts it, see [Loader.Converts]; "" if nothing does
}

// ContentOf decides how a document is loaded: by its content and, if that does not show the type, by the extension
// that its name or its media type has. ext is without the dot. The error is about pictures that models cannot look at.
func (l *Loader) ContentOf(name, ext string, data []byte) (Content, error) {
	found := document.Sniff(data)
	switch {
	case l.HasLoader(ext):
		return Content{Kind: ext}, nil
	case imageTypes[found] != "":
		return Content{Image: imageTypes[found]}, nil
	case l.Converts(found):
		return Content{Kind: found}, nil
	case found != "":
		return Content{}, fault.Wrap(fault.Usage, errUnusable, "%s is a picture of type %s", name, found).WithHint("convert it to PNG or JPEG")
	case imageTypes[ext] != "":
		return Content{}, fault.Wrap(fault.Usage, errUnusable, "%s is not a picture, despite its name", name)
	case l.Converts(ext):
		return Content{Kind: ext}, nil
	}
	return Content{}, nil
}

// extensionOf returns the extension of a name in lower case, without the dot.
func extensionOf(name string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
}

// PictureURL returns a data: URL with the media type of the picture in it. One of another form, or with what is no picture that
// models look at, stays as it is.
func PictureURL(url string) string {
	media, encoded, ok := strings.Cut(url, ";base64,")
	if !ok || !strings.HasPrefix(media, "data:") {
		return url
	}
	const most = 64 // characters that show the type
	begin, _ := base64.StdEncoding.DecodeString(encoded[:min(len(encoded), most)/4*4])
	if is := imageTypes[document.Sniff(begin)]; is != "" {
		return "data:" + is + ";base64," + encoded
	}
	return url
}

// isImage reports whether models look at pictures of a media type.
func isImage(media string) bool {
	return slices.Contains(slices.Collect(maps.Values(imageTypes)), media)
}
