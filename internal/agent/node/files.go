package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"

	"loki/internal/base/fault"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
)

// Files returns digests of the files that an agent uses beside its definition: the scripts of its
// graph, which is nil for a plain agent, as far as they are there, and those of its tools. dir is that of the agent, and name returns
// what people call a file, which is the same wherever the agent is.
func Files(g *graph.Graph, dir string, tools tool.Set, name func(path string) string) (map[string]string, error) {
	files := make(map[string]string)
	add := func(path string, text []byte) {
		sum := sha256.Sum256(text)
		files[name(path)] = hex.EncodeToString(sum[:16])
	}
	if g == nil {
		g = new(graph.Graph)
	}
	for n := range g.All() {
		if n.Script == nil {
			continue
		}
		path := n.Script.Path(dir)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a run says it, before it begins or when it comes to it
		}
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "script %s", n.Script.Script)
		}
		add(path, text)
	}
	for _, t := range tools.All() {
		if own, ok := t.(tool.FromFile); ok {
			path, text, err := own.Source()
			if err != nil {
				return nil, err
			}
			add(path, text)
		}
	}
	return files, nil
}
