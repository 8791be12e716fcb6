package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

// updateHint is what helps against an override file that cannot be used.
const updateHint = "loki --sync-models fetches a new one; or delete the file"

// override is an override file: a list that replaces the built-in one, entirely and
// for one version of the program.
type override struct {
	Version string     `json:"version"`
	List    []provider `json:"list"`
}

// Load returns the known models for the program of a version: those of the override
// file, if there is one for just that version, and the built-in list otherwise. An
// empty name means no file. The list is usable in any case; the problems, which are
// warnings, say why the file is not used, or what of it is ignored. A file for another
// version is not a problem but outdated, which is that version: see [PutAside].
//
// Without a file Load costs nothing. A file that [Sync] has written takes about two
// milliseconds; one in another form of YAML takes tens of them.
func Load(file, version string) (list []catalog.Provider, problems []*yamldoc.Problem, outdated string) {
	if file == "" {
		return BuiltinList(), nil, ""
	}
	src, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return BuiltinList(), nil, ""
	case err != nil:
		return BuiltinList(), []*yamldoc.Problem{{Msg: fmt.Sprintf("the list of models is not read: %v", err), Hint: updateHint}}, ""
	}
	if v := otherVersion(src, version); v != "" {
		return BuiltinList(), nil, v // whatever else is in it
	}
	o, problems, ok := parseOverride(file, src)
	switch {
	case !ok:
		return BuiltinList(), problems, ""
	case o.Version != version:
		return BuiltinList(), nil, o.Version
	}
	return asProviders(o.List), problems, ""
}

// versionLine is the version at the beginning of an override file, as programs write it.
var versionLine = text.Regexp(`^(?:\xef\xbb\xbf)?(?:#[^\n]*\n|\s)*(?:\{\s*)?"?version"?:\s*["']?(\d[\w.+-]*)["']?\s*(?:,|\r?\n|$)`)

// otherVersion returns the version that the text of an override file begins with, without
// reading the rest. It is empty if that is version itself, or the text begins otherwise.
func otherVersion(src []byte, version string) string {
	found := versionLine().FindSubmatch(src)
	if found == nil || string(found[1]) == version {
		return ""
	}
	return string(found[1])
}

// PutAside renames an override file, which is outdated as it is for another version, and
// returns its new name. The file is not read any more then, and nothing of it is lost.
func PutAside(file, version string) (renamed string, err error) {
	name, extension := strings.TrimSuffix(file, filepath.Ext(file)), filepath.Ext(file)
	tag := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/\\:", r) || r <= ' ' {
			return '_'
		}
		return r
	}, version)
	for n := 1; ; n++ {
		renamed = name + "-" + tag + extension
		if n > 1 {
			renamed = fmt.Sprintf("%s-%s-%d%s", name, tag, n, extension)
		}
		if _, err := os.Lstat(renamed); errors.Is(err, fs.ErrNotExist) {
			return renamed, os.Rename(file, renamed)
		} else if err != nil {
			return "", err
		}
	}
}

// parseOverride reads the text of an override file. If that is impossible, problems
// says why; otherwise it says what is ignored.
func parseOverride(file string, src []byte) (o override, problems []*yamldoc.Problem, ok bool) {
	if o, ok := parseFast(src); ok {
		return o, nil, true
	}
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return override{}, notUsed(yamldoc.AsProblems(err)), false
	}
	m := doc.Root().Map()
	m.Require("version", "list")
	m.Text("version", &o.Version)
	if list := m.Get("list"); list != nil && list.Kind() != yamldoc.Null {
		o.List = decodeList(list)
	}
	m.Done()
	if doc.Err() != nil {
		return override{}, notUsed(doc.Errors()), false
	}
	return o, doc.Warnings(), true
}

// parseFast reads what [encodeOverride] writes. For any other text ok is false.
func parseFast(src []byte) (o override, ok bool) {
	if !bytes.HasPrefix(src, []byte(`{"version":`)) {
		return override{}, false
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if d.Decode(&o) != nil || d.More() {
		return override{}, false
	}
	for _, p := range o.List {
		for _, e := range p.Models {
			if !sane(e) {
				return override{}, false
			}
		}
	}
	return o, true
}

// notUsed adds to the problems of a file what follows from them.
func notUsed(problems []*yamldoc.Problem) []*yamldoc.Problem {
	for _, p := range problems {
		if p.Hint == "" {
			p.Hint = updateHint
		}
	}
	if len(problems) > 0 {
		problems[0].Msg += "; the built-in list of models is used"
	}
	return problems
}
