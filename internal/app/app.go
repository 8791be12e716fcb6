// Package app is the composition root: it builds everything a face needs from the
// environment, the configuration and the command's wishes. Nothing is built before
// it is needed, so that small commands start fast.
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loki/assets"
	"loki/internal/agent"
	"loki/internal/agent/bundle"
	"loki/internal/agent/cases/cassette"
	"loki/internal/agent/memory"
	"loki/internal/agent/role"
	"loki/internal/agent/role/macro"
	"loki/internal/agent/validate/tools"
	"loki/internal/agent/workspace/trust"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/conversation/knowledge"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
	"loki/internal/llm/catalog"
	"loki/internal/llm/catalog/models"
	"loki/internal/llm/engine"
	"loki/internal/llm/event/logging"
	"loki/internal/llm/event/redact"
	"loki/internal/llm/provider/local"
	"loki/internal/service/postgres"
	"loki/internal/setup/config"
	"loki/internal/setup/vault"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
	"loki/internal/tool/builtin/ignore"
	"loki/internal/tool/mcp"
	"loki/internal/tool/permission"
)

// Version is the version of the program. The linker sets that of a release.
var Version = "0.1.0"

// logs is where an app logs.
type logs struct {
	log     atomic.Pointer[slog.Logger]  // set by Observe; nil before
	logFile atomic.Pointer[logging.File] // likewise
}

// App holds what one start of the program works with. It may be used from several
// goroutines, except that going on with a recorded run may change the working directory of the
// process, and with it Env, Paths and Agents: nothing else may be under way then.
type App struct {
	Env     config.Env
	Paths   config.Paths
	Config  *config.Config
	Catalog *catalog.Catalog
	Agents  agent.Library
	Trust   *trust.Service // in agents
	Tools   *tools.Service // of agents

	engine         *engine.Engine // live or, in a dry run, dry
	live, dry      *engine.Engine // over the configured models; dry ones answer with what would be sent
	dryRun         bool
	noIgnore       bool               // see [Options]
	model          string             // the model that the command names, if any
	standIn        string             // id of the model that answers in place of all, see [TestModel]; empty for none
	recorder       *cassette.Recorder // nil unless a cassette is recorded
	player         *cassette.Player   // nil unless one is played
	outdatedModels string             // version of a list of models that is for another program, empty for none

	mu      sync.Mutex
	clients map[string]connection // by client name, made on first use; guarded by mu

	databaseMu sync.Mutex   // taken while mu is held, never the other way round
	database   *postgres.DB // made on first use, nil for files; guarded by databaseMu

	sessions session.Store       // made on first use; guarded by mu
	memory   *permission.Memory  // likewise
	natives  tool.Set            // likewise, see builtinTools; for nativesDir, empty before
	servers  *servers            // likewise
	retired  mcp.Metrics         // of connections to servers before mcp.json was read again; guarded by mu
	acquired func(time.Duration) // see OnAcquire; guarded by mu
	warnings []string            // see Warnings; guarded by mu

	nativesDir string                      // guarded by mu
	sandboxes  map[string]*sandbox.Sandbox // see Sandbox; guarded by mu

	secretMu sync.Mutex   // taken while mu is held, never the other way round
	vault    *vault.Vault // made on first use; guarded by secretMu
	used     redact.Secrets

	logs

	host *host // nil but in a server; set by Host
	rescheduling

	parentMu sync.Mutex
	parent   *environ.Parent // started on first use; guarded by parentMu

	asking // what calls of models share

	agentDirs sync.Map // directories of agents that were found at a path, by the scope of their sessions
	looking   bool     // see Look
	staged    string   // the directory of agents that a look needs; "" for none; guarded by mu

	loaded    agent.Cache // of the agents that others start
	fileLocks fsys.Locks  // keep concurrent edits of one file apart
	bases     knowledge.Pool
	workspaces
}

// workspaces is what an App has of the directories in which it works.
type workspaces struct {
	facts *memory.Store  // see App.Memory; guarded by mu
	tree  *worktree.Tree // see App.Entered
	guest Guest          // see App.Receive
}

// Options configure New.
type Options struct {
	Environ []string // of the process, as from os.Environ
	DryRun  bool     // answer with what would be sent instead of sending it
	// NoIgnore says that the user attaches what ignore files hide, too.
	NoIgnore bool
	Model    string // the model that the command names; empty for none
	// Unconfigured leaves out config.yaml, which may be broken.
	Unconfigured bool
	// Servers are model servers of this machine that become clients, the first with the default model.
	Servers []local.Server
}

// New reads the configuration. The error is a [*fault.Error] with code Config.
func New(o Options) (*App, error) {
	own := slices.Concat(environ.Inherit(context.Background(), o.Environ), o.Environ) // what is set here counts
	env, envErr := config.NewEnv(runtime.GOOS, own).LoadEnvFile()
	paths, err := config.NewPaths(env)
	if err != nil {
		return nil, err
	}
	read := paths
	if o.Unconfigured {
		read.ConfigFile = os.DevNull
	}
	cfg, warnings, err := config.Load(read, env)
	if err != nil {
		return nil, err
	}
	cfg.File = paths.ConfigFile
	for _, s := range slices.Backward(o.Servers) {
		cfg.AddServer(string(s.Kind), s.BaseURL, s.Models)
	}
	known, problems, outdated := models.Load(paths.ModelsOverrideFile, Version)
	warnings = append(warnings, problems...)
	a := &App{
		Env: env, Paths: paths, Config: cfg, Catalog: cfg.Catalog(known...).On(time.Now()),
		dryRun: o.DryRun || cfg.DryRun, noIgnore: o.NoIgnore, model: o.Model, standIn: env.Get(TestModel), outdatedModels: outdated, clients: make(map[string]connection),
	}
	if a.governor.ShareIn(filepath.Join(paths.StateDir, "limits")); *cmp.Or(cfg.Store, new("")) != "" {
		a.governor.ShareThrough(a.limitRows)
	}
	if a.live, err = engine.New(engine.Options{Models: a}); err != nil {
		return nil, err
	}
	if a.dry, err = engine.New(engine.Options{Models: dryModels{a}, ShowRequests: true}); err != nil {
		return nil, err
	}
	if a.engine = a.live; a.dryRun {
		a.engine = a.dry
	}
	cfg.UseSecrets(a.lookupSecret)
	for _, c := range cfg.Clients {
		for _, key := range c.Credentials(env) {
			a.used.Add(key.Name, key.Value)
		}
	}
	for name, address := range map[string]*string{"STORE_": cfg.Store, "RAG_STORE_": cfg.RAGStore} {
		for _, p := range redact.Address(*cmp.Or(address, new(""))) {
			a.used.Add(name+strings.ToUpper(p.Name), p.Value)
		}
	}
	if envErr != nil {
		a.warnings = append(a.warnings, envErr.Error())
	}
	for _, w := range warnings {
		a.warnings = append(a.warnings, w.Text())
	}
	a.Agents = agent.Library{
		Paths: paths, Bundled: bundle.Names(assets.Agents),
		Install:       func(name string) error { return bundle.Ensure(assets.Agents, name, paths.AgentsDir) },
		InstallShared: func() error { return bundle.EnsureShared(assets.Agents, paths.AgentsDir) },
		Files:         assets.Agents,
		Getenv:        env.Get,
		Note:          func(text string) { a.noticeOnce(text, text, a.later) },
	}
	a.Trust = a.newTrust()
	a.Tools = a.newTools()
	return a, nil
}

// Look keeps the program from writing into the directories of the user, for commands that only show something. Agents of the
// program that are not installed are read from a temporary directory. It is called before all else.
func (a *App) Look() {
	a.looking = true
	a.Agents.Stage = func(name string) (dir string, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.staged == "" {
			if a.staged, err = os.MkdirTemp("", "loki-look-"); err != nil {
				return "", err
			}
		}
		return filepath.Join(a.staged, name), bundle.Ensure(assets.Agents, name, a.staged)
	}
}

// DisplayPath returns a path as a user knows it: an agent that was staged for a look has that of its installation.
func (a *App) DisplayPath(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if rest, ok := strings.CutPrefix(path, a.staged+string(filepath.Separator)); ok && a.staged != "" {
		return filepath.Join(a.Paths.AgentsDir, rest)
	}
	return path
}

// requestContext returns the context of requests to the model called id, or the configured
// one if id is empty.
func (a *App) requestContext(id string, noStream bool) engine.RequestContext {
	return engine.RequestContext{
		Model:    cmp.Or(id, a.Config.Model),
		Sampling: a.Config.Sampling,
		Hooks:    a.hooksOf(nil),
		NoStream: noStream || !a.Config.Stream,
	}
}

// DryRun reports whether models answer with what would be sent to them.
func (a *App) DryRun() bool { return a.dryRun }

// Shell returns the user's shell.
func (a *App) Shell() process.Shell { return process.FindShell(runtime.GOOS, a.Env.Get, nil) }

// Loader returns what loads the attachments of prompts.
func (a *App) Loader() *input.Loader { return a.loader(a.noIgnore) }

// OpenLoader is Loader for what ignore files hide, too.
func (a *App) OpenLoader() *input.Loader { return a.loader(true) }

func (a *App) loader(open bool) *input.Loader {
	loaders := make(map[string]string)
	for _, l := range a.Config.DocumentLoaders {
		loaders[l.Name] = l.Value
	}
	return &input.Loader{
		Denied: a.deniedFiles(open),
		Child:  a.Child(), Programs: a.programChild(), Own: a.ownDir, Shell: a.Shell(), Loaders: loaders, Sandbox: a.Sandbox, UserAgent: "loki/" + Version,
		Expand: func(name, command string) (string, error) { return a.Config.Expand("document_loaders."+name, command) },
	}
}

// deniedFiles returns what reports that a rule of the configuration or, if it is not open, an ignore file keeps a file from models, nil
// without such a rule.
func (a *App) deniedFiles(open bool) func(path string) error {
	ignored := a.IgnoreFiles()
	if open {
		ignored = ignore.Files{}
	}
	root, err := os.Getwd()
	if err != nil {
		return func(string) error { return fault.Wrap(fault.Failure, err, "the working directory") }
	}
	home, _ := os.UserHomeDir() // without one, ~ means nothing
	judge, err := permission.New(permission.Options{Rules: a.Config.Permission, Root: root, Home: home, Ignored: ignored})
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

// Roles returns the roles of the user and of the program.
func (a *App) Roles() role.Library {
	return role.Library{
		Dir: a.Paths.RolesDir, Bundled: assets.Roles,
		Variables: role.ThisMachine(a.Shell().Name, a.Env.Get).Lookup,
	}
}

// Macros returns the macros: the user's, and those of the program.
func (a *App) Macros() macro.Library {
	return macro.Library{Dir: a.Paths.MacrosDir, Bundled: assets.Macros}
}
