//go:build ignore

// Generate copies the lexers of the chroma module to the directory lexers, writes the ones that
// chroma has as Go code as XML, and builds the index. Run it as: go generate
// ./internal/frontend/render/highlight
package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		return err
	}
	module := strings.TrimSpace(string(out))
	if err := os.RemoveAll("lexers"); err != nil {
		return err
	}
	if err := os.Mkdir("lexers", 0o755); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(module, "lexers", "embedded", "*.xml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "plaintext.xml" {
			continue // it finds nothing
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("lexers", safeName(filepath.Base(file))), data, 0o644); err != nil {
			return err
		}
	}
	for _, l := range []chroma.Lexer{lexers.Go, lexers.Caddyfile, lexers.Get("markdown"), lexers.Get("reStructuredText"), lexers.Get("Gemtext")} {
		if err := dump(l); err != nil {
			return err
		}
	}
	license, err := os.ReadFile(filepath.Join(module, "COPYING"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join("lexers", "COPYING"), license, 0o644); err != nil {
		return err
	}
	return index()
}

// safeName returns a name that the embed package accepts everywhere.
func safeName(name string) string {
	return strings.NewReplacer("#", "sharp", "+", "p").Replace(name)
}

// dump writes a lexer that chroma has as Go code.
func dump(l chroma.Lexer) error {
	for {
		if r, ok := l.(*chroma.RegexLexer); ok {
			return dumpRules(r)
		}
		f := reflect.ValueOf(l).Elem().FieldByName("Lexer")
		if !f.IsValid() {
			return fmt.Errorf("%s: no rules", l.Config().Name)
		}
		l = f.Interface().(chroma.Lexer)
	}
}

func dumpRules(l *chroma.RegexLexer) error {
	rules, err := l.Rules()
	if err != nil {
		return err
	}
	for _, state := range rules {
		for i := range state {
			state[i].Type = serializable(state[i].Type)
		}
	}
	clone, err := chroma.NewLexer(l.Config(), func() chroma.Rules { return rules })
	if err != nil {
		return err
	}
	data, err := chroma.Marshal(clone)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Config().Name, err)
	}
	name := strings.ToLower(strings.ReplaceAll(l.Config().Name, " ", "_")) + ".xml"
	return os.WriteFile(filepath.Join("lexers", name), append(data, '\n'), 0o644)
}

// serializable replaces what cannot be written: Go code that lexes a part is a string.
func serializable(e chroma.Emitter) chroma.Emitter {
	if e == nil {
		return nil
	}
	if _, ok := e.(chroma.SerialisableEmitter); !ok {
		return chroma.LiteralString
	}
	if v := reflect.ValueOf(e); v.Kind() == reflect.Pointer {
		if list := v.Elem().FieldByName("Emitters"); list.IsValid() {
			emitters := list.Interface().(chroma.Emitters)
			for i := range emitters {
				emitters[i] = serializable(emitters[i])
			}
		}
	}
	return e
}

// index lists for each lexer its file, and below it its names, then its file names.
func index() error {
	files, err := filepath.Glob("lexers/*.xml")
	if err != nil {
		return err
	}
	sort.Strings(files)
	var b bytes.Buffer
	b.WriteString("# file, names, endings of file names; made by generate.go\n")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var doc struct {
			Config struct {
				Name      string   `xml:"name"`
				Aliases   []string `xml:"alias"`
				Filenames []string `xml:"filename"`
			} `xml:"config"`
		}
		if err := xml.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		names := unique(append([]string{doc.Config.Name}, doc.Config.Aliases...))
		var endings []string
		for _, name := range doc.Config.Filenames {
			if ending, ok := strings.CutPrefix(name, "*."); ok && !strings.ContainsAny(ending, "*[?") {
				endings = append(endings, ending)
			}
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", strings.TrimSuffix(filepath.Base(file), ".xml"), strings.Join(names, ","), strings.Join(unique(endings), ","))
	}
	return os.WriteFile("lexers/index.txt", b.Bytes(), 0o644)
}

func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		s = strings.ToLower(s)
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
