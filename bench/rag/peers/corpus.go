package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// corpus is a tree of files and what is asked about it.
type corpus struct {
	dir     string
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Queries []query `json:"queries"`
}

// query is a text from a file of the corpus that is searched for.
type query struct {
	Text string `json:"text"`
	Kind string `json:"kind"`
	Path string `json:"path"` // where it is from, below the corpus
}

// kinds of queries.
var kinds = []string{"package", "function", "name"}

// useCorpus returns the corpus of n files and q queries below dir, and makes it if it is not there.
func useCorpus(dir string, n, q int) (*corpus, error) {
	dir = filepath.Join(dir, fmt.Sprintf("corpus-%d-%d", n, q))
	file := dir + ".json"
	data, err := os.ReadFile(file)
	if err == nil {
		c := &corpus{dir: dir}
		return c, json.Unmarshal(data, c)
	}
	c, err := newCorpus(dir, n, q)
	if err != nil {
		return nil, err
	}
	if data, err = json.MarshalIndent(c, "", "\t"); err != nil {
		return nil, err
	}
	return c, os.WriteFile(file, data, 0o600)
}

// newCorpus copies n text files of Go's own source and of the module cache: of all such files of
// up to 100 KB, by their paths, every so manieth.
func newCorpus(dir string, n, queries int) (*corpus, error) {
	type candidate struct{ from, to string }
	var found []candidate
	for name, variable := range map[string]string{"go": "GOROOT", "mod": "GOMODCACHE"} {
		out, err := exec.Command("go", "env", variable).Output()
		if err != nil {
			return nil, fmt.Errorf("go env %s: %w", variable, err)
		}
		root := strings.TrimSpace(string(out))
		if name == "go" {
			root = filepath.Join(root, "src")
		}
		err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, p)
			switch {
			case d.IsDir() && name == "mod" && rel == "cache":
				return filepath.SkipDir
			case d.Type().IsRegular():
				found = append(found, candidate{p, path.Join(name, visible(filepath.ToSlash(rel)))})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.to, b.to) })
	var texts []candidate
	for _, c := range found {
		if data, err := os.ReadFile(c.from); err == nil && isText(data) {
			texts = append(texts, c)
		}
	}
	if len(texts) < n {
		return nil, fmt.Errorf("only %d text files found, not %d", len(texts), n)
	}
	c := &corpus{dir: dir, Files: n}
	var chosen []string
	for i := range n {
		f := texts[i*len(texts)/n]
		data, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(dir, filepath.FromSlash(f.to))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return nil, err
		}
		c.Bytes += int64(len(data))
		chosen = append(chosen, f.to)
	}
	return c, c.ask(chosen, queries)
}

// visible returns a path without names that walks of directories pass over.
func visible(p string) string {
	names := strings.Split(p, "/")
	for i, name := range names {
		if strings.HasPrefix(name, ".") || slices.Contains([]string{"vendor", "node_modules", "target", "dist", "build", "__pycache__"}, name) {
			names[i] = "x" + name
		}
	}
	return strings.Join(names, "/")
}

func isText(data []byte) bool {
	return len(bytes.TrimSpace(data)) > 0 && len(data) <= 100_000 && utf8.Valid(data) &&
		!bytes.HasPrefix(data, []byte("%PDF")) && !bytes.HasPrefix(data, []byte(`{\rtf`)) && bytes.IndexByte(data, 0) < 0
}

// ask makes queries of the Go files among those chosen: what a package is for and what a function
// does, without their names, and names of functions, as many of each.
func (c *corpus) ask(chosen []string, queries int) error {
	byKind := make(map[string][]query)
	asked := make(map[string]bool)
	add := func(kind, file, text string) {
		if len(strings.Fields(text)) >= 4 == (kind != "name") && len(text) <= 200 && !asked[text] {
			asked[text] = true
			byKind[kind] = append(byKind[kind], query{text, kind, file})
		}
	}
	for _, file := range chosen {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(c.dir, filepath.FromSlash(file)), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue // it is text all the same
		}
		if s, ok := strings.CutPrefix(sentence(f.Doc.Text()), "Package "+f.Name.Name+" "); ok {
			add("package", file, s)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && fn.Doc != nil {
				if s, ok := strings.CutPrefix(sentence(fn.Doc.Text()), fn.Name.Name+" "); ok {
					add("function", file, s)
				}
				add("name", file, fn.Name.Name)
			}
		}
	}
	for i, kind := range kinds {
		all := byKind[kind]
		n := min((queries+2-i)/3, len(all))
		for j := range n {
			c.Queries = append(c.Queries, all[j*len(all)/n])
		}
	}
	if len(c.Queries) < queries {
		return fmt.Errorf("only %d queries found, not %d", len(c.Queries), queries)
	}
	return nil
}

func sentence(doc string) string {
	s, _, _ := strings.Cut(strings.Join(strings.Fields(doc), " "), ". ")
	return strings.TrimSuffix(s, ".")
}
