package config

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"loki/internal/fault"
	"loki/internal/permission"
	"loki/internal/yamldoc"
)

// Load reads the configuration file and puts the environment over it. If there is
// no file the configuration is what LOKI_PROVIDER or LOKI_PLATFORM makes of the
// defaults: "provider" or "provider:model" stands for one client and its model.
//
// The warnings are for the user: keys that mean nothing, client types that do not
// exist, variables that cannot be used. The error, of code Config, tells everything
// in the file that cannot be used, by line and column.
func Load(paths Paths, env Env) (*Config, []*yamldoc.Problem, error) {
	var warnings []*yamldoc.Problem
	cfg := defaults()
	cfg.File = paths.ConfigFile
	src, err := os.ReadFile(paths.ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		warnings = cfg.fromPlatform(env)
	case err != nil:
		return nil, nil, fault.Wrap(fault.Config, err, "cannot read the configuration")
	default:
		cfg.Exists = true
		if warnings, err = cfg.parse(src); err != nil {
			return nil, warnings, err
		}
	}
	ignored, err := cfg.override(env)
	for _, msg := range ignored {
		warnings = append(warnings, &yamldoc.Problem{Msg: msg})
	}
	if err == nil {
		err = cfg.checkVaultVariables()
	}
	if err != nil {
		return nil, warnings, err
	}
	cfg.DocumentLoaders = cfg.DocumentLoaders.with(defaultLoaders())
	if cfg.SyncModelsURL != nil {
		*cfg.SyncModelsURL = strings.TrimSpace(*cfg.SyncModelsURL)
	}
	return cfg, warnings, nil
}

// parse puts what the file says over c. Problems do not show the source, which may
// hold keys.
func (c *Config) parse(src []byte) (warnings []*yamldoc.Problem, err error) {
	doc, err := yamldoc.Parse(c.File, src, yamldoc.HideSource)
	if err != nil {
		return nil, configError(err)
	}
	root := doc.Root().Map()
	c.readLegacy(root)
	for _, k := range keys {
		readSetting(root, k.name, k.field(c))
	}
	c.Permission, _ = permission.Read(root.Get("permission")) // what is wrong with it is an error of doc
	readMCPPool(root.Map("mcp_pool"), &c.MCPPool)
	root.Seconds("tool_timeout", &c.ToolTimeout)
	root.Uint("tool_max_output", &c.ToolMaxOutput)
	c.checkVault(root)
	if p := c.UserAgent; p != nil && HasSecretPlaceholder(*p) {
		root.Get("user_agent").Warnf("is sent to everybody and cannot refer to a secret, so it is left out")
		c.UserAgent = nil
	}
	c.places = placesOf(doc.Root())
	c.readClients(root)
	if doc.Err() == nil {
		checkFallbacks(root.List("clients"))
	}
	readOthers(root)
	root.Done()
	return doc.Warnings(), configError(doc.Err())
}

// readLegacy reads the old names of settings; the present names beat them.
func (c *Config) readLegacy(root *yamldoc.Map) {
	root.Bool("function_calling", &c.FunctionCallingSupport)
	if light := false; root.Bool("light_theme", &light) && light {
		theme := "light"
		c.Theme = &theme
	}
}
