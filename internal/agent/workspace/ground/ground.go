// Package ground holds what agents and their programs work with in one start of this program: a directory with its instructions,
// skills and ignore files, the sandbox, the environment, and the hooks of the user.
package ground

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool/builtin/ignore"
	"loki/internal/tool/permission"
)

// Options configure a Ground.
type Options struct {
	Config  *config.Config
	Env     *config.Env // which changes with the working directory, and so do Paths
	Paths   *config.Paths
	Agents  *agent.Library
	Trust   *trust.Service
	Secrets *redact.Secrets                                // that have been used
	Secret  func(name string) (string, error)              // returns one of the vault
	Once    func(key, text string, show func(text string)) // shows a text once on this machine
	Serving func() bool                                    // reports whether this is a server, which has no workspace
	DryRun  func() bool                                    // reports whether models answer with what would be sent to them
}

// Ground holds the directory, the sandbox, the environment and the hooks of one start. Its methods may be called from several goroutines.
type Ground struct {
	Options
	Looking  bool // nothing is written
	Replayed bool // a cassette is played: hooks do not run

	mu        sync.Mutex
	sandboxes map[string]*sandbox.Sandbox // see Sandbox; guarded by mu

	parentMu sync.Mutex
	parent   *environ.Parent // started on first use; guarded by parentMu
}

// New returns a Ground.
func New(o Options) *Ground { return &Ground{Options: o} }

// Shell returns the user's shell.
func (g *Ground) Shell() process.Shell { return process.FindShell(runtime.GOOS, g.Env.Get, nil) }

// DeniedFiles returns what reports that a rule of the configuration or, if it is not open, an ignore file keeps a file from models, nil
// without such a rule.
func (g *Ground) DeniedFiles(open bool) func(path string) error {
	ignored := g.IgnoreFiles()
	if open {
		ignored = ignore.Files{}
	}
	root, err := os.Getwd()
	if err != nil {
		return func(string) error { return fault.Wrap(fault.Failure, err, "the working directory") }
	}
	home, _ := os.UserHomeDir() // without one, ~ means nothing
	judge, err := permission.New(permission.Options{Rules: g.Config.Permission, Root: root, Home: home, Ignored: ignored})
	if err != nil {
		return func(string) error { return fault.Wrap(fault.Config, err, "permission") }
	}
	unreadable := judge.Unreadable()
	if unreadable == nil {
		return nil
	}
	return func(path string) error {
		err := unreadable(path)
		switch kept, ok := errors.AsType[*permission.KeptError](err); {
		case err == nil:
			return nil
		case ok && kept.Ignored:
			return fault.Wrap(fault.Usage, err, "").WithHint("--no-ignore sends it all the same; in a chat: .file --no-ignore FILE")
		case ok && kept.Asks:
			return fault.Wrap(fault.Usage, err, "").WithHint("attach the file by its own name, and consent: loki -f FILE ...")
		}
		return fault.Wrap(fault.Usage, err, "")
	}
}
