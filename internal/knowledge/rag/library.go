package rag

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// Extensions of the files of knowledge bases.
const (
	Extension    = ".db"
	oldExtension = ".yaml" // of older versions
)

// Library finds knowledge bases by name.
type Library struct {
	Dir string // NAME.db each; need not exist

	// TempDir has the knowledge bases whose names begin with [TempPrefix], which users cannot choose as
	// names. Names does not return them. "" has none.
	TempDir string

	// Store returns the place of the knowledge base in a file, which need not exist.
	Store func(file string) (Store, error)
}

// TempPrefix is what the names of temporary knowledge bases begin with.
const TempPrefix = ".temp"

// Names returns the names of all knowledge bases, ascending, those of older versions included.
func (l Library) Names() ([]string, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Config, err, "listing the knowledge bases")
	}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), Extension), oldExtension)
		if name != e.Name() && !e.IsDir() && text.FileNameFault(name) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// File returns the file of the knowledge base called name, which need not exist. An impossible name
// is an error with code Usage.
func (l Library) File(name string) (string, error) {
	if number, ok := strings.CutPrefix(name, TempPrefix); ok && l.TempDir != "" && strings.Trim(number, "0123456789") == "" {
		return filepath.Join(l.TempDir, name[1:]+Extension), nil
	}
	if why := text.FileNameFault(name); why != "" {
		return "", fault.New(fault.Usage, "%q cannot be the name of a knowledge base: %s", name, why)
	}
	return filepath.Join(l.Dir, name+Extension), nil
}

// NotBuiltError returns the error, with code NotFound, for the name of a knowledge base that was not built.
func (l Library) NotBuiltError(name string) error {
	if file, err := l.File(name); err == nil {
		if _, err := os.Stat(OldFile(file)); err == nil {
			return fault.New(fault.NotFound, "knowledge base %q is one of an older version", name).
				WithHint("it is built anew from its documents when it is used, or at once: loki --rag %s --rebuild-rag", text.Word(name))
		}
	}
	hint := "build it: loki --rag " + text.Word(name) + " --rag-add DIR"
	names, _ := l.Names()
	if near := yamldoc.Nearest(name, names); near != "" {
		hint += "; or did you mean " + near + "?"
	}
	return fault.New(fault.NotFound, "there is no knowledge base %q", name).ThatMisses("rag").WithHint("%s", hint)
}

// OldFile returns the file in which an older version kept the knowledge base that is now in file.
func OldFile(file string) string { return strings.TrimSuffix(file, Extension) + oldExtension }

// ReadOld returns the settings of a knowledge base that an older version wrote to a YAML file. The
// error is a [fs.ErrNotExist] if there is no such file, and has code Config if it is malformed. The
// documents and vectors in the file are not read: they are those of another splitter.
func ReadOld(file string) (Settings, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return Settings{}, err
	case !info.Mode().IsRegular(): // opening a pipe might never end
		return Settings{}, fault.New(fault.Config, "%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return Settings{}, err
	}
	defer f.Close()
	src, err := oldHead(f)
	if err != nil {
		return Settings{}, fault.Wrap(fault.Config, err, "%s", file)
	}
	s, err := parseOld(file, src)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return Settings{}, fault.Wrap(fault.Config, err, "reading a knowledge base of an older version").
			WithHint("correct %s, or delete it and build the knowledge base anew", file)
	}
	return s, nil
}

// oldHead returns the text of a YAML file without the values of the keys files and vectors, which
// are nearly all of it, with the numbers of the lines kept.
func oldHead(f io.Reader) ([]byte, error) {
	var head bytes.Buffer
	r, skip := bufio.NewReader(f), false
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && !bytes.ContainsAny(line[:1], " -#\r\n") {
			skip = bytes.HasPrefix(line, []byte("files:")) || bytes.HasPrefix(line, []byte("vectors:"))
		}
		for long := errors.Is(err, bufio.ErrBufferFull); ; long = errors.Is(err, bufio.ErrBufferFull) {
			if !skip {
				head.Write(line)
			}
			if !long {
				break
			}
			line, err = r.ReadSlice('\n')
		}
		if skip && len(line) > 0 {
			head.WriteByte('\n')
		}
		if head.Len() > yamldoc.MaxSize {
			return nil, fmt.Errorf("more than %d MiB", yamldoc.MaxSize>>20)
		}
		switch {
		case errors.Is(err, io.EOF):
			return head.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
}

func parseOld(file string, src []byte) (Settings, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{TopK: DefaultTopK}
	m := doc.Root().Map()
	m.Require("embedding_model", "chunk_size", "document_paths")
	m.Text("embedding_model", &s.EmbeddingModel)
	m.Uint("chunk_size", &s.ChunkSize)
	s.ChunkOverlap = DefaultOverlap(s.ChunkSize)
	m.Uint("chunk_overlap", &s.ChunkOverlap)
	m.Text("reranker_model", &s.RerankerModel)
	m.Uint("top_k", &s.TopK)
	m.Foreign("batch_size")
	m.Texts("document_paths", &s.Documents)
	return s, doc.Err()
}
