package update

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"loki/internal/ask"
	"loki/internal/environ"
	"loki/internal/fault"
	"loki/internal/process"
)

// manager is what has installed the program, and keeps it up to date.
type manager struct {
	name    string
	upgrade string // the command that does it; {} is the package
}

// allow decides whether a program that a manager has installed may be replaced. It asks the user if need be.
func (o Options) allow(ctx context.Context) (bool, error) {
	m, ok := managerByPath(runtime.GOOS, o.Executable, o.Environ)
	if !ok {
		m, ok = managerByOwner(ctx, o.Executable, o.Environ)
	}
	if !ok {
		m, ok = managerByPlace(runtime.GOOS, o.Executable)
	}
	if !ok {
		return true, nil
	}
	o.Warn(fmt.Sprintf("%s was installed by %s, which will not know of the new version. The clean way: %s", o.Executable, m.name, m.upgrade))
	if o.Force {
		return true, nil
	}
	refusal := fault.New(fault.Failure, "this program is not replaced: it belongs to %s", m.name).WithHint("%s, or loki --update --force", m.upgrade)
	if o.Asker == nil {
		return false, refusal
	}
	answer, err := o.Asker.Ask(ctx, ask.Question{
		ID: "update", Kind: ask.Select, Text: "Replace it all the same?", Options: []string{"no", "yes"}, Default: "no", HasDefault: true,
	})
	return answer == "yes", err
}

// managerByPath recognizes managers that have directories of their own.
func managerByPath(goos, executable string, env []string) (manager, bool) {
	slashed := filepath.ToSlash(executable)
	if goos == "windows" {
		slashed = strings.ReplaceAll(slashed, `\`, "/")
	}
	parts := strings.Split(slashed, "/")
	has := func(names ...string) bool {
		for i := range parts {
			if i+len(names) <= len(parts) && slices.EqualFunc(parts[i:i+len(names)], names, func(a, b string) bool {
				return a == b || goos == "windows" && strings.EqualFold(a, b)
			}) {
				return true
			}
		}
		return false
	}
	below := func(dir string) bool { return strings.HasPrefix(slashed, dir) }
	switch {
	case has(".cargo", "bin"):
		return manager{"Cargo", "cargo install --force loki"}, true
	case has("Cellar"), has("Caskroom"), below("/opt/homebrew/"), below("/home/linuxbrew/.linuxbrew/"):
		return manager{"Homebrew", "brew upgrade loki"}, true
	case below("/nix/store/"):
		return manager{"Nix", "nix profile upgrade loki"}, true
	case below("/snap/"):
		return manager{"Snap", "sudo snap refresh loki"}, true
	case goos == "windows" && has("scoop", "apps"):
		return manager{"Scoop", "scoop update loki"}, true
	case goos == "windows" && has("chocolatey", "lib"):
		return manager{"Chocolatey", "choco upgrade loki"}, true
	case goos == "windows" && has("WinGet", "Packages"):
		return manager{"WinGet", "winget upgrade loki"}, true
	case slices.Contains(goDirs(env), filepath.Dir(executable)):
		return manager{"go install", "go install ./cmd/loki in the sources of the new version"}, true
	}
	return manager{}, false
}

// goDirs returns where go install puts programs.
func goDirs(env []string) []string {
	var dirs []string
	if dir := environ.Get(env, "GOBIN"); dir != "" {
		dirs = append(dirs, dir)
	}
	paths := filepath.SplitList(environ.Get(env, "GOPATH"))
	if home := environ.Get(env, "HOME"); home != "" {
		paths = append(paths, filepath.Join(home, "go"))
	}
	for _, dir := range paths {
		dirs = append(dirs, filepath.Join(dir, "bin"))
	}
	for i, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dirs[i] = real
		}
	}
	return dirs
}

// databases are the programs that know which package a file belongs to. They print its name up
// to the first of ends, and fail for a file that belongs to none.
var databases = []struct {
	manager
	command []string
	ends    string
}{
	{manager{"dpkg", "sudo apt-get install --only-upgrade {}"}, []string{"dpkg-query", "-S"}, ":,"},
	{manager{"RPM", "sudo dnf upgrade {}"}, []string{"rpm", "-qf", "--queryformat", `%{NAME}\n`}, "\n"},
	{manager{"pacman", "sudo pacman -Syu {}"}, []string{"pacman", "-Qqo"}, "\n"},
	{manager{"apk", "sudo apk upgrade"}, []string{"apk", "info", "-qW"}, "\n"},
}

// managerByOwner asks the databases of packages whether the file belongs to one.
func managerByOwner(ctx context.Context, executable string, env []string) (manager, bool) {
	for _, d := range databases {
		result, err := process.Run(ctx, process.Command{
			Path: d.command[0], Args: append(d.command[1:len(d.command):len(d.command)], executable),
			Env: []string{"PATH=" + environ.Get(env, "PATH"), "LC_ALL=C"}, Timeout: 10 * time.Second, HasTimeout: true,
		})
		if err != nil { // it is not installed, or does not know the file
			continue
		}
		name := string(result.Stdout)
		if end := strings.IndexAny(name, d.ends); end >= 0 {
			name = name[:end]
		}
		if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, " \t\n") {
			name = "loki"
		}
		return manager{d.name, strings.ReplaceAll(d.upgrade, "{}", name)}, true
	}
	return manager{}, false
}

// managerByPlace recognizes the directories that belong to the system.
func managerByPlace(goos, executable string) (manager, bool) {
	if goos != "windows" && slices.Contains([]string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}, filepath.Dir(executable)) {
		return manager{"the system, as it is in " + filepath.Dir(executable), "upgrade it with the package manager of the system"}, true
	}
	return manager{}, false
}
