package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/tool/mcp"
)

// servers is the content of mcp.json.
type servers struct {
	doc  *value.Object // the whole file
	key  string        // the member that has the list
	list *value.Object // by name, in the order of the file
}

// parseServers reads the text of an mcp.json, in which every member keeps its place.
func parseServers(path string, data []byte) (servers, *mcp.File, error) {
	parsed, err := mcp.Parse(path, data)
	if err != nil {
		return servers{}, nil, err
	}
	doc, err := value.ParseJSON([]byte(cmp.Or(string(bytes.TrimSpace(text.TrimMark(data))), "{}")))
	if err != nil {
		return servers{}, nil, fault.Wrap(fault.Config, err, "%s", path)
	}
	s := servers{doc: doc.AsObject(), key: parsed.Key, list: value.ObjectOf()}
	if list, ok := s.doc.Get(s.key); ok {
		s.list = list.AsObject()
	}
	return s, parsed, nil
}

// readServers reads the user's mcp.json. Without a file there are no servers.
func readServers(path string) (servers, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return servers{}, err
	}
	s, _, err := parseServers(path, data)
	return s, err
}

// text returns the file, the same for the same servers.
func (s servers) text() string {
	return s.doc.Merge(value.ObjectOf(value.Member{Name: s.key, Value: s.list.Value()})).Value().Lines() + "\n"
}

// write replaces the file at path. A new one can be read by its owner only, because it may contain keys.
func (s servers) write(path string) error {
	return atomicfile.Write(path, []byte(s.text()), atomicfile.Options{})
}

// digestOf returns the digest of a server, which does not depend on the order of its members; empty
// for none.
func (s servers) digestOf(name string) string {
	spec, ok := s.list.Get(name)
	if !ok {
		return ""
	}
	var plain any
	d := json.NewDecoder(strings.NewReader(spec.String()))
	d.UseNumber()
	err := d.Decode(&plain)
	sorted, failed := value.Marshal(plain)
	if err != nil || failed != nil {
		return ""
	}
	return sumOf(sorted)
}

// parseBundled reads the mcp.json of a bundle, whose servers have to be complete. Notes are about
// members that have no effect.
func parseBundled(data []byte) (s servers, notes []string, err error) {
	s, parsed, err := parseServers(serversPath, data)
	if err != nil {
		return s, nil, err
	}
	for _, server := range parsed.Servers {
		switch {
		case server.Err != nil:
			return s, nil, server.Err
		case text.Name(server.ID) != server.ID || len(server.ID) > text.MaxFileName:
			return s, nil, fault.New(fault.Config, "%s: a server cannot be called %s", serversPath, text.Name(text.CutRunes(server.ID, 80)))
		}
	}
	for _, w := range parsed.Warnings {
		notes = append(notes, w.String())
	}
	return s, notes, nil
}

// planServers returns what happens to the servers of a bundle and to others in the record.
func planServers(local, bundled servers, known []Entry, update bool) []item {
	var items []item
	for name, spec := range bundled.list.All() {
		t := item{Item: Item{Category: MCPConfig, Path: name}, base: find(known, name), theirs: bundled.digestOf(name), spec: spec}
		if t.base != nil {
			t.As = t.base.As
		}
		t.ours = local.digestOf(t.here())
		t.State = judge(t.base, t.ours, t.theirs, update)
		items = append(items, t)
	}
	for n := range known {
		e := &known[n]
		if _, ok := bundled.list.Get(e.Path); ok {
			continue
		}
		t := item{Item: Item{Category: MCPConfig, Path: e.Path, As: e.As}, base: e, ours: local.digestOf(e.at())}
		t.State = judge(e, t.ours, "", update)
		items = append(items, t)
	}
	return items
}

// here returns the name that the server has in the user's mcp.json.
func (t *item) here() string { return cmp.Or(t.As, t.Path) }

// merge returns the servers of the user after what was decided, and whether that is a change.
func merge(local servers, items []item) (servers, bool) {
	changed := false
	for _, t := range items {
		switch {
		case t.State.writes():
			local.list = local.list.Merge(value.ObjectOf(value.Member{Name: t.here(), Value: t.spec}))
		case t.State == Removed:
			local.list = local.list.Without(t.here())
		default:
			continue
		}
		changed = true
	}
	return local, changed
}

// remoteName returns the name under which a server of a bundle can stand beside the user's.
func remoteName(local servers, items []item, name string) string {
	return freeName(name+"-remote", func(name string) bool {
		_, there := local.list.Get(name)
		return there || slices.ContainsFunc(items, func(t item) bool { return t.Path == name || t.As == name })
	})
}
