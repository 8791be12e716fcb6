package document

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
)

// Sniff returns the extension of the type that data has by its content, without the dot: that of a document
// which [Reads] knows, or of a picture: png, jpeg, gif, webp, bmp, tiff, heic, avif, jxl, ico or psd. It is "" for all
// else, text included.
func Sniff(data []byte) string {
	for _, known := range [...]struct{ begin, ext string }{
		{"%PDF-", "pdf"},
		{`{\rtf`, "rtf"},
		{"\x89PNG\r\n\x1a\n", "png"},
		{"\xff\xd8\xff", "jpeg"},
		{"GIF87a", "gif"},
		{"GIF89a", "gif"},
		{"II*\x00", "tiff"},
		{"MM\x00*", "tiff"},
		{"\x00\x00\x01\x00", "ico"},
		{"8BPS\x00", "psd"},
		{"\xff\x0a", "jxl"},
		{"\x00\x00\x00\x0cJXL ", "jxl"},
	} {
		if bytes.HasPrefix(data, []byte(known.begin)) {
			return known.ext
		}
	}
	at := func(from int, text string) bool {
		return len(data) >= from+len(text) && string(data[from:from+len(text)]) == text
	}
	switch {
	case at(0, "RIFF") && at(8, "WEBP"):
		return "webp"
	case at(0, "BM") && len(data) >= 14 && binary.LittleEndian.Uint32(data[6:]) == 0 && binary.LittleEndian.Uint32(data[10:]) < 1<<16:
		return "bmp"
	case at(4, "ftypheic"), at(4, "ftypheix"), at(4, "ftypmif1"), at(4, "ftypmsf1"):
		return "heic"
	case at(4, "ftypavif"), at(4, "ftypavis"):
		return "avif"
	case at(0, "PK\x03\x04"):
		return sniffArchive(data)
	}
	return ""
}

// sniffArchive returns the extension of a document that is a ZIP archive.
func sniffArchive(data []byte) string {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return ""
	}
	types := false
	for _, f := range z.File {
		types = types || f.Name == "[Content_Types].xml"
		if f.Name != "mimetype" || f.UncompressedSize64 > 100 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return ""
		}
		defer r.Close()
		var text [100]byte
		n, _ := r.Read(text[:])
		for media, ext := range map[string]string{"application/epub+zip": "epub", "opendocument.text": "odt", "opendocument.spreadsheet": "ods", "opendocument.presentation": "odp"} {
			if strings.HasSuffix(strings.TrimSpace(string(text[:n])), media) {
				return ext
			}
		}
	}
	for _, f := range z.File {
		for dir, ext := range map[string]string{"word/": "docx", "xl/": "xlsx", "ppt/": "pptx"} {
			if types && strings.HasPrefix(strings.TrimPrefix(f.Name, "/"), dir) {
				return ext
			}
		}
	}
	return ""
}
