package script

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
)

// Options say how scripts are read and run.
type Options struct {
	// Cache is the directory where declarations are cached, created when needed; empty
	// means no cache.
	Cache string

	// Root is what scripts get as LLM_ROOT_DIR: the directory of functions, for a tool that
	// an agent lists the agent's own directory, and for an agent's script the directory of
	// the configuration. The file .env in it sets variables that the environment does not
	// have.
	Root string
	// Agent is set for an agent's script: its functions are the tools.
	Agent *Agent
	// Variables, if set, returns the variables of the active agent by name at each call,
	// which fails with its error.
	Variables func() (map[string]string, error)
	// Prepare is called before a script runs, or is built, whose error is then a warning; nil does nothing.
	Prepare func() error
	// PromptUtils is the file with the helpers that bash scripts may source.
	PromptUtils string
	// Executable is what scripts get as LOKI_EXECUTABLE, the path of the program that runs
	// them; empty means that they get none.
	Executable string
	// Bin is the directory of runners. If it exists it comes first in PATH.
	Bin string

	// Environ is the user's environment. Scripts get the variables that Policy keeps and
	// those they declare, see [DeclaredVariables], and then the ones added by Options. A nil Policy
	// keeps all.
	Environ []string
	Policy  *environ.Policy
	// Declared are names of variables that scripts get besides the ones that they declare.
	Declared []string
	// Parent returns an entry for the environment of each call, or "" for no entry; may
	// be nil.
	Parent func() string
	// Sandbox returns what confines scripts; nil confines none.
	Sandbox func() (*sandbox.Sandbox, error)
	// Bounds returns, at each call, what the script in a file may do with what it declares; nil means the zero Bounds.
	Bounds func(file string) sandbox.Bounds
	// Withhold keeps from scripts the variables that they declare themselves, and those of files .env.
	Withhold bool
	// Dir is the working directory; empty means this process's.
	Dir string
	// Temp is where a directory is created for each call; empty means the
	// system's.
	Temp string

	// Output, if set, gets each line that a script prints on standard output while it runs.
	// Calls for one call of a tool come in order; those of several may overlap.
	Output func(ctx context.Context, tool, line string)
	// Terminal is whether there is a user at a terminal, to whom interactive scripts may
	// talk. Stdin is their standard input then, if it is set; others have none.
	Terminal bool
	Stdin    *os.File
	// Echo, if set, gets what interactive scripts print, as it comes, instead of Output.
	Echo io.Writer

	Timeout   time.Duration // for scripts that do not say; 0 means that of the tool.Box
	MaxOutput int           // bytes for the model; 0 means that of the tool.Box

	// Apart returns the environment of a script that is not confined, without what leads it to code in the working directory. Nil
	// means that this is the user's: then also the .venv there counts.
	Apart func(environ []string) []string

	// Look finds a program; nil means exec.LookPath.
	Look func(file string) (string, error)
}

// Agent is the agent that a script belongs to.
type Agent struct {
	Name     string
	Dir      string // where its script is
	CacheDir string // for the script to use; Loki does not create it
}

func (o Options) look(file string) (string, error) {
	if o.Look != nil {
		return o.Look(file)
	}
	return exec.LookPath(file)
}

// language is the language of a script.
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
