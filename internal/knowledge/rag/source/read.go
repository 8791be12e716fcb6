package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
)

// plain is the extension of texts that are nothing in particular.
const plain = "txt"

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// asText returns the content of a document that is text.
func asText(hash, text, ext string, lines bool) *Content {
	return &Content{Hash: hash, text: func(context.Context) (Body, error) {
		return Body{document.Content{Text: text, Ext: ext}, lines}, nil
	}}
}

// extOf returns the extension of a path, without the dot and in lower case. A name that only begins with
// a dot has none.
func extOf(path string) string {
	name := filepath.Base(path)
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(strings.TrimLeft(name, ".")), "."))
}

// textExt returns ext as the extension of a text.
func textExt(ext string) string {
	switch ext {
	case "", "plain":
		return plain
	case "markdown":
		return "md"
	}
	return ext
}

// readFile reads a file. named is false for one below a directory, which is skipped if it cannot be
// used.
func (l *Loader) readFile(ctx context.Context, path string, named bool) (*Content, error) {
	if l.Input.Denied != nil {
		if err := l.Input.Denied(path); err != nil {
			if named {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w: %w", ErrPassedOver, ErrWithheld, err)
		}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // reading a pipe or a device might never end
		return nil, fault.New(fault.Usage, "%s is %s, not a file", path, text.FileKind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ext := extOf(path)
	if l.Input.HasLoader(ext) {
		return l.hashFile(ctx, f, path, ext)
	}
	tooLarge := info.Size() > MaxSize
	var data []byte
	if !tooLarge {
		if data, err = readAll(f, int(info.Size())); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		tooLarge = len(data) > MaxSize
	}
	if tooLarge {
		return nil, passOver(named, fault.New(fault.Usage, "%s is larger than %d MiB", path, MaxSize>>20))
	}
	// Whether it is text does not matter for a document that has not changed.
	hash := hashOf(data)
	return &Content{Hash: hash, size: len(data), text: func(ctx context.Context) (Body, error) {
		content, err := l.content(path, ext, hash, data)
		if err != nil && !named && otherEncoding(data) {
			err = fmt.Errorf("%w: %w", ErrEncoding, err)
		}
		if err != nil {
			return Body{}, passOver(named, err)
		}
		return content.Text(ctx)
	}}, nil
}

// otherEncoding reports whether data that is not text in UTF-8 looks like text in another encoding: it has no control characters, or,
// in UTF-16, no others than a NUL in about every second place.
func otherEncoding(data []byte) bool {
	head := data[:min(len(data), 4096)]
	var zeros [2]int
	for i, b := range head {
		switch {
		case b == 0:
			zeros[i%2]++
		case b < ' ' && !unicode.IsSpace(rune(b)) && b != 0x1b: // the last is of ISO-2022
			return false
		}
	}
	if most := max(zeros[0], zeros[1]); most > 0 {
		return min(zeros[0], zeros[1]) == 0 && 3*most > len(head)
	}
	return strings.HasPrefix(http.DetectContentType(data), "text/")
}

// passOver returns the error for a file that cannot be used.
func passOver(named bool, err error) error {
	if named {
		return err
	}
	return fmt.Errorf("%w: %w", ErrPassedOver, err)
}

// readAll reads a file of about size bytes, and not more than one byte beyond [MaxSize].
func readAll(f *os.File, size int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(size + bytes.MinRead) // so that it does not grow to see the end
	_, err := buf.ReadFrom(io.LimitReader(f, MaxSize+1))
	return buf.Bytes(), err
}

// content returns the content of a file that was read; the error is that it is not text.
func (l *Loader) content(name, ext, hash string, data []byte) (*Content, error) {
	is, err := l.Input.ContentOf(name, ext, data)
	if err != nil {
		return nil, err
	}
	if is.Image != "" {
		return nil, fault.New(fault.Usage, "%s is a picture (%s), and a knowledge base has text", name, is.Image)
	}
	if is.Kind != "" {
		return &Content{Hash: hash, size: len(data), text: func(ctx context.Context) (Body, error) {
			c, err := l.Input.ConvertData(ctx, is.Kind, data)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return Body{Content: c}, err
		}}, nil
	}
	text, ok := document.Decode(data, "")
	if !ok {
		return nil, input.NotText(name, data, ext)
	}
	content := asText(hash, text, textExt(ext), true)
	content.size = len(data)
	return content, nil
}

// hashFile returns the content of a file that the user has a document loader for, which may be of any
// size.
func (l *Loader) hashFile(ctx context.Context, f *os.File, path, ext string) (*Content, error) {
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, err := io.CopyN(sum, f, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return &Content{Hash: hex.EncodeToString(sum.Sum(nil)), text: func(ctx context.Context) (Body, error) {
		c, err := l.Input.Convert(ctx, ext, path)
		return Body{Content: c}, err
	}}, nil
}

// readPage reads what is at an address.
func (l *Loader) readPage(ctx context.Context, address string) (*Content, error) {
	if l.Input.HasLoader(input.AddressLoader) {
		text, err := l.Input.RunLoader(ctx, input.AddressLoader, address)
		return asText(hashOf([]byte(text)), text, plain, false), err
	}
	address, _, _ = strings.Cut(address, "#")
	p, err := l.get(ctx, nil, &pace{}, address)
	if err != nil {
		return nil, err
	}
	return l.pageContent(p)
}

// pageContent returns the content of a page; the error is that it is not text.
func (l *Loader) pageContent(p *input.Page) (*Content, error) {
	if p.Media() {
		return nil, fault.New(fault.Usage, "%s is not text but %s", p.Address, p.Type)
	}
	if !l.Input.Converts(p.Ext) {
		if _, err := p.Text(); err != nil {
			return nil, err
		}
	}
	return &Content{Hash: hashOf(p.Data), text: func(ctx context.Context) (Body, error) {
		c, err := l.Input.PageText(ctx, p)
		if c.Ext == "plain" { // what servers call most texts
			c.Ext = strings.ToLower(strings.TrimPrefix(path.Ext(p.Address), "."))
		}
		c.Ext = textExt(c.Ext)
		return Body{Content: c}, err
	}}, nil
}

// get fetches an address at the pace of its site. If the site asks to come back later, it is tried again.
func (l *Loader) get(ctx context.Context, client *http.Client, at *pace, address string, header ...string) (*input.Page, error) {
	for failures := 1; ; failures++ {
		if err := at.wait(ctx); err != nil {
			return nil, err
		}
		p, err := l.Input.Get(ctx, client, address, header...)
		status, ok := errors.AsType[*input.StatusError](err)
		if !ok || status.Code != http.StatusTooManyRequests && status.Code != http.StatusServiceUnavailable {
			return p, err
		}
		wait, again := l.Retry.Wait(failures, status.Wait, rand.Float64())
		if !again {
			return nil, err
		}
		at.pause(wait)
	}
}

// load runs the document loader of the source.
func (s *search) load(ctx context.Context) error {
	parts, err := s.Input.LoadParts(ctx, s.source)
	if err != nil {
		return err
	}
	for _, part := range parts {
		body := Body{Content: document.Content{Text: part.Text, Ext: textExt(part.Ext), Unread: part.Unread}}
		content := &Content{Hash: hashOf([]byte(part.Text)), text: func(context.Context) (Body, error) { return body, nil }}
		if !s.found(part.Path, func(context.Context) (*Content, error) { return content, nil }) {
			return nil
		}
	}
	return nil
}

// loadSite runs the document loader for whole sites.
func (s *search) loadSite(ctx context.Context, start string) error {
	text, err := s.Input.RunLoader(ctx, siteLoader, start)
	if err != nil {
		return err
	}
	var pages []struct{ Path, Text string }
	if err := json.Unmarshal([]byte(text), &pages); err != nil {
		return fault.Wrap(fault.Tool, err, "document loader %s did not print a JSON array of objects with path and text", siteLoader)
	}
	for _, p := range pages {
		if !s.found(input.WithoutPassword(p.Path), func(context.Context) (*Content, error) {
			return asText(hashOf([]byte(p.Text)), p.Text, "md", false), nil
		}) {
			return nil
		}
	}
	return nil
}

// siteLoader is the name of the document loader that serves whole sites.
const siteLoader = "recursive_url"
