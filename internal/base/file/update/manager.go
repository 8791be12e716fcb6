package update

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
)

// manager is what has installed the program, and keeps it up to date.
type manager struct {
	name    string
	upgrade string // the command that does it
}

// allow decides whether a program that a manager has installed may be replaced. It asks the user if need be.
func (o Options) allow(ctx context.Context) (bool, error) {
	m, ok := managerOf(runtime.GOOS, o.Executable)
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

// managers have the directories of programs that managers install, with slashes, and on Windows in lower case.
var managers = []struct {
	manager
	places string // a regular expression
}{
	{manager{"Cargo", "cargo install --force loki"}, `/\.cargo/bin/`},
	{manager{"Homebrew", "brew upgrade loki"}, `/Cellar/|/Caskroom/|^/opt/homebrew/|^/home/linuxbrew/\.linuxbrew/`},
	{manager{"go install", "go install ./cmd/loki in the sources of the new version"}, `/go/bin/`},
	{manager{"a package manager", "upgrade it with the package manager"}, `^/nix/store/|^/snap/|^[a-z]:/.*/(scoop/apps|chocolatey/lib|winget/packages)/`},
	{manager{"the system, as its place says", "upgrade it with the package manager of the system"}, `^(/usr)?/s?bin/[^/]*$`},
}

// managerOf recognizes the manager of a program by its path. ok is false if there is none.
func managerOf(goos, executable string) (m manager, ok bool) {
	if goos == "windows" {
		executable = strings.ToLower(strings.ReplaceAll(executable, `\`, "/"))
	}
	for _, m := range managers {
		if regexp.MustCompile(m.places).MatchString(executable) {
			return m.manager, true
		}
	}
	return manager{}, false
}
