// Package assets holds the files that are part of the program.
//
// A bundled agent is an agent whose directory is embedded here. Package bundle copies
// it to where the user's own agents are, so that it can be read and changed.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed agents
var files embed.FS

// Agents holds the bundled agents: each directory at its root is one, and the name of
// the directory is the agent's. It is read-only, and paths in it are as package fs
// wants them.
var Agents = below("agents")

// below returns the directory dir of the embedded files.
func below(dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // dir is not a valid path, which the first start shows
	}
	return sub
}
