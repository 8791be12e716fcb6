package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/value/yamldoc"
)

// Load reads the configuration file and puts the environment over it. If no file lists
// clients, LOKI_PROVIDER or LOKI_PLATFORM names the only one: "provider" or
// "provider:model" means a client and its model. Without these, the keys in the
// environment make their clients.
//
// The warnings are for the user: keys that mean nothing, client types that do not
// exist, variables that cannot be used. The error, with code Config, lists everything
// in the file that cannot be used, by line and column.
func Load(paths Paths, env Env) (*Config, []*yamldoc.Problem, error) {
	var warnings []*yamldoc.Problem
	cfg := defaults()
	cfg.File, cfg.Blank = paths.ConfigFile, true
	src, err := userfile.ReadFile(context.Background(), paths.ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if env.Get("LOKI_CONFIG_FILE") != "" {
			warnings = append(warnings, &yamldoc.Problem{Msg: fmt.Sprintf("LOKI_CONFIG_FILE names %s, which does not exist", paths.ConfigFile)})
		}
	case err != nil:
		return nil, nil, fault.Wrap(fault.Config, err, "cannot read the configuration")
	default:
		cfg.Exists, cfg.Blank = true, isBlank(src)
		if warnings, err = cfg.parse(src); err != nil {
			return nil, warnings, err
		}
	}
	if len(cfg.Clients) == 0 {
		warnings = append(warnings, cfg.fromPlatform(env)...)
	} else if variable, id := platformVariable(env); id != "" {
		cfg.Notes = append(cfg.Notes, fmt.Sprintf("%s=%s is ignored, because %s lists clients", variable, id, cfg.File))
	}
	if len(cfg.Clients) == 0 {
		cfg.implied = impliedClients()
		cfg.fromKeys(env)
		cfg.FromKeys = len(cfg.Clients) > 0
	}
	ignored, err := cfg.override(env)
	for _, msg := range slices.Concat(ignored, misspellings(env)) {
		warnings = append(warnings, &yamldoc.Problem{Msg: msg})
	}
	if t := cfg.Theme; t != nil && *t != "light" && *t != "dark" && *t != "" {
		warnings = append(warnings, &yamldoc.Problem{Msg: fmt.Sprintf("unknown theme %q is taken for dark", *t), Hint: "the themes are light and dark"})
	}
	for _, cl := range cfg.Clients {
		warnings = append(warnings, cl.patchVariableWarnings(env)...)
	}
	if err == nil {
		err = cfg.checkVaultVariables()
	}
	if err != nil {
		return nil, warnings, err
	}
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
	c.readRenamed(root)
	c.readLegacy(root)
	c.ignoreWithdrawn(root)
	for _, k := range keys {
		readSetting(root, k.name, k.field(c))
	}
	if c.Model != "" {
		c.modelFrom = where(c.File, root.KeyPos("model"))
	}
	c.checkVault(root)
	if key, problem := c.knowledgeProblem(); key != "" {
		root.Get(key).Errorf("%s", problem)
	}
	if p := c.UserAgent; p != nil && HasSecretPlaceholder(*p) {
		root.Get("user_agent").Warnf("is sent to every server and cannot refer to a secret, so it is left out")
		c.UserAgent = nil
	}
	c.places = placesOf(doc.Root())
	c.API = readAPI(root.Map("api"), c.File)
	c.readClients(root)
	if doc.Err() == nil {
		checkFallbacks(root.List("clients"))
	}
	ignoreOthers(root)
	for _, w := range root.Done() {
		if w.Key == "permissions" { // an ignored rule might be the one that denies
			root.Get(w.Key).Errorf("unknown key permissions").Hint = "did you mean permission?"
		}
	}
	return doc.Warnings(), configError(doc.Err())
}

// readLegacy reads settings as older versions had them; the present names beat them.
func (c *Config) readLegacy(root *yamldoc.Map) {
	root.Bool("function_calling", &c.FunctionCallingSupport)
	if save := true; root.Bool("save", &save) && !save { // said when there was no other record of questions
		c.PromptLog = false
	}
	if light := false; root.Bool("light_theme", &light) && light {
		theme := "light"
		c.Theme = &theme
	}
}

// isBlank reports whether a file has nothing but white space and comments.
func isBlank(src []byte) bool {
	for line := range bytes.Lines(src) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
