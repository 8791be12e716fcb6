// Package assets holds the files that are part of the program.
//
// A bundled agent is an agent whose directory is embedded here. Package bundle copies
// it to where the user's own agents are, so that it can be read and changed. Bundled
// roles and macros stay in the program; one of the user's own with the same name takes the place
// of one.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed all:agents
//go:embed functions macros mcp roles utils/*.sh shell page
var files embed.FS

// Agents holds the bundled agents: each directory at its root is one, and the name of
// the directory is the agent's. The directory .shared has what their scripts have in common. It is read-only, and paths in it are as package fs
// wants them.
var Agents = below("agents")

// Roles holds the bundled roles: each Markdown file at its root is one.
var Roles = below("roles")

// Macros holds the bundled macros: each YAML file at its root is one.
var Macros = below("macros")

// Functions holds example tools in the languages that tools can be written in. They are
// meant to be copied to the user's directory of tools, as files that can be executed.
var Functions = below("functions")

// MCP holds mcp.json, a file of MCP servers in common use.
var MCP = below("mcp")

// Utils holds what bash tools source: prompt-utils.sh.
var Utils = below("utils")

// Shell holds the scripts that bind a key of a shell to this program, each under the name
// of its shell.
var Shell = below("shell")

// Page holds the page of the server: index.html, its style sheet and its modules. The modules and licenses of others are in vendor.
var Page = below("page")

// below returns the directory dir of the embedded files.
func below(dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // dir is not a valid path, which the first start shows
	}
	return sub
}
