package script

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/environ"
	"loki/internal/process"
)

// Options say how scripts are read and run.
type Options struct {
	// Cache is the directory where declarations are kept, made when it is needed; empty for
	// none.
	Cache string

	// Root is what scripts get as LLM_ROOT_DIR: the directory of functions, for a tool that
	// an agent lists the agent's own directory, and for an agent's script the directory of
	// the configuration. The file .env in it fills in what the environment does not have.
	Root string
	// Agent is set for an agent's script: its functions are the tools.
	Agent *Agent
	// Variables, if set, returns the variables of the active agent by name at each call,
	// which fails with its error.
	Variables func() (map[string]string, error)
	// PromptUtils is the file with the helpers that bash scripts may source.
	PromptUtils string
	// Bin is the directory of runners. If it exists it comes first in PATH.
	Bin string

	// Environ is the user's environment. Scripts get what Policy leaves of it and what they
	// declare, see [declared], and then what is added here. A nil Policy leaves all of it.
	Environ []string
	Policy  *environ.Policy
	// Parent returns an entry for the environment of each call, or nothing; nil is none.
	Parent func() string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Temp is where a directory is made for each call; empty means the system's.
	Temp string

	// Output, if set, gets each line that a script prints on standard output while it runs.
	// Calls for one call of a tool come in order; those of several may overlap.
	Output func(ctx context.Context, tool, line string)
	// Terminal is whether there is a user at a terminal, to whom interactive scripts may
	// talk. Stdin is their standard input then, if it is set; others have none.
	Terminal bool
	Stdin    *os.File

	Timeout   time.Duration // for scripts that do not say; 0 means that of the tool.Box
	MaxOutput int           // bytes for the model; 0 means that of the tool.Box

	// Look finds a program as exec.LookPath does, which is what nil stands for.
	Look func(file string) (string, error)
}

// Agent is the agent that a script belongs to.
type Agent struct {
	Name     string
	Dir      string // where its script is
	CacheDir string // for the script to use; nobody makes it
}

func (o Options) look(file string) (string, error) {
	if o.Look != nil {
		return o.Look(file)
	}
	return exec.LookPath(file)
}

// language is what a script is written in.
type language string

const (
	bash       language = ".sh"
	python     language = ".py"
	typescript language = ".ts"
)

// languageOf returns the language of a file, and its name without the ending.
func languageOf(file string) (stem string, lang language, ok bool) {
	ext := process.Ext(file)
	lang = language(strings.ToLower(ext))
	stem = strings.TrimSuffix(filepath.Base(file), ext)
	return stem, lang, lang == bash || lang == python || lang == typescript
}
