package input

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/document"
	"loki/internal/fault"
)

// LoadData loads a document that is in no file: a picture, one that can be converted, or text. What it is follows from
// its media type or, if that is "" or not known, from the extension of its name.
func (l *Loader) LoadData(ctx context.Context, name, media string, data []byte) (Attachments, error) {
	var a Attachments
	if len(data) > MaxFileSize {
		return a, &tooLargeError{name, MaxFileSize}
	}
	media, _, _ = strings.Cut(strings.ToLower(media), ";")
	media = strings.TrimSpace(media)
	ext := strings.ToLower(filepath.Ext(name))
	if known := extensions[media]; known != "" && known != "html" && known != "js" {
		ext = "." + known
	}
	image := imageTypes[ext]
	if isImage(media) {
		image = media
	}
	kind := strings.TrimPrefix(ext, ".")
	switch {
	case image != "":
		a.Images = []Image{{Name: name, URL: dataURL(image, data)}}
	case l.Converts(kind):
		text, _, err := l.ConvertData(ctx, kind, data)
		if err != nil {
			return a, fault.Wrap(fault.CodeOf(err), err, "%s", name)
		}
		a.Documents = []Document{{Kind: File, Name: name, Text: text}}
	default:
		text, ok := document.Decode(data, "")
		if !ok {
			return a, NotText(name, data, kind)
		}
		a.Documents = []Document{{Kind: File, Name: name, Text: text}}
	}
	return a, nil
}

// isImage reports whether models look at pictures of a media type.
func isImage(media string) bool {
	for _, known := range imageTypes {
		if media == known {
			return true
		}
	}
	return false
}

// Join returns the attachments of several sources as one. The error says that they are too large together.
func Join(list ...Attachments) (all Attachments, err error) {
	size := 0
	for _, a := range list {
		all.Documents = slices.Concat(all.Documents, a.Documents)
		all.Images = slices.Concat(all.Images, a.Images)
		all.PassedOver = slices.Concat(all.PassedOver, a.PassedOver)
	}
	for _, d := range all.Documents {
		size += len(d.Text)
	}
	for _, i := range all.Images {
		size += len(i.URL)
	}
	if size > MaxSize {
		return Attachments{}, fault.New(fault.Usage, "the attachments hold more than %d MiB", MaxSize>>20)
	}
	return all, nil
}
