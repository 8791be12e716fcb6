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
	if dir, ok = absolute(env, "XDG_CONFIG_HOME"); !ok {
		dir, ok = userDir(env, "APPDATA", "Library/Application Support", "AppData/Roaming", ".config")
	}
	return join(env.goos, dir, app), ok
}

// cacheDir returns the cache directory, which is below the directory for temporary
// files if there is no home.
func cacheDir(env Env) string {
	dir, ok := absolute(env, "XDG_CACHE_HOME")
	if !ok || env.goos == "darwin" || env.goos == "windows" {
		dir, ok = userDir(env, "LOCALAPPDATA", "Library/Caches", "AppData/Local", ".cache")
	}
	if !ok {
		dir = tempDir(env)
	}
	return join(env.goos, dir, app)
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
	dir, ok := userDir(env, "LOCALAPPDATA", "Library/Application Support", "AppData/Local", ".local/state")
	switch {
	case !ok:
		return join(env.goos, configDir, "state")
	case env.goos == "darwin" || env.goos == "windows":
		return join(env.goos, dir, app, "state")
	}
	return join(env.goos, dir, app)
}

// userDir returns where a platform keeps things of one kind for a user: what the variable says on Windows, and otherwise a path below
// the home directory, in which a slash separates. ok is false without a home.
func userDir(env Env, variable, darwin, windows, other string) (dir string, ok bool) {
	path := other
	switch env.goos {
	case "darwin":
		path = darwin
	case "windows":
		if dir, ok := absolute(env, variable); ok {
			return dir, true
		}
		path = windows
	}
	home := home(env)
	return join(env.goos, home, strings.Split(path, "/")...), home != ""
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
