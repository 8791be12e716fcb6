// Package app is the composition root: it builds everything that a front end needs from the
// environment, the configuration and the options. Nothing is built before
// it is needed, so that small commands start fast.
package app

import (
	"cmp"
	"context"
	"errors"
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
	"loki/internal/agent/memory"
	"loki/internal/agent/role"
	"loki/internal/agent/role/macro"
	"loki/internal/agent/validate/tools"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/trust"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/file/vault"
	"loki/internal/base/process/environ"
	"loki/internal/conversation/knowledge"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/launch/background"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
	"loki/internal/llm/catalog"
	"loki/internal/llm/catalog/models"
	"loki/internal/llm/engine"
	"loki/internal/llm/event/observe"
	"loki/internal/llm/event/redact"
	"loki/internal/llm/provider/local"
	"loki/internal/service/postgres"
	"loki/internal/setup/clients"
	"loki/internal/setup/config"
	"loki/internal/setup/config/notice"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
	"loki/internal/tool/mcp/servers"
	"loki/internal/tool/permission"
)

// Version is the version of the program. The linker sets that of a release.
var Version = "0.1.0"

// App holds what one start of the program works with. It may be used from several
// goroutines, except that going on with a recorded run may change the working directory of the
// process, and with it Env, Paths and Agents: nothing else may be under way then.
type App struct {
	Env        config.Env
	Paths      config.Paths
	Config     *config.Config
	Catalog    *catalog.Catalog
	Agents     agent.Library
	Trust      *trust.Service // in agents
	Tools      *tools.Service // of agents
	Models     *clients.Service
	MCP        *servers.Service
	Background *background.Service
	Notices    *notice.Board // what the user should know

	live, dry      *engine.Engine // over the configured models; dry ones answer with what would be sent
	dryRun         atomic.Bool    // see DryRun
	noIgnore       bool           // see [Options]
	model          string         // the model that the command names, if any
	outdatedModels string         // version of a list of models that is for another program, empty for none

	mu sync.Mutex

	databaseMu sync.Mutex   // taken while mu is held, never the other way round
	database   *postgres.DB // made on first use, nil for files; guarded by databaseMu

	sessions session.Store      // made on first use; guarded by mu
	memory   *permission.Memory // likewise
	natives  tool.Set           // likewise, see builtinTools; for nativesDir, empty before

	nativesDir string // guarded by mu

	secretMu sync.Mutex   // taken while mu is held, never the other way round
	vault    *vault.Vault // made on first use; guarded by secretMu
	used     redact.Secrets

	*observe.Observer
	*ground.Ground
	*launch.Service

	host *host // nil but in a server; set by Host

	agentDirs sync.Map // directories of agents that were found at a path, by the scope of their sessions
	staged    string   // the directory of agents that a look needs; "" for none; guarded by mu

	fileLocks fsys.Locks // keep concurrent edits of one file apart
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
		noIgnore: o.NoIgnore, model: o.Model, outdatedModels: outdated,
	}
	a.SetDryRun(o.DryRun || cfg.DryRun)
	a.Observer = &observe.Observer{Getenv: env.Get, Version: Version}
	a.Notices = &notice.Board{Paths: &a.Paths}
	a.Models = clients.New(clients.Options{
		Config: cfg, Env: env, Paths: &a.Paths, Catalog: a.Catalog, Version: Version, Named: o.Model, StandIn: env.Get(clients.TestModel),
		Notices: a.Notices, Log: a.Log, Seen: a.keepTokens,
	})
	if a.Models.Governor.ShareIn(filepath.Join(paths.StateDir, "limits")); *cmp.Or(cfg.Store, new("")) != "" {
		a.Models.Governor.ShareThrough(a.limitRows)
	}
	a.Ground = ground.New(ground.Options{
		Config: cfg, Env: &a.Env, Paths: &a.Paths, Agents: &a.Agents, Secrets: &a.used, Secret: a.lookupSecret, Once: a.Notices.Once,
		Serving: func() bool { return a.host != nil }, DryRun: a.DryRun,
	})
	a.MCP = a.newServers()
	if a.live, err = engine.New(engine.Options{Models: a.Models}); err != nil {
		return nil, err
	}
	if a.dry, err = engine.New(engine.Options{Models: a.Models.Dry(), ShowRequests: true}); err != nil {
		return nil, err
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
		a.Notices.Later(envErr.Error())
	}
	for _, w := range warnings {
		a.Notices.Later(w.Text())
	}
	a.Agents = agent.Library{
		Paths: paths, Bundled: bundle.Names(assets.Agents),
		Install:       func(name string) error { return bundle.Ensure(assets.Agents, name, paths.AgentsDir) },
		InstallShared: func() error { return bundle.EnsureShared(assets.Agents, paths.AgentsDir) },
		Files:         assets.Agents,
		Getenv:        env.Get,
		Note:          func(text string) { a.Notices.Once(text, text, a.Notices.Later) },
	}
	a.Trust = a.newTrust()
	a.Ground.Trust = a.Trust
	a.Tools = a.newTools()
	a.Service = a.newLaunch()
	a.Background = a.newBackground()
	return a, nil
}

// Look keeps the program from writing into the directories of the user, for commands that only show something. Agents of the
// program that are not installed are read from a temporary directory. It is called before all else.
func (a *App) Look() {
	a.Looking, a.Notices.Looking = true, true
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

// DryRun reports whether models answer with what would be sent to them.
func (a *App) DryRun() bool { return a.dryRun.Load() }

// SetDryRun changes what DryRun reports, for a face with one conversation, whose user may change it.
func (a *App) SetDryRun(on bool) { a.dryRun.Store(on) }

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
		Denied: a.DeniedFiles(open),
		Child:  a.Child(), Programs: a.ProgramChild(), Own: a.OwnDir, Shell: a.Shell(), Loaders: loaders, Sandbox: a.Sandbox, UserAgent: "loki/" + Version,
		Expand: func(name, command string) (string, error) { return a.Config.Expand("document_loaders."+name, command) },
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

// Close ends what the app has started. It waits until that is done.
func (a *App) Close() error {
	a.mu.Lock()
	staged := a.staged
	a.staged = ""
	a.mu.Unlock()
	err := errors.Join(a.MCP.Close(), a.Ground.Close(), a.bases.Close())
	if staged != "" {
		err = errors.Join(err, os.RemoveAll(staged))
	}
	a.Models.Governor.Close()
	a.closeDatabase()
	return err
}
