package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/catalog"
	"loki/internal/llm/catalog/models"
	"loki/internal/llm/provider/local"
	"loki/internal/setup"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// setUp makes a configuration with the user, if there is none, the command cannot do
// without, and there is a terminal to ask at. A user who declines continues without one.
func (c *command) setUp(ctx context.Context) error {
	if used, err := c.useServers(ctx); used || err != nil {
		return err
	}
	if c.opts.output != outputText || c.opts.dryRun || !c.OutTerminal || !c.needsSetup() || !c.opts.info && !c.needsModel() {
		return nil
	}
	_, err := setup.Run(ctx, c.setupOptions(ctx))
	switch {
	case errors.Is(err, setup.ErrDeclined):
		fmt.Fprintln(c.Err, "Set up a model later with: loki --setup")
		return nil // the command says what is missing
	case err != nil:
		return err
	}
	c.app, err = app.New(app.Options{Environ: c.environ, DryRun: c.opts.dryRun, Model: c.opts.model})
	return err
}

// setupOptions returns what questions about the configuration need.
func (c *command) setupOptions(ctx context.Context) setup.Options {
	paths, env := c.app.Paths, c.app.Env
	known, _, _ := models.Load(paths.ModelsOverrideFile, app.Version) // app has warned
	return setup.Options{
		File: paths.ConfigFile, Asker: c.terminal(), Vault: c.app.Vault(), VaultFile: paths.VaultFile,
		// Without a session bus, a library might start one.
		Keychain: env.Get("LOKI_VAULT_KEYCHAIN") == "" && !c.app.Config.VaultKeychain &&
			(runtime.GOOS == "darwin" || runtime.GOOS == "windows" || env.Get("DBUS_SESSION_BUS_ADDRESS") != ""),
		Load: func() (*config.Config, error) {
			cfg, _, err := config.Load(paths, env)
			return cfg, err
		},
		Servers: c.localServers(ctx), Known: known, Today: time.Now(), Getenv: env.Get,
		Note: func(text string) { fmt.Fprintln(c.Err, text) },
	}
}

// setUpAgain asks what to set up, or makes the first configuration.
func (c *command) setUpAgain(ctx context.Context) error {
	if !c.InTerminal || !c.OutTerminal {
		return fault.New(fault.Usage, "--setup asks questions, and there is no terminal").
			WithHint("edit model, clients and keybindings in %s (loki --docs configuration); loki --secret add NAME stores a key", c.app.Paths.ConfigFile)
	}
	o := c.setupOptions(ctx)
	if c.app.Config.Exists {
		return setup.Change(ctx, o)
	}
	o.Wanted = true
	_, err := setup.Run(ctx, o)
	return err
}

// useServers makes clients of the model servers that answer on this machine, if the command needs a model or lists them, and
// nothing else says where there is one. A user who begins to talk reads which it is.
func (c *command) useServers(ctx context.Context) (used bool, err error) {
	platform, clients := local.Kind(c.app.Config.Model), 1 // of LOKI_PLATFORM without a model
	if c.opts.model != "" {
		platform, clients = local.Kind(c.opts.model), 0
	}
	named := len(c.app.Config.Clients) == clients && c.app.Config.Client(string(platform)) != nil && c.app.Config.Client(string(platform)).Local()
	switch {
	case !named && !c.needsSetup(), !c.opts.listModels && (!named && !c.needsModel() || c.opts.action.needs != needModel):
		return false, nil
	}
	if base, _ := config.BaseWithoutKey(c.getenv); base == "OPENAI_BASE_URL" && !named && !c.opts.listModels {
		return false, nil // the user means another server
	}
	probes := local.DefaultProbes(c.getenv("OLLAMA_HOST"))
	if named {
		base, _ := c.app.Config.Client(string(platform)).Field(c.app.Env, "api_base") // an error comes with the request
		probes = []local.Probe{{Kind: platform, URL: strings.TrimSuffix(base, "/v1")}}
	}
	servers := slices.DeleteFunc(local.Find(ctx, nil, probes), func(s local.Server) bool { return len(s.Models) == 0 })
	if len(servers) == 0 {
		return false, nil
	}
	made, err := app.New(app.Options{Environ: c.environ, DryRun: c.opts.dryRun, Model: c.opts.model, Servers: servers})
	if err != nil {
		return false, err
	}
	if c.opts.action.looks || c.opts.dryRun {
		made.Look()
	}
	c.app = made
	if !named && c.talks() {
		fmt.Fprintf(c.Err, "The model is %s, of %s on this machine.\n.models shows the others, loki --setup adds providers.\n", servers[0].Models[0], servers[0].Kind)
	}
	return true, nil
}

// needsSetup reports whether no source of models is configured yet.
func (c *command) needsSetup() bool {
	cfg := c.app.Config
	if len(cfg.Clients) > 0 || c.getenv("LOKI_PROVIDER") != "" || c.getenv("LOKI_PLATFORM") != "" {
		return false
	}
	if !cfg.Exists {
		return true
	}
	text, err := os.ReadFile(cfg.File)
	return err == nil && setup.Extends(text) && !c.opts.info
}

// needsModel reports whether the command can only work with the configured model. It is
// false if an error prevents the answer: the work itself will report that error.
func (c *command) needsModel() bool {
	o := &c.opts
	if o.action.needs != needModel || o.model != "" || c.app.Config.Model != "" {
		return false
	}
	if o.agent == "" {
		if o.role == "" || o.prompt != "" {
			return true
		}
		r, _, err := c.app.Roles().Load(o.role)
		return err == nil && r.Settings.Model == ""
	}
	of, _, err := c.loadAgent(o.agent)
	if err != nil {
		return false
	}
	return of.InForce.Model == "" && (of.Graph == nil || usesModel(of.Graph))
}

// usesModel reports whether a node of the graph needs a model that neither it nor default_model names.
func usesModel(g *graph.Graph) bool {
	if g.DefaultModel != "" {
		return false
	}
	for n := range g.All() {
		if n.LLM != nil && n.Model() == "" {
			return true
		}
	}
	return false
}

// localServers returns the model servers that answer on this machine.
func (c *command) localServers(ctx context.Context) []local.Server {
	return local.Find(ctx, nil, local.DefaultProbes(c.getenv("OLLAMA_HOST")))
}

// offerLocal adds to the error that nothing is configured the servers that could be.
func (c *command) offerLocal(ctx context.Context, err error) error {
	_, none := catalog.New(nil, nil).Default()
	hint := fault.HintOf(err)
	if c.app == nil || hint == "" || hint != fault.HintOf(none) {
		return err
	}
	hint = setup.Ways(hint, c.localServers(ctx))
	if base, key := config.BaseWithoutKey(c.getenv); base != "" {
		hint = base + " is set, but " + key + " is not: set it, to any text if that server needs no key\n" + hint
	}
	return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
}

// installable are the values of --install.
var installable = app.Categories()

// install writes what is part of the program over the user's copies of it.
func (c *command) install(ctx context.Context) error {
	category := app.Category(c.opts.value)
	target := c.app.InstallDir(category)
	if c.OutTerminal {
		key, err := c.terminal().Key(ctx, c.app.InstallLoss(category)+" Continue? y/N: ", "ny")
		if err != nil {
			return err
		}
		if key != 'y' {
			_, err := fmt.Fprintln(c.Out, "Nothing was changed.")
			return err
		}
	}
	files, err := c.app.Install(category)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "Installed %s in %s: %s\n", category, target, text.Count(files, "file"))
	return err
}
