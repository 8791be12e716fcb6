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
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

func main() {
	log.SetFlags(0)
	out := must(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output())
	module := strings.TrimSpace(string(out))
	check(os.RemoveAll("lexers"))
	check(os.Mkdir("lexers", 0o755))
	for _, file := range must(filepath.Glob(filepath.Join(module, "lexers", "embedded", "*.xml"))) {
		if filepath.Base(file) != "plaintext.xml" { // which finds nothing
			write(safeName(filepath.Base(file)), must(os.ReadFile(file)))
		}
	}
	for _, l := range []chroma.Lexer{lexers.Go, lexers.Caddyfile, lexers.Get("markdown"), lexers.Get("reStructuredText"), lexers.Get("Gemtext")} {
		dump(l)
	}
	write("COPYING", must(os.ReadFile(filepath.Join(module, "COPYING"))))
	index()
}

// check ends the program if something has failed.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// write writes a file of the directory lexers.
func write(name string, data []byte) { check(os.WriteFile(filepath.Join("lexers", name), data, 0o644)) }

// safeName returns a name that the embed package accepts everywhere.
func safeName(name string) string {
	return strings.NewReplacer("#", "sharp", "+", "p").Replace(name)
}

// dump writes a lexer that chroma has as Go code.
func dump(l chroma.Lexer) {
	for {
		if r, ok := l.(*chroma.RegexLexer); ok {
			dumpRules(r)
			return
		}
		l = reflect.ValueOf(l).Elem().FieldByName("Lexer").Interface().(chroma.Lexer)
	}
}

func dumpRules(l *chroma.RegexLexer) {
	rules := must(l.Rules())
	for _, state := range rules {
		for i := range state {
			state[i].Type = serializable(state[i].Type)
		}
	}
	clone := must(chroma.NewLexer(l.Config(), func() chroma.Rules { return rules }))
	name := strings.ToLower(strings.ReplaceAll(l.Config().Name, " ", "_")) + ".xml"
	write(name, append(must(chroma.Marshal(clone)), '\n'))
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
func index() {
	var b bytes.Buffer
	b.WriteString("# file, names, endings of file names; made by generate.go\n")
	for _, file := range must(filepath.Glob("lexers/*.xml")) { // in order
		var doc struct {
			Config struct {
				Name      string   `xml:"name"`
				Aliases   []string `xml:"alias"`
				Filenames []string `xml:"filename"`
			} `xml:"config"`
		}
		check(xml.Unmarshal(must(os.ReadFile(file)), &doc))
		names := unique(append([]string{doc.Config.Name}, doc.Config.Aliases...))
		var endings []string
		for _, name := range doc.Config.Filenames {
			if ending, ok := strings.CutPrefix(name, "*."); ok && !strings.ContainsAny(ending, "*[?") {
				endings = append(endings, ending)
			}
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", strings.TrimSuffix(filepath.Base(file), ".xml"), strings.Join(names, ","), strings.Join(unique(endings), ","))
	}
	write("index.txt", b.Bytes())
}

func unique(list []string) (out []string) {
	for _, s := range list {
		if s = strings.ToLower(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
