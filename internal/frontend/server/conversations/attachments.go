package conversations

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/knowledge/input"
)

// attachments loads what a request names or sends along. text is what the user says, sources are where the rest
// comes from.
func (s *service) attachments(ctx context.Context, req *api.CompletionRequest) (attached input.Attachments, text string, sources []string, err error) {
	var texts []string
	files := req.Files
	if req.Prompt.Parts == nil {
		texts = []string{req.Prompt.Text}
	}
	var images []input.Image
	for i, p := range req.Prompt.Parts {
		at := fmt.Sprintf("prompt[%d]", i)
		switch {
		case p.Type == "text" && p.ImageURL == nil && p.File == nil:
			texts = append(texts, p.Text)
		case p.Type == "image_url" && p.ImageURL != nil && p.Text == "" && p.File == nil:
			if !strings.HasPrefix(p.ImageURL.URL, "https://") && !strings.HasPrefix(p.ImageURL.URL, "data:image/") {
				return attached, "", nil, rest.Invalid(at+".image_url.url", "%s.image_url.url: a picture has an https: URL, or a data: URL with the type image/...", at)
			}
			images = append(images, input.Image{Name: at, URL: input.PictureURL(p.ImageURL.URL)})
		case p.Type == "file" && p.File != nil && p.Text == "" && p.ImageURL == nil:
			files = append(files[:len(files):len(files)], *p.File)
		default:
			return attached, "", nil, rest.Invalid(at, "%s: a part of type %s has the member %[2]s and no other", at, p.Type)
		}
	}
	list := []input.Attachments{{Images: images}}
	for i, f := range files {
		one, source, err := s.load(ctx, f)
		if err != nil {
			return attached, "", nil, fileError(i, err)
		}
		list, sources = append(list, one), append(sources, source)
	}
	attached, err = input.Join(list...)
	return attached, strings.Join(texts, "\n"), sources, err
}

// fileError says which file of a request cannot be had.
func fileError(i int, err error) error {
	if _, ok := errors.AsType[*rest.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return &rest.Error{Status: 400, Code: "invalid_request", Param: fmt.Sprintf("files[%d]", i), Message: fmt.Sprintf("files[%d]: %v", i, err), Err: err}
}

// load loads one file.
func (s *service) load(ctx context.Context, f api.PromptFile) (a input.Attachments, source string, err error) {
	forms := 0
	for _, has := range []bool{f.Path != "", f.URL != "", f.ContentBase64 != ""} {
		if has {
			forms++
		}
	}
	loader := s.App.ServedLoader()
	defer loader.HTTP.CloseIdleConnections()
	switch {
	case forms != 1:
		return a, "", errors.New("exactly one of path, url and content_base64 is needed")
	case f.ContentBase64 == "" && (f.Name != "" || f.MediaType != ""):
		return a, "", errors.New("name and media_type go with content_base64")
	case f.URL != "":
		if !strings.HasPrefix(f.URL, "http://") && !strings.HasPrefix(f.URL, "https://") {
			return a, "", errors.New("the url begins neither with https:// nor with http://")
		}
		a, err = loader.Load(ctx, []string{f.URL})
		return a, f.URL, err
	case f.Path != "":
		if loader.Denied != nil {
			if err := loader.Denied(f.Path); err != nil {
				return a, "", err
			}
		}
		data, err := s.read(f.Path)
		if err != nil {
			return a, "", err
		}
		a, err = loader.LoadData(ctx, f.Path, "", data)
		return a, f.Path, err
	}
	data, err := base64.StdEncoding.DecodeString(f.ContentBase64)
	if err != nil {
		return a, "", fmt.Errorf("content_base64: %w", err)
	}
	name := f.Name
	if name == "" {
		name = "attachment"
	}
	a, err = loader.LoadData(ctx, name, f.MediaType, data)
	return a, name, err
}

// read reads a file below one of the directories that the configuration allows. Links do not lead out of them. Whether
// there is anything elsewhere is not revealed.
func (s *service) read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("the path is not absolute")
	}
	for _, dir := range s.Roots() {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return readIn(dir, rel, path)
	}
	return nil, errors.New("the path is not below a directory that api.files.roots allows")
}

// readIn reads a regular file in a directory.
func readIn(dir, rel, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	defer root.Close()
	info, err := root.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file that can be read", path)
	}
	file, err := root.Open(rel)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular file that can be read", path)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, input.MaxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", path)
	}
	return data, nil
}
