package remote

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
	"loki/internal/base/value"
)

// FuzzChoose lists files with any names: those that are chosen stay below their directories.
func FuzzChoose(f *testing.F) {
	f.Add("agents/a/graph.yaml\nroles/b.md", uint8(0))
	f.Add("agents/../../x", uint8(0))
	f.Add("agents/.git/config\nfunctions/tools/a.sh", uint8(1))
	f.Add("skills/a/SKILL.md\nskills/a/../../x", uint8(0))
	f.Add("functions/mcp.json\nfunctions/mcp.json/x", uint8(0))
	f.Add("roles/A\nroles/a", uint8(2))
	dirs := Dirs{Agents: "/base/agents", Roles: "/base/roles", Macros: "/base/macros", Tools: "/base/functions/tools", Skills: "/base/skills"}
	f.Fuzz(func(t *testing.T, list string, kind uint8) {
		var files []repository.File
		for path := range strings.SplitSeq(list, "\n") {
			if path != "" {
				files = append(files, repository.File{Path: path, Kind: repository.Kind(kind % 3)})
			}
		}
		chosen, _, err := choose(files, nil)
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, c := range chosen {
			if c.Path == serversPath {
				continue
			}
			target := dirs.target(c.Path)
			if rel, err := filepath.Rel(dirs.root(c.Path), target); err != nil || !filepath.IsLocal(rel) || rel == "." || c.Kind != repository.Regular {
				t.Errorf("%q is installed at %q", c.Path, target)
			}
			if seen[strings.ToLower(target)] {
				t.Errorf("%q is installed twice", target)
			}
			seen[strings.ToLower(target)] = true
		}
	})
}

// FuzzMerge merges any two files of servers: the result is read again, and merging is idempotent.
func FuzzMerge(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "y"}, "b": {"url": "z"}}}`)
	f.Add(`{"servers": {"a": {"command": "x"}}}`, `{"mcpServers": {"b": {"url": "z"}}}`)
	f.Add(``, `{"mcpServers": {"a": {"command": "x", "env": {"N": 1e400}}}}`)
	f.Add("\ufeff{\"mcpServers\": {}}", `{"mcpServers": {"": {"command": "x"}}}`)
	f.Add(`{"mcpServers": {"a": {"command": "x", "disabled": false}}, "x": [1.0, 18446744073709551615]}`, `{"mcpServers": {"a-remote": {"command": "x"}, "a": {"command": "x"}}}`)
	f.Fuzz(func(t *testing.T, mine, theirs string) {
		local, _, err := parseServers("mcp.json", []byte(mine))
		if err != nil {
			return
		}
		bundled, _, err := parseBundled([]byte(theirs))
		if err != nil {
			return
		}
		items := planServers(local, bundled, nil, false)
		var known []Entry
		for n := range items {
			if items[n].State == Conflict {
				items[n].State, items[n].As = Renamed, remoteName(local, items, items[n].Path)
			}
			if e, ok := items[n].entry(); ok {
				known = append(known, e)
			}
			describe(items[n].spec, true)
		}
		merged, _ := merge(local, items)
		again, _, err := parseServers("mcp.json", []byte(merged.text()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, merged.text())
		}
		for name, spec := range local.list.All() {
			if now, ok := again.list.Get(name); !ok || !value.Equal(now, spec) {
				t.Errorf("server %q was %s and is %s", name, spec, now)
			}
		}
		for _, item := range planServers(again, bundled, known, true) {
			if item.State != Identical {
				t.Errorf("%s is %s after the merge\n%s\n%s", item.here(), item.State, mine, theirs)
			}
		}
		if again.text() != merged.text() {
			t.Errorf("%s becomes %s", merged.text(), again.text())
		}
	})
}

// FuzzRecord reads any record: what is accepted names files of bundles only, and is written as it was read.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version": 1, "name": "a", "url": "https://h.test/a", "commit": "1", "files": [{"path": "agents/a/graph.yaml", "sha256": "1"}], "servers": [{"path": "s", "as": "t"}]}`))
	f.Add([]byte(`{"version": 1, "name": "a", "url": "x", "files": [{"path": "agents/../../etc/passwd"}]}`))
	f.Add([]byte(`{"version": 1, "name": "../a", "url": "x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord(data)
		if err != nil {
			return
		}
		dirs := Dirs{Agents: "/base/agents", Roles: "/base/roles", Macros: "/base/macros", Tools: "/base/functions/tools", Skills: "/base/skills"}
		for _, e := range r.Files {
			if !strings.HasPrefix(filepath.ToSlash(dirs.target(e.Path)), "/base/") {
				t.Errorf("%q", e.Path)
			}
		}
		i := Installer{Dirs: Dirs{Records: t.TempDir()}}
		if err := i.save(r); err != nil {
			t.Fatal(err)
		}
		again, err := i.load(r.Name)
		if err != nil || len(again.Files) != len(r.Files) || again.URL != r.URL {
			t.Errorf("%+v becomes %+v, %v", r, again, err)
		}
	})
}

// FuzzRef splits any source.
func FuzzRef(f *testing.F) {
	f.Add("https://h.test/a#v1")
	f.Add("#x")
	f.Add("a#b#--upload-pack=x")
	f.Fuzz(func(t *testing.T, source string) {
		address, ref, err := splitRef(source)
		if err == nil && ref != "" && (strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") || address+"#"+ref != source) {
			t.Errorf("%q: %q, %q", source, address, ref)
		}
		if name := nameOf(source); name == "" || strings.ContainsAny(name, "/\\\x00\n") {
			t.Errorf("%q is called %q", source, name)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := func(n int, size int64) (files []repository.File) {
		for i := range n {
			files = append(files, repository.File{Path: fmt.Sprintf("roles/%d.md", i), Size: size})
		}
		return files
	}
	for name, tt := range map[string]struct {
		files []repository.File
		ok    bool
	}{
		"one":             {many(1, maxFile), true},
		"too_large":       {many(1, maxFile+1), false},
		"all":             {many(4, maxFile), true},
		"all_too_large":   {many(5, maxFile), false},
		"many":            {many(maxFiles, 1), true},
		"too_many":        {many(maxFiles+1, 0), false},
		"servers":         {[]repository.File{{Path: serversPath, Size: maxServers}}, true},
		"servers_too_big": {[]repository.File{{Path: serversPath, Size: maxServers + 1}}, false},
		"elsewhere":       {[]repository.File{{Path: "functions/utils/x", Size: 1 << 40}}, true},
	} {
		if _, _, err := choose(tt.files, nil); (err == nil) != tt.ok || err != nil && fault.CodeOf(err) != fault.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
}
