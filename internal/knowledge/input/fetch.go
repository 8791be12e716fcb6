package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/web"
)

// FetchTimeout bounds the fetching of one address.
const FetchTimeout = 16 * time.Second

// DefaultUserAgent names the program to sites.
const DefaultUserAgent = "loki"

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
	"application/epub+zip":   "epub",
	"text/rtf":               "rtf",
	"text/html":              "html",
	"application/xhtml+xml":  "html",
}

// fetch adds the document at an address: HTML as Markdown, pictures as pictures,
// other documents as what they are converted to, and text as it is.
func (l *Loader) fetch(ctx context.Context, c *collector, address string) error {
	if strings.HasSuffix(address, "**") {
		return fault.New(fault.Usage, "%s: whole sites cannot be attached, only pages", address)
	}
	if l.HasLoader(AddressLoader) {
		text, err := l.RunLoader(ctx, AddressLoader, address)
		if err != nil {
			return err
		}
		return c.add(Document{Kind: URL, Name: address, Text: text})
	}
	page, err := l.Get(ctx, nil, address)
	if err != nil {
		return err
	}
	if strings.HasPrefix(page.Type, "image/") && page.Type != "image/svg+xml" {
		if _, err := l.ContentOf(address, page.Ext, page.Data); err != nil {
			return err
		}
	}
	if page.Media() && page.Type != "image/svg+xml" {
		return c.addImage(Image{Name: address, URL: dataURL(page.Type, page.Data)})
	}
	content, err := l.PageText(ctx, page)
	if err != nil {
		return err
	}
	c.unread(address, content.Unread)
	return c.add(Document{Kind: URL, Name: address, Text: content.Text})
}

// Page is what is at an address.
type Page struct {
	Address string // after redirections
	Data    []byte // at most [MaxFileSize] bytes
	Type    string // content type without parameters
	Ext     string // extension of files of this type, without the dot
	charset string // label of the encoding that the reply declares, "" for none
}

// Media reports whether p is a picture, a video or sound.
func (p *Page) Media() bool {
	kind, _, _ := strings.Cut(p.Type, "/")
	return kind == "image" || kind == "video" || kind == "audio"
}

// Text returns p as text, in the encoding that it or the reply declares.
func (p *Page) Text() (string, error) {
	decode := document.Decode
	if p.Ext == "html" {
		decode = document.DecodePage
	}
	text, ok := decode(p.Data, p.charset)
	switch {
	case ok:
		return text, nil
	case !strings.HasPrefix(p.Type, "text/"):
		return "", fault.New(fault.Usage, "%s is not text but %s", p.Address, p.Type).
			WithHint("a command at document_loaders.%s in config.yaml can turn such documents into text", p.Ext)
	}
	return "", NotText(p.Address, p.Data, p.Ext)
}

// PageText returns p as text for a model: converted if there is a way for documents of its type, HTML
// as Markdown. Its Ext is the extension of files with such text.
func (l *Loader) PageText(ctx context.Context, p *Page) (document.Content, error) {
	if l.Converts(p.Ext) && (p.Ext != "html" || l.HasLoader(p.Ext)) { // a page has links that depend on its address
		c, err := l.ConvertData(ctx, p.Ext, p.Data)
		if err != nil {
			return document.Content{}, fault.Wrap(fault.CodeOf(err), err, "%s", p.Address)
		}
		return c, nil
	}
	text, err := p.Text()
	if err != nil || p.Ext != "html" {
		return document.Content{Text: text, Ext: p.Ext}, err
	}
	return document.Content{Text: document.Markdown(text, p.Address), Ext: "md"}, nil
}

// StatusError is a reply with a status other than 2xx. A page that does not exist is a
// [fs.ErrNotExist].
type StatusError struct {
	Address string
	Status  string // such as "404 Not Found"
	Code    int
	Wait    time.Duration // that the server asks for; 0 if it does not
}

func (e *StatusError) Error() string { return fmt.Sprintf("fetching %s: %s", e.Address, e.Status) }

// FaultCode returns [fault.Tool].
func (e *StatusError) FaultCode() fault.Code { return fault.Tool }

// Is reports whether target is [fs.ErrNotExist], for pages that do not exist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && (e.Code == http.StatusNotFound || e.Code == http.StatusGone)
}

// Get returns what is at an address, within [FetchTimeout]. client is nil for that of l. header is
// pairs of names and values. A status other than 2xx is a [*StatusError].
func (l *Loader) Get(ctx context.Context, client *http.Client, address string, header ...string) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	shown := WithoutPassword(address)
	failed := func(err error) error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.New(fault.Tool, "%s did not answer within %v", shown, FetchTimeout)
		}
		return fault.Wrap(fault.Tool, err, "fetching %s", shown)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, withoutURL(err), "%s", shown)
	}
	req.Header.Set("User-Agent", cmp.Or(l.UserAgent, DefaultUserAgent))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	following := *cmp.Or(client, l.HTTP, http.DefaultClient)
	follow := following.CheckRedirect
	following.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case web.Inward(to.Context(), via[0].URL, to.URL):
			return fmt.Errorf("it redirects to %s, which is this machine or in its network", to.URL.Host)
		case follow != nil:
			return follow(to, via)
		case len(via) > 10: // as net/http does
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	resp, err := following.Do(req)
	if err != nil {
		return nil, failed(withoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &StatusError{Address: shown, Status: resp.Status, Code: resp.StatusCode, Wait: retry.After(resp.Header)}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxFileSize+1))
	if err != nil {
		return nil, failed(err)
	}
	if len(data) > MaxFileSize {
		return nil, &tooLargeError{shown, MaxFileSize}
	}
	contentType, parameters, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		if contentType, _, err = mime.ParseMediaType(mime.TypeByExtension(path.Ext(resp.Request.URL.Path))); err != nil {
			contentType, _, _ = mime.ParseMediaType(http.DetectContentType(data))
		}
	}
	final := *resp.Request.URL
	final.User = nil
	page := &Page{
		Address: final.String(), Data: data, Type: contentType, charset: parameters["charset"],
		Ext: cmp.Or(extensions[contentType], path.Base(contentType)),
	}
	// What servers declare is often wrong, or nothing in particular.
	switch found := document.Sniff(data); {
	case imageTypes[found] != "":
		page.Type, page.Ext = imageTypes[found], found
	case document.Reads(found):
		page.Type, page.Ext = mediaTypeOf(found), found
	case found != "":
		page.Type, page.Ext = "image/"+found, found
	case isImage(contentType):
		if _, ok := document.Decode(data, ""); ok { // such as a page that says that the picture is gone
			page.Type, _, _ = strings.Cut(http.DetectContentType(data), ";")
			page.Ext = cmp.Or(extensions[page.Type], path.Base(page.Type))
		}
	}
	return page, nil
}

// mediaTypeOf returns the media type of documents with an extension.
func mediaTypeOf(ext string) string {
	for media, known := range extensions {
		if known == ext && strings.HasPrefix(media, "application/") {
			return media
		}
	}
	return "application/octet-stream"
}

// WithoutPassword returns an address without the name and password in it, other texts as they are.
func WithoutPassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	host, path, slash := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if slash {
		host += "/"
	}
	return scheme + "://" + host + path
}

// withoutURL drops the address that errors of net/http repeat.
func withoutURL(err error) error {
	if e, ok := err.(*url.Error); ok {
		return e.Err
	}
	return err
}

// loadData runs a document loader on data that is in no file yet.
func (l *Loader) loadData(ctx context.Context, loader string, data []byte) (string, error) {
	dir, err := tempdir.Make("", "download")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "document."+loader)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", err
	}
	return l.RunLoader(ctx, loader, file)
}
