package config

import (
	"cmp"
	"strings"
)

// AgentPaths says where the things of one agent live.
type AgentPaths struct {
	Dir          string // <AGENT>_DATA_DIR
	ConfigFile   string // <AGENT>_CONFIG_FILE
	GraphFile    string
	ToolsBinDir  string
	SessionsDir  string
	MessagesFile string // the journal of turns outside sessions; in the cache

	goos string
}

// Agent returns the paths of the agent whose directory is called name. The
// variables that override them begin with the name in capitals, its hyphens as
// underscores.
func (p Paths) Agent(name string) AgentPaths {
	prefix := AgentVariable(name)
	dir := cmp.Or(p.env.Get(prefix+"_DATA_DIR"), p.join(p.AgentsDir, name))
	return AgentPaths{
		Dir:          dir,
		ConfigFile:   cmp.Or(p.env.Get(prefix+"_CONFIG_FILE"), p.join(dir, "config.yaml")),
		GraphFile:    p.join(dir, "graph.yaml"),
		ToolsBinDir:  p.join(dir, "bin"),
		SessionsDir:  p.join(dir, "sessions"),
		MessagesFile: p.join(p.CacheDir, "agents", name, "messages.md"),
		goos:         p.env.goos,
	}
}

// AgentVariable returns what the environment variables of the agent called name
// begin with: "code-reviewer" and "Code Reviewer" have CODE_REVIEWER_MODEL and so on.
func AgentVariable(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(name))
}

// RAGFile returns the agent's own knowledge base.
func (a AgentPaths) RAGFile() string { return a.NodeRAGFile("rag") }

// NodeRAGFile returns the knowledge base of the graph node called node.
func (a AgentPaths) NodeRAGFile(node string) string { return join(a.goos, a.Dir, node+".db") }
