package permission

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
)

// Action is what happens to a call.
type Action string

// The actions. The empty action is none: nothing has been decided.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// stricter returns the stricter of two actions.
func stricter(a, b Action) Action {
	order := []Action{"", Allow, Ask, Deny}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Access says what a path is used for.
type Access string

// The kinds of access. The empty one in a rule means both.
const (
	Reading Access = "read"
	Writing Access = "write"
)

// Unattended says what to do with a call that needs consent where no user can be asked.
type Unattended string

// The policies. Empty means UnattendedDeny.
const (
	UnattendedDeny    Unattended = "deny"    // it is refused, and the model reads so
	UnattendedAllow   Unattended = "allow"   // it is made
	UnattendedSuspend Unattended = "suspend" // the request ends with code fault.Suspended
)

// Argument is a condition on one argument of a call.
type Argument struct {
	Name    string
	Pattern string // * matches any text; the argument is a text, number or boolean
}

// Rule says what to do with the calls that it matches. All conditions of a rule must hold; of the
// patterns in a list one must match.
type Rule struct {
	Tool   string // name of a tool, in which * matches any text
	Action Action

	// Commands are patterns of shell commands, see [Judge.Judge]. Such a rule matches
	// simple commands of shell tools, and nothing else.
	Commands []string
	// Text is a whole shell text. Such a rule matches only a call with this very text.
	Text string
	// Paths are patterns of files, see package pattern: relative ones below the workspace, or absolute ones. Such a
	// rule matches what a tool's arguments name, and what redirections of shell tools read or write.
	Paths  []string
	Access Access // of Paths; empty means any

	Arguments []Argument

	// Hosts are patterns of hosts, in lower case, in which * matches any text. Such a rule matches only calls that
	// send a request to a host of the model's choice.
	Hosts []string

	// Sandbox is the highest level at which the rule allows what it matches to run; empty means
	// sandbox.Full. Only rules for shell tools that allow have one.
	Sandbox sandbox.Level

	// Origin says where the rule is from, such as config.yaml:12.
	Origin string

	layer int
	hosts string // of a grant
	wide  bool   // it is about a tool that it does not name, see Rule.widened
	// Of a rule that workspace.bind has returned: Paths for absolute paths, and the files with several names
	// that they match.
	places []*pattern.Pattern
	twins  func() []os.FileInfo
	// Of the rule for ignore files: why one hides a path, and the directory in which they are.
	hides func(path string) (why string, ok bool)
	below string
}

// whole reports whether the rule is about all texts for the shell in calls with its arguments. One that allows is not: its condition on
// the command would hold for a text that begins as the pattern does.
func (r *Rule) whole() bool {
	return r.Text == "" && len(r.Paths) == 0 && (len(r.Arguments) == 0 || r.Action != Allow) && len(r.Hosts) == 0 && (len(r.Commands) == 0 || slices.Contains(r.Commands, "*"))
}

// reaches reports whether a rule holds for calls that send to a host, "" for calls that send nothing to a host of the
// model's choice, and how specific the pattern is that matches.
func (r *Rule) reaches(host string) (specificity int, ok bool) {
	for _, p := range r.Hosts {
		if host != "" && pattern.Text(p, host) {
			specificity, ok = max(specificity, literals(p)), true
		}
	}
	return specificity, ok || len(r.Hosts) == 0
}

// String returns the rule as users see it.
func (r *Rule) String() string {
	if r.hides != nil {
		return "what ignore files hide"
	}
	text := string(r.Action) + " " + r.Tool
	if r.Text != "" {
		text += " " + r.Text
	}
	for i, p := range slices.Concat(r.Commands, r.Paths, r.Hosts) {
		text += [...]string{" ", ", "}[min(i, 1)] + strconv.Quote(p)
	}
	if r.Origin != "" {
		text += " (" + r.Origin + ")"
	}
	return text
}

// Rules are the rules of one place. The zero value has none.
type Rules struct {
	// Default becomes of calls that no rule matches and that are not harmless. Empty
	// means Ask for tools that may destroy something and Allow for the others. Allow does
	// not reach outside the workspace, nor what a shell text does not show.
	Default    Action
	Unattended Unattended
	List       []Rule
	// KeepEnv are names, with * for any text, of variables that all children get; see environ.Policy.
	KeepEnv []string
	// Trust names MCP servers, with * for any text, whose word that a tool only reads is taken.
	Trust []string
}

// match is the rule that decides so far, with how specific its matching pattern is.
type match struct {
	rule        *Rule
	specificity int
}

// is reports whether a rule decides, with an action.
func (m *match) is(a Action) bool { return m.rule != nil && m.rule.Action == a }

// add takes rule into account, which matches with a pattern of the given specificity.
func (m *match) add(rule *Rule, specificity int) {
	switch {
	case m.rule == nil:
	case m.rule.Action == Deny:
		return
	case rule.Action == Deny || rule.layer > m.rule.layer:
	case rule.layer < m.rule.layer || specificity < m.specificity:
		return
	}
	m.rule, m.specificity = rule, specificity
}

// Tools of the program that take files.
var (
	readingTools = []string{"fs_cat", "fs_read", "fs_grep", "fs_glob", "fs_ls", "execute_command", "execute_py_code", "execute_sql_code"}
	writingTools = []string{"fs_write", "fs_patch", "fs_rm", "fs_mkdir"}
)

// otherTools are those of the program that take none.
var otherTools = strings.Fields(`fetch_url_via_curl fetch_url_via_jina get_current_time get_current_weather search_arxiv search_wikipedia search_wolframalpha
	send_mail send_twilio web_search_loki web_search_perplexity web_search_tavily user__ask user__checkbox user__confirm user__input`)

// widen returns a rule that denies or asks about paths as it holds for tools that it does not name, nil if it does not hold for
// these. A file that one of the tools of the program must not read is out of reach for all of them, since each can read for the
// others; a rule about tools that only write is about writing with any of them.
func (r *Rule) widen() *Rule {
	named := func(tool string) bool { return pattern.Text(r.Tool, tool) }
	reads := slices.ContainsFunc(readingTools, named)
	if !r.about("") || len(r.Arguments)+len(r.Hosts) > 0 || !reads && !slices.ContainsFunc(writingTools, named) {
		return nil // it is about a tool of the user or of a server
	}
	wide := *r
	if wide.wide = true; !reads && wide.Access == "" {
		wide.Access = Writing
	}
	return &wide
}
