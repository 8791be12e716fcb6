package openai

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
)

// filePart is the type of parts that are documents, until they are loaded. Their text is the name of the file, their URL
// a data: URL, or where the file is.
const filePart chat.PartType = "file"

// load replaces documents by their texts, and addresses of pictures by the pictures. What has an address is fetched by the
// rules for pages that a model names: no private addresses, unless they are allowed.
func (s *service) load(ctx context.Context, r *request) error {
	var loader *input.Loader
	load := func(m *chat.Message) (err error) {
		if !slices.ContainsFunc(m.Parts, unloaded) {
			return nil
		}
		if loader == nil {
			loader = s.app.ServedLoader()
		}
		var parts []chat.Part
		for _, p := range m.Parts {
			loaded := []chat.Part{p}
			if unloaded(p) {
				if loaded, err = r.loadPart(ctx, loader, p); err != nil {
					return invalid(r.place, "%s: %v", r.place, err)
				}
			}
			parts = append(parts, loaded...)
		}
		m.Parts = parts
		return nil
	}
	err := load(&r.User)
	for i := range r.History {
		if err == nil {
			err = load(&r.History[i])
		}
	}
	if loader != nil {
		loader.HTTP.CloseIdleConnections()
	}
	return err
}

func unloaded(p chat.Part) bool {
	return p.Type == filePart || p.Type == chat.ImagePart && !strings.HasPrefix(p.URL, "data:")
}

// loadPart returns what a part becomes.
func (r *request) loadPart(ctx context.Context, loader *input.Loader, p chat.Part) (parts []chat.Part, err error) {
	if p.Type == chat.ImagePart {
		page, err := loader.Get(ctx, nil, p.URL)
		if err != nil {
			return nil, fmt.Errorf("the picture cannot be fetched: %w", err)
		}
		if !strings.HasPrefix(page.Type, "image/") {
			return nil, fmt.Errorf("%s is not a picture but %s", page.Address, page.Type)
		}
		p.URL = "data:" + page.Type + ";base64," + base64.StdEncoding.EncodeToString(page.Data)
		return []chat.Part{p}, nil
	}
	var a input.Attachments
	if rest, ok := strings.CutPrefix(p.URL, "data:"); ok {
		media, text, _ := strings.Cut(rest, ";base64,")
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("file %s is not base64: %w", p.Text, err)
		}
		a, err = loader.LoadData(ctx, p.Text, media, data)
		if err != nil {
			return nil, err
		}
	} else if a, err = loader.Load(ctx, []string{p.URL}); err != nil {
		return nil, err
	}
	r.unread = append(r.unread, a.Unread...)
	if len(a.Documents) > 0 { // under a banner, and apart from the texts beside it
		parts = append(parts, chat.Part{Type: chat.TextPart, Text: a.Text("\n")[1:] + "\n\n"})
	}
	for _, image := range a.Images {
		parts = append(parts, chat.Part{Type: chat.ImagePart, URL: image.URL})
	}
	return parts, nil
}
