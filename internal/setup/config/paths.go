package config

import (
	"cmp"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
)

// app is the name of the program's own directory inside those of the platform.
const app = "loki"

// Paths says where everything lives. Computing it touches no file, and none of the
// places need exist. A path that the environment overrides is taken as it is
// written, without expansion of a tilde; an empty override is none.
type Paths struct {
	ConfigDir    string // LOKI_CONFIG_DIR
	ConfigFile   string // LOKI_CONFIG_FILE, else config.yaml in ConfigDir
	RolesDir     string // LOKI_ROLES_DIR
	MacrosDir    string // LOKI_MACROS_DIR
	SessionsDir  string // LOKI_SESSIONS_DIR; sessions outside agents
	RAGsDir      string // LOKI_RAGS_DIR; knowledge bases outside agents
	FunctionsDir string // LOKI_FUNCTIONS_DIR
	AgentsDir    string

	// EnvFile is LOKI_ENV_FILE, else .env in the configuration directory. Only the
	// environment of the process decides it: a file cannot say where it is itself.
	EnvFile string

	ModelsOverrideFile string // the user's own catalog of models
	VaultFile          string // encrypted secrets
	VaultPasswordFile  string // unless the configuration names another; empty without a home directory

	CacheDir     string // may be deleted at any time
	LogFile      string // LOKI_LOG_FILE, else LOKI_LOG_PATH
	MessagesFile string // LOKI_MESSAGES_FILE; the journal of turns outside sessions and agents
	OAuthDir     string

	StateDir string // LOKI_STATE_DIR; what the program must not lose: the runs of graph agents

	env Env // for the overrides of agents
}

// NewPaths computes the paths from env for the platform env was made for. It fails
// if env names neither a home directory nor a configuration directory.
func NewPaths(env Env) (Paths, error) {
	configDir, ok := configDir(env)
	if !ok {
		return Paths{}, noHome(env)
	}
	in := func(dir string, elems ...string) string { return join(env.goos, dir, elems...) }
	from := func(name, fallback string) string { return cmp.Or(env.Get(name), fallback) }

	cacheDir := cacheDir(env)
	p := Paths{
		ConfigDir:    configDir,
		ConfigFile:   from("LOKI_CONFIG_FILE", in(configDir, "config.yaml")),
		RolesDir:     from("LOKI_ROLES_DIR", in(configDir, "roles")),
		MacrosDir:    from("LOKI_MACROS_DIR", in(configDir, "macros")),
		SessionsDir:  from("LOKI_SESSIONS_DIR", in(configDir, "sessions")),
		RAGsDir:      from("LOKI_RAGS_DIR", in(configDir, "rags")),
		FunctionsDir: from("LOKI_FUNCTIONS_DIR", in(configDir, "functions")),
		AgentsDir:    in(configDir, "agents"),

		ModelsOverrideFile: in(configDir, "models-override.yaml"),
		VaultFile:          in(configDir, "vault.yml"),

		CacheDir:     cacheDir,
		LogFile:      from("LOKI_LOG_FILE", from("LOKI_LOG_PATH", in(cacheDir, "loki.log"))),
		MessagesFile: from("LOKI_MESSAGES_FILE", in(cacheDir, "messages.md")),
		OAuthDir:     in(cacheDir, "oauth"),

		StateDir: stateDir(env, configDir),

		env: env,
	}
	p.EnvFile, _ = envFile(env)
	if home := home(env); home != "" {
		p.VaultPasswordFile = in(home, ".loki_password")
	}
	return p, nil
}

// Absolute returns the paths as seen from anywhere: relative ones begin in the working
// directory.
func (p Paths) Absolute() (Paths, error) {
	for _, path := range []*string{
		&p.ConfigDir, &p.ConfigFile, &p.RolesDir, &p.MacrosDir, &p.SessionsDir, &p.RAGsDir, &p.FunctionsDir, &p.AgentsDir, &p.EnvFile,
		&p.ModelsOverrideFile, &p.VaultFile, &p.VaultPasswordFile, &p.CacheDir, &p.LogFile, &p.MessagesFile, &p.OAuthDir, &p.StateDir,
	} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return Paths{}, err
		}
	}
	return p, nil
}

// Absolute returns an absolute path, or the path as it is if the working directory is not known.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// MacroFile returns the file of the macro called name.
func (p Paths) MacroFile(name string) string { return p.join(p.MacrosDir, name+".yaml") }

// ToolsDir returns the directory of the user's tool scripts.
func (p Paths) ToolsDir() string { return p.join(p.FunctionsDir, "tools") }

// ToolsBinDir returns the directory of the wrappers that are made for tool scripts.
func (p Paths) ToolsBinDir() string { return p.join(p.FunctionsDir, "bin") }

// ToolsUtilsDir returns the directory of what tool scripts include.
func (p Paths) ToolsUtilsDir() string { return p.join(p.FunctionsDir, "utils") }

// MCPFile returns the file that names the MCP servers.
func (p Paths) MCPFile() string { return p.join(p.FunctionsDir, "mcp.json") }

// ThemeFile returns the file of the user's own light or dark theme.
func (p Paths) ThemeFile(light bool) string {
	if light {
		return p.join(p.ConfigDir, "light.tmTheme")
	}
	return p.join(p.ConfigDir, "dark.tmTheme")
}

func (p Paths) join(dir string, elems ...string) string { return join(p.env.goos, dir, elems...) }

// envFile returns the place of the env file; ok is false if there is no directory
// to look in.
func envFile(env Env) (path string, ok bool) {
	env = env.process()
	if file := env.Get("LOKI_ENV_FILE"); file != "" {
		return file, true
	}
	dir, ok := configDir(env)
	return join(env.goos, dir, ".env"), ok
}

// join puts elems below dir with the separator of the platform goos, which need not
// be the one the program runs on.
func join(goos, dir string, elems ...string) string {
	separator, all := "/", "/"
	if goos == "windows" {
		separator, all = `\`, `/\`
	}
	path := strings.TrimRight(dir, all)
	for _, e := range elems {
		path += separator + e
	}
	return path
}

func noHome(env Env) error {
	return fault.New(fault.Config, "no home directory: %s is not set", homeVariable(env.goos)).
		WithHint("set %s, or set LOKI_CONFIG_DIR to a directory for Loki's configuration", homeVariable(env.goos))
}

// LegacyVault is where older versions kept the vault, wherever the configuration was; "" if that is where it is now.
func (p Paths) LegacyVault(env Env) string {
	base := env.Get("XDG_CONFIG_HOME")
	if base == "" {
		home := env.Get("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".config")
	}
	if file := filepath.Join(base, "loki", filepath.Base(p.VaultFile)); file != p.VaultFile {
		return file
	}
	return ""
}
