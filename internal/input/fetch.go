package input

import (
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"

	"loki/internal/fault"
)

// FetchTimeout bounds the fetching of one address.
const FetchTimeout = 16 * time.Second

// extensions maps content types to loaders where the names differ.
var extensions = map[string]string{
	"application/pdf": "pdf",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.oasis.opendocument.text":                                   "odt",
	"application/vnd.oasis.opendocument.spreadsheet":                            "ods",
	"application/vnd.oasis.opendocument.presentation":                           "odp",
	"application/rtf":        "rtf",
	"text/javascript":        "js",
	"application/javascript": "js",
	"text/html":              "html",
}

// fetch adds the document at an address: HTML as Markdown, pictures as pictures,
// other documents by their loader, and text as it is.
func (l *Loader) fetch(ctx context.Context, c *collector, address string) error {
	if strings.HasSuffix(address, "**") {
		return fault.New(fault.Usage, "%s: whole sites cannot be attached, only pages", address)
	}
	if l.Loaders["url"] != "" {
		text, err := l.convert(ctx, "url", address)
		if err != nil {
			return err
		}
		return c.add(Document{Kind: URL, Name: address, Text: text})
	}
	data, contentType, label, err := l.get(ctx, address)
	if err != nil {
		return err
	}
	kind, ext := strings.Split(contentType, "/")[0], cmp.Or(extensions[contentType], path.Base(contentType))
	switch {
	case kind == "image", kind == "video", kind == "audio":
		return c.addImage(Image{Name: address, URL: dataURL(contentType, data)})
	case l.Loaders[ext] != "":
		text, err := l.convertData(ctx, ext, data)
		if err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "%s", address)
		}
		return c.add(Document{Kind: URL, Name: address, Text: text})
	}
	if ext == "html" && label == "" {
		label = pageCharset(data)
	}
	text, ok := decode(data, label)
	switch {
	case !ok && kind != "text":
		return fault.New(fault.Usage, "%s is not text but %s", address, contentType).
			WithHint("a command at document_loaders.%s in config.yaml can turn such documents into text", ext)
	case !ok:
		return notText(address, data, ext)
	case ext == "html":
		text, err := Markdown(text, address)
		if err != nil {
			return fault.Wrap(fault.Tool, err, "%s", address)
		}
		return c.add(Document{Kind: URL, Name: address, Text: text})
	}
	return c.add(Document{Kind: URL, Name: address, Text: text})
}

// get returns the body at an address, its content type without parameters, and the label of
// the encoding that the reply declares, "" for none.
func (l *Loader) get(ctx context.Context, address string) (data []byte, contentType, label string, err error) {
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	failed := func(err error) error {
		if ctx.Err() == context.DeadlineExceeded {
			return fault.New(fault.Tool, "%s did not answer within %v", address, FetchTimeout)
		}
		return fault.Wrap(fault.Tool, err, "fetching %s", address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", "", fault.Wrap(fault.Usage, err, "%s", address)
	}
	resp, err := cmp.Or(l.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, "", "", failed(withoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, "", "", fault.New(fault.Tool, "fetching %s: %s", address, resp.Status)
	}
	if data, err = io.ReadAll(io.LimitReader(resp.Body, MaxFileSize+1)); err != nil {
		return nil, "", "", failed(err)
	}
	if len(data) > MaxFileSize {
		return nil, "", "", &tooLargeError{address}
	}
	var parameters map[string]string
	if contentType, parameters, err = mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil {
		if contentType, _, err = mime.ParseMediaType(mime.TypeByExtension(path.Ext(resp.Request.URL.Path))); err != nil {
			contentType, _, _ = mime.ParseMediaType(http.DetectContentType(data))
		}
	}
	return data, contentType, parameters["charset"], nil
}

// withoutURL drops the address that errors of net/http repeat.
func withoutURL(err error) error {
	if e, ok := err.(*url.Error); ok {
		return e.Err
	}
	return err
}

// convertData runs a document loader on data that is in no file yet.
func (l *Loader) convertData(ctx context.Context, loader string, data []byte) (string, error) {
	dir, err := os.MkdirTemp("", "loki-download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "document."+loader)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", err
	}
	return l.convert(ctx, loader, file)
}

// Markdown converts an HTML page. Links are made absolute by address, which may be empty.
func Markdown(html, address string) (string, error) {
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	return conv.ConvertString(html, converter.WithDomain(address))
}
