package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loki/assets"
	"loki/internal/agent/bundle"
	"loki/internal/base/fault"
)

// Category is a part of what comes with the program, which can be written over the user's copies.
type Category string

// The categories.
const (
	Agents    Category = "agents"
	Macros    Category = "macros"
	Functions Category = "functions"
	MCPConfig Category = "mcp_config"
)

// Categories returns the names of all categories.
func Categories() []string {
	return []string{string(Agents), string(Macros), string(Functions), string(MCPConfig)}
}

// noServers is a file of MCP servers without any.
const noServers = "{\n  \"mcpServers\": {}\n}\n"

// InstallDir returns where the files of a category are.
func (a *App) InstallDir(of Category) string {
	p := a.Paths
	switch of {
	case Agents:
		return p.AgentsDir
	case Macros:
		return p.MacrosDir
	case Functions:
		return p.FunctionsDir
	}
	return p.MCPFile()
}

// InstallLoss says what the user loses when a category is installed.
func (a *App) InstallLoss(of Category) string {
	if of == MCPConfig {
		return fmt.Sprintf("The servers in %s will be lost.", a.InstallDir(of))
	}
	return fmt.Sprintf("In %s, the %s that come with the program lose your changes.", a.InstallDir(of), of)
}

// Install writes what is part of the program over the user's copies of it, and returns the
// number of files.
func (a *App) Install(of Category) (files int, err error) {
	p := a.Paths
	var written []string
	switch of {
	case Agents:
		written, err = bundle.Restore(assets.Agents, p.AgentsDir)
	case Macros:
		written, err = bundle.Restore(assets.Macros, p.MacrosDir)
	case Functions:
		if written, err = bundle.Restore(assets.Utils, p.ToolsUtilsDir()); err == nil {
			var examples []string
			examples, err = bundle.Restore(assets.Functions, filepath.Join(p.FunctionsDir, "examples"))
			written = append(written, examples...)
		}
		if _, statErr := os.Lstat(p.MCPFile()); err == nil && errors.Is(statErr, fs.ErrNotExist) {
			written, err = append(written, p.MCPFile()), bundle.Replace(p.MCPFile(), []byte(noServers))
		}
	case MCPConfig:
		var servers []byte
		if servers, err = fs.ReadFile(assets.MCP, "mcp.json"); err == nil {
			written, err = append(written, p.MCPFile()), bundle.Replace(p.MCPFile(), servers)
		}
	}
	if err != nil {
		return 0, fault.Wrap(fault.Config, err, "installing %s", of)
	}
	return len(written), nil
}
