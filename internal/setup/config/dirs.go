package config

import "strings"

// The platforms' places. On every platform XDG_CONFIG_HOME and XDG_STATE_HOME
// count, because users who share their dot files between systems set them everywhere.
//
// Sources: XDG Base Directory Specification 0.8; Apple, File System Programming
// Guide; Microsoft, KNOWNFOLDERID (RoamingAppData, LocalAppData).

// configDir returns the configuration directory; ok is false without a home.
func configDir(env Env) (dir string, ok bool) {
	if dir := env.Get("LOKI_CONFIG_DIR"); dir != "" {
		return dir, true
	}
	if dir, ok := absolute(env, "XDG_CONFIG_HOME"); ok {
		return join(env.goos, dir, app), true
	}
	if dir, ok := absolute(env, "APPDATA"); ok && env.goos == "windows" {
		return join(env.goos, dir, app), true
	}
	home := home(env)
	if home == "" {
		return "", false
	}
	switch env.goos {
	case "darwin":
		return join(env.goos, home, "Library", "Application Support", app), true
	case "windows":
		return join(env.goos, home, "AppData", "Roaming", app), true
	default:
		return join(env.goos, home, ".config", app), true
	}
}

// cacheDir returns the cache directory, which is below the directory for temporary
// files if there is no home.
func cacheDir(env Env) string {
	home := home(env)
	switch env.goos {
	case "darwin":
		if home != "" {
			return join(env.goos, home, "Library", "Caches", app)
		}
	case "windows":
		if dir, ok := localAppData(env); ok {
			return join(env.goos, dir, app)
		}
	default:
		if dir, ok := absolute(env, "XDG_CACHE_HOME"); ok {
			return join(env.goos, dir, app)
		}
		if home != "" {
			return join(env.goos, home, ".cache", app)
		}
	}
	return join(env.goos, tempDir(env), app)
}

// stateDir returns the state directory. Without a home it is inside configDir, for
// state must outlive a restart and temporary files do not.
func stateDir(env Env, configDir string) string {
	if dir := env.Get("LOKI_STATE_DIR"); dir != "" {
		return dir
	}
	if dir, ok := absolute(env, "XDG_STATE_HOME"); ok {
		return join(env.goos, dir, app)
	}
	home := home(env)
	switch env.goos {
	case "darwin":
		if home != "" {
			return join(env.goos, home, "Library", "Application Support", app, "state")
		}
	case "windows":
		if dir, ok := localAppData(env); ok {
			return join(env.goos, dir, app, "state")
		}
	default:
		if home != "" {
			return join(env.goos, home, ".local", "state", app)
		}
	}
	return join(env.goos, configDir, "state")
}

func localAppData(env Env) (string, bool) {
	if dir, ok := absolute(env, "LOCALAPPDATA"); ok {
		return dir, true
	}
	home := home(env)
	return join(env.goos, home, "AppData", "Local"), home != ""
}

func homeVariable(goos string) string {
	if goos == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

func home(env Env) string { return env.Get(homeVariable(env.goos)) }

func tempDir(env Env) string {
	names, fallback := []string{"TMPDIR"}, "/tmp"
	if env.goos == "windows" {
		names, fallback = []string{"TMP", "TEMP"}, `C:\Windows\Temp`
	}
	for _, name := range names {
		if dir, ok := absolute(env, name); ok {
			return dir
		}
	}
	return fallback
}

// absolute returns the directory that the variable called name holds; ok is false
// if it is unset, empty or relative, which the XDG specification declares invalid.
func absolute(env Env, name string) (dir string, ok bool) {
	dir = env.Get(name)
	if env.goos != "windows" {
		return dir, strings.HasPrefix(dir, "/")
	}
	drive := len(dir) >= 3 && dir[1] == ':' && strings.IndexByte(`\/`, dir[2]) >= 0
	return dir, drive || strings.HasPrefix(dir, `\\`)
}
