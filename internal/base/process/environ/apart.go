package environ

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Apart returns environ for a program that must not take code from dir, an absolute directory: without the places in dir, and
// without relative ones, which change with the working directory, in the variables by which programs find code. A variable
// with one place is left out as a whole, and so is one with options that name such a place. The names of variables that
// have changed are in the order of environ.
//
// kept are places, absolute, that are searched although they are in dir: where dir holds the home directory or the whole
// system, the programs in these are not the work of dir. A kept place that dir lies in, or is, does not count.
func Apart(environ []string, dir string, kept []string) (apart, changed []string) {
	inside := Inside(dir, kept)
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		clean := value
		switch {
		case !ok:
		case slices.Contains(codeLists, upper):
			if upper == "LD_PRELOAD" { // which blanks separate, too
				value = strings.ReplaceAll(value, " ", ":")
			}
			clean = withoutPlaces(value, string(os.PathListSeparator), inside)
		case slices.Contains(luaLists, strings.TrimRight(upper, "_0123456789")):
			clean = withoutPlaces(value, ";", inside)
		case slices.Contains(codeOptions, upper) && optionsLead(value, inside),
			slices.Contains(codePlaces, upper) && value != "" && leads(value, inside),
			(slices.Contains(codePrograms, upper) || strings.HasPrefix(upper, "NPM_CONFIG_")) && isPath(value) && leads(value, inside):
			clean = ""
		}
		if clean == value {
			apart = append(apart, entry)
			continue
		}
		changed = append(changed, name)
		if clean != "" {
			apart = append(apart, name+"="+clean)
		}
	}
	return apart, changed
}

// Variables by which programs find code, in upper case.
var (
	codeLists = strings.Fields(`PATH PYTHONPATH NODE_PATH PERL5LIB PERLLIB RUBYLIB CLASSPATH GOPATH GEM_PATH PHP_INI_SCAN_DIR JULIA_LOAD_PATH
		R_LIBS R_LIBS_USER ERL_LIBS GUILE_LOAD_PATH LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH
		DYLD_INSERT_LIBRARIES DYLD_FRAMEWORK_PATH XDG_CONFIG_DIRS XDG_DATA_DIRS`)
	luaLists   = strings.Fields(`LUA_PATH LUA_CPATH`)
	codePlaces = strings.Fields(`PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONPYCACHEPREFIX VIRTUAL_ENV CONDA_PREFIX PIP_CONFIG_FILE UV_CONFIG_FILE
		UV_PROJECT UV_PROJECT_ENVIRONMENT UV_WORKING_DIRECTORY UV_ENV_FILE UV_TOOL_DIR UV_TOOL_BIN_DIR UV_CACHE_DIR PIPX_HOME PIPX_BIN_DIR
		BASH_ENV ENV ZDOTDIR GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_EXEC_PATH
		GIT_TEMPLATE_DIR CARGO_HOME CARGO_MANIFEST_DIR RUSTUP_HOME GEM_HOME BUNDLE_GEMFILE BUNDLE_PATH GOROOT GOBIN GOMODCACHE DENO_DIR
		BUN_INSTALL TSX_TSCONFIG_PATH TS_NODE_PROJECT PYENV_DIR PYENV_ROOT PNPM_HOME PHPRC JAVA_HOME COREPACK_HOME INIT_CWD XDG_CONFIG_HOME XDG_DATA_HOME`)
	codePrograms = strings.Fields(`GIT_SSH GIT_ASKPASS SSH_ASKPASS RUSTC RUSTC_WRAPPER UV_PYTHON PIPX_DEFAULT_PYTHON GOWORK GOENV GOCACHE LUA_INIT EDITOR VISUAL`)
	codeOptions  = strings.Fields(`NODE_OPTIONS PERL5OPT RUBYOPT GOFLAGS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS MAKEFLAGS BUN_OPTIONS RUSTFLAGS GIT_SSH_COMMAND`)
)

// Inside returns what reports whether an absolute place is in dir, by its name or where it leads, and in none of the kept places
// below dir.
func Inside(dir string, kept []string) func(place string) bool {
	dirs := []string{filepath.Clean(dir)}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dirs[0] {
		dirs = append(dirs, real)
	}
	in := func(place string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return within(d, place) })
	}
	below := slices.DeleteFunc(slices.Clone(kept), func(k string) bool { return !in(k) || slices.Contains(dirs, filepath.Clean(k)) })
	return func(place string) bool {
		for _, place := range []string{filepath.Clean(place), resolvePath(place)} {
			if in(place) && !slices.ContainsFunc(below, func(k string) bool { return within(k, place) }) {
				return true
			}
		}
		return false
	}
}

// within reports whether a clean path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// resolvePath returns a path without the links in the part of it that exists.
func resolvePath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolvePath(dir), filepath.Base(path))
	}
	return path
}

// leads reports whether a place depends on the working directory or is inside.
func leads(place string, inside func(string) bool) bool {
	return !filepath.IsAbs(place) && !strings.HasPrefix(place, "~") || inside(place)
}

// isPath reports whether a text is a path, and neither a name nor an address.
func isPath(text string) bool {
	return strings.ContainsAny(text, `/\`) && !strings.Contains(text, "://")
}

// withoutPlaces returns a list without the places that lead inside. An empty one is the working directory.
func withoutPlaces(list, separator string, inside func(string) bool) string {
	if list == "" {
		return ""
	}
	places := strings.Split(list, separator)
	if separator == ";" && strings.Contains(list, ";;") { // the defaults of Lua, which begin in the working directory
		return ""
	}
	return strings.Join(slices.DeleteFunc(places, func(place string) bool { return place == "" || leads(place, inside) }), separator)
}

// optionsLead reports whether a text of options names a place that leads inside, or a module that is found from the working
// directory.
func optionsLead(text string, inside func(string) bool) bool {
	loads := false
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n=,\"'", r) }) {
		path := word
		if name, after, ok := strings.Cut(word, ":"); ok && slices.Contains(loading, name) {
			loads, path = true, after
		} else if option := strings.HasPrefix(word, "-"); option && !strings.HasPrefix(word, "--") && len(word) > 2 {
			path = word[2:] // as in -I./lib
		} else if option {
			loads = slices.Contains(loading, word)
			continue
		}
		attached := path != word && strings.HasPrefix(word, "-") && !loads
		if filepath.IsAbs(path) && inside(path) || strings.HasPrefix(path, ".") || !filepath.IsAbs(path) && (loads || strings.HasPrefix(word, "-I") || isPath(path) && !attached) {
			return true
		}
		loads = slices.Contains(loading, word)
	}
	return false
}

// loading are options of which the next word is a module.
var loading = strings.Fields("-r --require --import --loader --experimental-loader -I -M -m -cp -classpath -modfile -overlay -toolexec -javaagent -agentpath")
