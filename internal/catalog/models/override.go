package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"loki/internal/catalog"
	"loki/internal/yamldoc"
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
// empty name is no file. The list is usable in any case; the problems, which are
// warnings, say why the file is not used, or what of it is ignored.
//
// Without a file Load costs nothing. A file that [Sync] has written takes about two
// milliseconds; one in another form of YAML takes tens of them.
func Load(file, version string) ([]catalog.Provider, []*yamldoc.Problem) {
	if file == "" {
		return Embedded(), nil
	}
	src, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Embedded(), nil
	case err != nil:
		return Embedded(), []*yamldoc.Problem{{Msg: fmt.Sprintf("the list of models is not read: %v", err), Hint: updateHint}}
	}
	o, problems, ok := parseOverride(file, src)
	switch {
	case !ok:
		return Embedded(), problems
	case o.Version != version:
		return Embedded(), []*yamldoc.Problem{{
			File: file,
			Msg:  fmt.Sprintf("the list of models is for version %s and not used, for this is version %s", o.Version, version),
			Hint: updateHint,
		}}
	}
	return provided(o.List), problems
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
			if !e.sane() {
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
