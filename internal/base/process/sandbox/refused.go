package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/text"
)

// Refusal is something that a box stopped.
type Refusal struct {
	Access Access
	What   string // a path as the user would write it, or a host with its port; empty if it is not known
	Reason string // why that is closed, such as "git runs it later"; may be empty
	Level  Level  // the least level that has it; empty if only Full has
}

// Access is what was tried.
type Access string

// The kinds of access.
const (
	Reading    Access = "read"
	Writing    Access = "write"
	Connecting Access = "connect"
	// Noticed is not something that was stopped. What is a predicate, such as "changed .eslintrc.js".
	Noticed Access = "noticed"
)

// String returns the refusal as a predicate: "writes go.sum".
func (r Refusal) String() string {
	verb := map[Access]string{Reading: "reads ", Writing: "writes ", Connecting: "connects to "}[r.Access]
	if r.What == "" {
		return verb + map[Access]string{Reading: "a file", Writing: "a file", Connecting: "the network"}[r.Access]
	}
	return verb + r.What
}

// notice adds something for the user that was not stopped, see [Noticed].
func (b *Box) notice(what, reason string) {
	b.notices = append(b.notices, Refusal{Access: Noticed, What: what, Reason: reason})
}

// Apart returns what was stopped, and what was only noticed.
func Apart(all []Refusal) (stopped, noticed []Refusal) {
	for _, r := range all {
		if r.Access == Noticed {
			noticed = append(noticed, r)
		} else {
			stopped = append(stopped, r)
		}
	}
	return stopped, noticed
}

// maxRefusals is how many refusals are returned.
const maxRefusals = 100

// Reasons of refusals that no level changes.
const (
	deniedByRule = "a rule denies it"
	askedByRule  = "a rule asks about it"
)

// ignoreReason returns the reason for what a line of an ignore file hides.
func ignoreReason(why string) string { return why + " hides it from models" }

// coarseReason is why a place that level write has is not written all the same.
const coarseReason = "without user namespaces, modes and times stay as they are, and nothing new is made beside what runs later"

// writable reports whether the modes of a file, or of the directory of one that does not exist, let its owner write it.
func writable(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		info, err = os.Stat(filepath.Dir(path))
	}
	return err == nil && info.Mode()&0o200 != 0
}

// byRule reports whether a rule closes what was refused.
func (r Refusal) byRule() bool {
	return r.Reason == deniedByRule || r.Asked() || strings.HasSuffix(r.Reason, ignoreReason(""))
}

// Asked reports whether the user's consent would open what was refused, see [Options].Asked.
func (r Refusal) Asked() bool { return r.Reason == askedByRule }

// Refusals returns what the box stopped, each once, as far as can be told: from what the proxy saw, from what was moved out of
// the workspace, and from what the command printed on its standard error. It is called after the child has ended;
// failed says that it did with an error. Without one, only clear words count: what was missing it did without.
func (b *Box) Refusals(stderr string, failed bool) []Refusal {
	if b.Level() == Full {
		return nil
	}
	found := slices.Concat(b.notices, b.withheld)
	for _, host := range b.connections {
		r := Refusal{Access: Connecting, What: host, Level: Network}
		name, port, _ := strings.Cut(host, ":")
		switch hosts := slices.Concat(b.s.o.Hosts, b.declared.Hosts); {
		case !slices.Contains(hosts, host) && slices.Contains(hosts, name) && port != "80" && port != "443":
			r.Reason = "the host " + name + " means its ports 80 and 443; for this one the host is " + host
		case slices.Contains(hosts, host), slices.Contains(hosts, name):
			r.Reason = "it is at an address that is not one of the public internet, and such an address must be listed as a host itself"
		}
		found = append(found, r)
	}
	if r, ok := b.loopback(stderr); ok && failed {
		found = append(found, r)
	}
	for line := range strings.Lines(stderr) {
		if r, ok := b.refusal(strings.TrimSpace(line)); ok && (failed || clearly(line, r)) {
			found = append(found, r)
		}
	}
	var once []Refusal
	for _, r := range found {
		if !slices.Contains(once, r) && len(once) < maxRefusals {
			once = append(once, r)
		}
	}
	return once
}

// LeftNote returns what a child that ended well left withheld, and what was noticed, as a predicate for its user; empty if that is nothing.
func (b *Box) LeftNote() string {
	if b == nil || len(b.notices)+len(b.withheld) == 0 {
		return ""
	}
	return Refusals(slices.Concat(b.notices, b.withheld))
}

var (
	// fileError finds what the system says of a file, in the words of programs.
	fileError = text.Regexp(`(?i)permission denied|operation not permitted|read-only file system|no such file or directory|no such file|not writable|device or resource busy|no such device or address|does not exist|does not appear to be a git repository|\bEACCES\b|\bEROFS\b|\bEPERM\b`)
	// absence finds the ones of them that mean a file which is not there.
	absence = text.Regexp(`(?i)no such file|does not`)
	// hostError finds what programs say of a network that is not there. The host is in one of the groups, if at all.
	hostError = text.Regexp(`(?i)could not resolve (?:host|proxy):? ?'?([\w.-]+)?|getaddrinfo \w+ ([\w.-]+)|lookup ([\w.-]+)[: ]|temporary failure in name resolution|name or service not known|` +
		`nodename nor servname|network is unreachable|failed to establish a new connection|temporary failure resolving '([\w.-]+)'|unable to resolve host address .([\w.-]+).|connectionpool\(host='([\w.-]+)'|` +
		`socket: (?:permission denied|operation not permitted)|connect tunnel failed, response 403|connect (?:EACCES|ENETUNREACH)|\bconnect: .*(?:permission denied|unreachable)|dial (?:tcp|udp)`)
	// refusedHere finds what programs say of an address of this machine where nothing listens, with the address or its host.
	refusedHere = text.Regexp(`(?i)(?:connection refused|ECONNREFUSED|couldn't connect to server|failed to connect|connection reset by peer)`)
	// here finds an address of this machine with a port.
	here = text.Regexp(`(?i)\b(localhost|127(?:\.\d{1,3}){3})(?:["']?(?::| port |, port=|, )(\d{1,5})\b)?|\[?::1\]?(?::| port )(\d{1,5})\b`)
	// listening finds what programs print that could not make a socket to listen on.
	listening = text.Regexp(`(?i)\blisten(?:ing)?\b.*(?:permission denied|EACCES|EPERM|not permitted)|attempting to bind .*(?:permission denied|not permitted)|\b_socket\.socket\.__init__\(`)
	// onlyWriting finds the errors that only writing gets.
	onlyWriting = text.Regexp(`(?i)read-only file system|\bEROFS\b`)
	// making finds that a program was about to make a file.
	making = text.Regexp(`(?i)creat|touch|mkdir|line \d+: |FileNotFoundError|ENOENT.*open`)
	// reading finds that a program was about to read a file.
	reading = text.Regexp(`(?i)\bread(?:ing)? `)
	quoted  = text.Regexp("(?:^|[^\\pL])['\"`‘“]([^'\"`’”]+)['\"`’”]")
	// named is the path between a colon or a blank and the colon before the error.
	named = text.Regexp(`([^\s:'"]+): *$`)
)

// refusal returns what a line of a program says about something that the box stopped.
func (b *Box) refusal(line string) (Refusal, bool) {
	if listening().MatchString(line) {
		r := Refusal{Access: Connecting, What: "its own loopback interface", Reason: "without one it cannot listen", Level: Write}
		if b.held.coarse {
			r.Level = ""
		}
		return r, b.held.coarse || !b.declared.Level.Covers(Write)
	}
	if all := hostError().FindAllStringSubmatch(line, -1); all != nil {
		r := Refusal{Access: Connecting, Level: Network}
		for _, host := range slices.Concat(all...) {
			if strings.Contains(host, ".") && CheckHost(host) == nil {
				r.What = host
			}
		}
		return r, b.declared.Level != Network || r.What != ""
	}
	at := fileError().FindStringIndex(line)
	if at == nil {
		return Refusal{}, false
	}
	what := ""
	for _, part := range []string{line[at[1]:], line[:at[0]]} {
		if all := quoted().FindAllStringSubmatch(part, -1); all != nil {
			what = all[len(all)-1][1]
			break
		}
	}
	if m := named().FindStringSubmatch(line[:at[0]]); what == "" && m != nil {
		what = m[1]
	}
	missing := absence().MatchString(line[at[0]:at[1]])
	if what == "" {
		return Refusal{Access: Writing, Level: least(Write, b.declared.Level)}, !missing && strings.Contains(strings.ToLower(line), "read-only")
	}
	if reading().MatchString(line[:at[0]]) && !filepath.IsAbs(what) && !exists(filepath.Join(b.dir, what)) {
		return Refusal{}, false // a file that is elsewhere, such as mtab for mount
	}
	r, ok := b.place(what, missing, making().MatchString(line))
	if onlyWriting().MatchString(line[at[0]:at[1]]) {
		r.Access = Writing // also of a file that exists
	}
	return r, ok
}

// loopback returns what the error of a failed program, all of it, says about a program on this machine that it could not reach.
// Below [Full] it has a loopback interface of its own, and only there connections are refused.
func (b *Box) loopback(stderr string) (Refusal, bool) {
	if !refusedHere().MatchString(stderr) {
		return Refusal{}, false
	}
	r := Refusal{Access: Connecting, What: "this machine", Reason: "it does not reach programs on this machine"}
	if m := here().FindStringSubmatch(stderr); m != nil && m[2]+m[3] != "" {
		r.What, r.Level = cmp.Or(m[1], "localhost")+":"+m[2]+m[3], Network
	}
	return r, b.declared.Level != Network || r.Level != "" && !slices.Contains(slices.Concat(b.s.o.Hosts, b.declared.Hosts), r.What)
}

// clearError finds the errors of files that the box answers with and that are rare elsewhere.
var clearError = text.Regexp(`(?i)permission denied|operation not permitted|read-only file system|device or resource busy|\bEACCES\b|\bEROFS\b|\bEPERM\b`)

// clearly reports whether a line says, without a failure of the program, that a file or host with a name was out of reach.
func clearly(line string, r Refusal) bool {
	return r.What != "" && !strings.HasPrefix(r.What, "/proc/") && (r.Access == Connecting || r.byRule() || clearError().MatchString(line))
}

func least(l, has Level) Level {
	if has.Covers(l) {
		return ""
	}
	return l
}

// installs returns the level above has at which a path that runs later is made, empty if that is only [Full].
func installs(path string, has Level) Level {
	if slices.ContainsFunc(installed, func(p string) bool { return strings.Contains(path+"/", "/"+p+"/") }) {
		return least(Network, has)
	}
	return ""
}

// place returns what the box stopped at a path. A path that is missing counts only if it is there outside of the box, or was to
// be made in a directory that is.
func (b *Box) place(what string, missing, making bool) (Refusal, bool) {
	path := what
	switch {
	case strings.HasPrefix(path, "~/"):
		path = b.s.absolute(path)
	case !filepath.IsAbs(path):
		path = filepath.Join(b.dir, path)
	}
	path = resolve(filepath.Clean(path))
	l := &b.held
	r := Refusal{What: b.s.display(path)}
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return contains(p, path) })
	}
	readable := in(l.read) || in(l.write) || in(l.needs.Read) || in(l.needs.Write)
	for p, reason := range l.closed {
		if contains(p, path) && !in(l.needs.Read) && !in(l.needs.Write) {
			r.Access, r.Reason = Reading, reason
			return r, exists(path)
		}
	}
	if !readable {
		r.Access = Reading
		if !exists(path) {
			r.Access = Writing
		}
		if r.Access == Writing && strings.HasPrefix(filepath.Clean(what), "..") {
			// A program that went to a directory of the workspace means another file by it, which is likelier than one outside.
			r.What = what
			if reason, later := RunsLater(path); later {
				r.Reason = reason
			} else {
				r.Level = least(Write, b.declared.Level)
			}
		}
		if written := slices.Concat(b.s.o.Write, b.declared.Write); !b.declared.Level.Covers(Write) && slices.ContainsFunc(b.s.declaredPlaces(make(map[string]string), written, written), func(p string) bool { return contains(p, path) }) {
			r.Level = Write
		}
		return r, exists(path) || !missing || making && exists(filepath.Dir(path))
	}
	if missing {
		return Refusal{}, false
	}
	r.Access = Writing
	if reason, later := RunsLater(path); later && contains(l.workspace, path) {
		r.Reason = reason
		r.Level = installs(path, b.declared.Level)
	} else if contains(l.workspace, path) {
		r.Level = least(Write, b.declared.Level)
	}
	if b.declared.Level.Covers(Write) && in(l.write) && r.Reason == "" {
		r.Reason = coarseReason
		return r, l.coarse && writable(path) // else something else than the box
	}
	return r, true
}

// display returns a path as a user would write it: below the workspace or the home directory where it is.
func (s *Sandbox) display(path string) string {
	if rel, err := filepath.Rel(s.workspace(), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home := s.resolve("~/"); home != "" && home != path && contains(home, path) {
		return "~" + path[len(home):]
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
