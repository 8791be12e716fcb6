package sandbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text/pattern"
)

// seatbelt returns the profile of Seatbelt, the sandbox of macOS, for limits: a child has what they have, its temporary
// directory, and the proxy at a port of this machine if it is not 0. later are the places that run later, and denied patterns of
// files as in Options.
//
// Apple documents neither the language nor its stability. The profile keeps to forms that the profiles of the system and of widely
// used programs have: the last rule that matches decides, and paths are those without symbolic links. The tests compare its
// text only. A profile that the system does not take runs nothing.
//
// Rules are about names here, not about files that exist. So what runs later is protected before it is made, and
// at any depth.
func seatbelt(l *limits, temp string, later []place, denied []pattern.Branch, port int) string {
	var p profile
	p.WriteString(seatbeltBase)
	p.rule("allow", "file-read* file-map-executable process-exec", subpaths(slices.Concat(l.read, l.needs.Read, l.write, l.needs.Write, []string{temp})))
	if write := slices.Concat(l.write, l.needs.Write, []string{temp}); len(write) > 0 {
		p.rule("allow", "file-write*", subpaths(write))
	}
	if l.level.Covers(Write) && l.workspace != "" {
		places, around := laterFilters(l.workspace, later)
		p.rule("deny", "file-write*", append(subpaths(slices.Sorted(maps.Keys(l.protected))), places...))
		for _, dir := range slices.Sorted(maps.Keys(l.held)) {
			if l.writes(dir) {
				around = append(around, "(literal "+inQuotes(dir)+")")
			}
		}
		p.rule("deny", "file-write-unlink", around)
	}
	p.rule("deny", "file-read* file-write* process-exec", append(subpaths(append(slices.Sorted(maps.Keys(l.closed)), slices.Sorted(maps.Keys(l.blanked))...)), globs(denied)...))
	// What a child was started for is its own even where a place around it is closed.
	p.rule("allow", "file-read* file-map-executable process-exec", subpaths(l.needs.Read))
	p.rule("allow", "file-read* file-write*", subpaths(slices.Concat(l.needs.Write, []string{temp})))
	p.rule("allow", "network-bind network-inbound network-outbound", []string{fmt.Sprintf("(local unix-socket (subpath %s))", inQuotes(temp)), fmt.Sprintf("(remote unix-socket (subpath %s))", inQuotes(temp))})
	if port != 0 {
		p.rule("allow", "network-outbound", []string{fmt.Sprintf(`(remote ip "localhost:%d")`, port)})
	}
	return p.String()
}

// seatbeltBase is what every child has: its own processes, devices without content, what libraries ask about the machine, and the
// service that knows the names of users. There is no kern.procargs2 among the settings: it shows the environment of
// other processes.
const seatbeltBase = `(version 1)
(deny default)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/dtracehelper"))
(allow file-read*
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/autofs_nowait"))
(allow file-read* file-write-data (subpath "/dev/fd"))
(allow ipc-posix-sem)
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.boottime")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.iossupportversion")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
`

// profile is the text of a profile that is being made.
type profile struct{ strings.Builder }

// rule adds a rule with filters of which one must match. Without filters there is no rule: it would hold for everything.
func (p *profile) rule(action, operations string, filters []string) {
	if len(filters) > 0 {
		fmt.Fprintf(p, "(%s %s\n  %s)\n", action, operations, strings.Join(filters, "\n  "))
	}
}

// laterFilters are filters for places that run later, at any depth of the workspace, and for the directories around
// them, which must not be moved away. Letters in either case are the same, as file systems of macOS have it.
func laterFilters(workspace string, later []place) (places, around []string) {
	begin := "^" + regexp.QuoteMeta(workspace) + "/(.*/)?"
	for _, p := range later {
		places = append(places, regexFilter(begin+anyCase(p.path)+"(/|$)"))
		for dir := filepath.Dir(p.path); dir != "."; dir = filepath.Dir(dir) {
			if f := regexFilter(begin + anyCase(dir) + "$"); !slices.Contains(around, f) {
				around = append(around, f)
			}
		}
	}
	return places, around
}

// anyCase returns a regular expression for a text in which letters may have either case.
func anyCase(text string) string {
	var b strings.Builder
	for _, r := range text {
		if lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r)); lower != upper {
			b.WriteString("[" + lower + upper + "]")
		} else {
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String()
}

// subpaths returns filters for places and all that is in them, each once.
func subpaths(paths []string) []string {
	var filters []string
	for _, p := range paths {
		if f := "(subpath " + inQuotes(p) + ")"; p != "" && !slices.Contains(filters, f) {
			filters = append(filters, f)
		}
	}
	return filters
}

// globs returns filters for patterns of files. What lies below what matches is meant, too.
func globs(patterns []pattern.Branch) []string {
	var filters []string
	for _, b := range patterns {
		filters = append(filters, regexFilter("^"+pathExpression(b)+"(/|$)"))
	}
	return filters
}

// pathExpression returns the regular expression of a pattern.
func pathExpression(b pattern.Branch) string {
	if b.Glob == "" {
		return anyCase(b.Dir)
	}
	return anyCase(strings.TrimSuffix(b.Dir, "/")) + "/" + globExpression(b.Glob)
}

// globExpression returns the regular expression of the part of a pattern with wildcards.
func globExpression(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); {
		rest := glob[i:]
		_, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(.*/)?")
			size = 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			size = 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[' && strings.IndexByte(rest, ']') > 1:
			size = strings.IndexByte(rest, ']') + 1
			b.WriteString(strings.Replace(rest[:size], "[!", "[^", 1))
		case rest[0] == '\\' && len(rest) > 1:
			_, size = utf8.DecodeRuneInString(rest[1:])
			size++
			b.WriteString(anyCase(rest[1:size]))
		default:
			b.WriteString(anyCase(rest[:size]))
		}
		i += size
	}
	return b.String()
}

// inQuotes returns a text as a profile has it.
func inQuotes(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// regexFilter returns a filter for paths that match a regular expression. A quote ends one, so it is written as any character.
func regexFilter(expression string) string {
	return `(regex #"` + strings.ReplaceAll(expression, `"`, ".") + `")`
}
