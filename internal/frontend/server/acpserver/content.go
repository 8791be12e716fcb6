package acpserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/knowledge/input"
)

// content returns what the blocks of a prompt say and attach. Sources are where the attachments come from.
func (s *sess) content(ctx context.Context, blocks []acp.ContentBlock) (text string, all input.Attachments, sources []string, err error) {
	loader := s.app.Loader()
	var said strings.Builder
	var list []input.Attachments
	for i, b := range blocks {
		wrong := func(field, problem string) error { return acp.Invalid(fmt.Sprintf("prompt.%d.%s", i, field), problem) }
		one := input.Attachments{}
		switch b.Type {
		case "text":
			said.WriteString(b.Text)
		case "image":
			if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil || !strings.HasPrefix(b.MimeType, "image/") {
				return "", all, nil, wrong("data", "a picture in base64 with a type image/... is expected")
			}
			one.Images = []input.Image{{Name: nameOf(b.URI, fmt.Sprintf("picture %d", i+1)), URL: input.PictureURL("data:" + b.MimeType + ";base64," + b.Data)}}
		case "resource_link":
			path, ok := pathOf(b.URI)
			if !ok {
				fmt.Fprintf(&said, "[%s](%s)", b.Name, b.URI)
				break
			}
			said.WriteString(path)
			if one, err = loader.Load(ctx, []string{path}); err != nil {
				return "", all, nil, err
			}
			sources = append(sources, path)
		case "resource":
			switch r := b.Resource; {
			case r == nil || r.Text == nil && r.Blob == nil:
				return "", all, nil, wrong("resource", "a text or a blob is expected")
			case r.Text != nil:
				one.Documents = []input.Document{{Kind: input.File, Name: nameOf(r.URI, "resource"), Text: *r.Text}}
			default:
				data, err := base64.StdEncoding.DecodeString(*r.Blob)
				if err != nil {
					return "", all, nil, wrong("resource.blob", "base64 is expected")
				}
				if one, err = loader.LoadData(ctx, nameOf(r.URI, "resource"), r.MimeType, data); err != nil {
					return "", all, nil, err
				}
			}
			sources = append(sources, nameOf(b.Resource.URI, "resource"))
		default:
			return "", all, nil, wrong("type", fmt.Sprintf("content of type %q is not taken", b.Type))
		}
		list = append(list, one)
	}
	all, err = input.Join(list...)
	return said.String(), all, sources, err
}

// pathOf returns the path of a file that a URI names.
func pathOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	path = filepath.FromSlash(path)
	return path, filepath.IsAbs(path)
}

// nameOf returns how an attachment is called.
func nameOf(uri, other string) string {
	if path, ok := pathOf(uri); ok {
		return path
	}
	if uri == "" {
		return other
	}
	return uri
}
