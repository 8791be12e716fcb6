package input

import (
	"context"
	"path"
	"slices"
	"strings"

	"loki/internal/base/document"
	"loki/internal/base/fault"
)

// LoadData loads a document that is in no file: a picture, one that can be converted, or text. What it is follows from
// its content or, if that does not show it, from its media type or the extension of its name.
func (l *Loader) LoadData(ctx context.Context, name, media string, data []byte) (Attachments, error) {
	var a Attachments
	if len(data) > MaxFileSize {
		return a, &tooLargeError{name, MaxFileSize}
	}
	media, _, _ = strings.Cut(strings.ToLower(media), ";")
	media = strings.TrimSpace(media)
	ext := extensionOf(name)
	if known := extensions[media]; known != "" && known != "html" && known != "js" {
		ext = known
	} else if isImage(media) {
		ext = path.Base(media)
	}
	is, err := l.ContentOf(name, ext, data)
	if err != nil {
		return a, err
	}
	switch {
	case is.Image != "":
		a.Images = []Image{{Name: name, URL: dataURL(is.Image, data)}}
	case is.Kind != "":
		c, err := l.ConvertData(ctx, is.Kind, data)
		if err != nil {
			return a, fault.Wrap(fault.CodeOf(err), err, "%s", name)
		}
		a.unread(name, c.Unread)
		a.Documents = []Document{{Kind: File, Name: name, Text: c.Text}}
	default:
		text, ok := document.Decode(data, "")
		if !ok {
			return a, NotText(name, data, ext)
		}
		a.Documents = []Document{{Kind: File, Name: name, Text: text}}
	}
	return a, nil
}

// Join returns the attachments of several sources as one. The error says that they are too large together.
func Join(list ...Attachments) (all Attachments, err error) {
	size := 0
	for _, a := range list {
		all.Documents = slices.Concat(all.Documents, a.Documents)
		all.Images = slices.Concat(all.Images, a.Images)
		all.PassedOver = slices.Concat(all.PassedOver, a.PassedOver)
		all.Withheld = slices.Concat(all.Withheld, a.Withheld)
		all.Unread = slices.Concat(all.Unread, a.Unread)
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
