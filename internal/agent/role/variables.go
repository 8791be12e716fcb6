package role

import (
	"bufio"
	"cmp"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine holds the values of the variables in prompts that describe the
// machine.
type Machine struct {
	GOOS, GOARCH string                   // as in package runtime
	Shell        string                   // name of the user's shell
	Getenv       func(name string) string // empty if a variable is not set
	Now          func() time.Time
	Dir          func() (string, error) // the working directory
}

// ThisMachine returns the machine that the program runs on.
func ThisMachine(shell string, getenv func(string) string) Machine {
	return Machine{GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Shell: shell, Getenv: getenv, Now: time.Now, Dir: os.Getwd}
}

// Lookup returns the value of a variable of prompts:
//
//	__os__         operating system: linux, macos, windows, ...
//	__os_distro__  distribution and its version
//	__os_family__  unix or windows
//	__arch__       processor: x86_64, aarch64, ...
//	__shell__      name of the user's shell
//	__locale__     language and region, such as en-US; empty if unknown
//	__now__        local time as in RFC 3339, in seconds
//	__cwd__        working directory
func (m Machine) Lookup(name string) (string, bool) {
	switch name {
	case "__os__":
		return m.os(), true
	case "__os_distro__":
		return m.distribution(), true
	case "__os_family__":
		if m.GOOS == "windows" {
			return "windows", true
		}
		return "unix", true
	case "__arch__":
		return cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "x86"}[m.GOARCH], m.GOARCH), true
	case "__shell__":
		return m.Shell, true
	case "__locale__":
		return m.locale(), true
	case "__now__":
		return m.Now().Format("2006-01-02T15:04:05-07:00"), true
	case "__cwd__":
		dir, err := m.Dir()
		return dir, err == nil
	}
	return "", false
}

func (m Machine) os() string {
	if m.GOOS == "darwin" {
		return "macos"
	}
	return m.GOOS
}

// distribution reads os-release, see os-release(5), where there is one.
func (m Machine) distribution() string {
	if m.GOOS != "linux" {
		return m.os()
	}
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if f, err := os.Open(file); err == nil {
			defer f.Close()
			fields := make(map[string]string)
			for lines := bufio.NewScanner(f); lines.Scan(); {
				if name, v, ok := strings.Cut(lines.Text(), "="); ok {
					fields[name] = strings.Trim(v, `"'`)
				}
			}
			if name := cmp.Or(fields["NAME"], fields["ID"]); name != "" {
				return strings.TrimSpace(name+" "+fields["VERSION_ID"]) + " (linux)"
			}
		}
	}
	return "linux"
}

// locale is what the variables of POSIX say: de_DE.UTF-8@euro is de-DE.
func (m Machine) locale() string {
	v := cmp.Or(m.Getenv("LC_ALL"), m.Getenv("LC_MESSAGES"), m.Getenv("LANG"))
	if i := strings.IndexAny(v, ".@"); i >= 0 {
		v = v[:i]
	}
	if v == "C" || v == "POSIX" {
		return ""
	}
	return strings.ReplaceAll(v, "_", "-")
}
