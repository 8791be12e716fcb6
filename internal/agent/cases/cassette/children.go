package cassette

import (
	"regexp"
	"slices"
	"sync"

	"loki/internal/base/value"
)

// Keys of what a team of agents records below those of its task: its log, and the end of a child.
var (
	logKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^((?:.*/)?)team/\d+$`) })
	endKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^((?:.*/)?)agents/[^/]+/result$`) })
)

// repeatable are operations of a team that do the same whenever they are done. What others do depends on who was faster.
var repeatable = []string{"agent__spawn", "agent__collect", "run"}

// team names the record of a team in a cassette.
type team struct {
	run, step int
	node, key string // the beginning of its keys
}

// teamOf returns the team to whose record a place belongs: a line of the log, or the end of a child.
func teamOf(p Place) (t team, ok bool) {
	for _, key := range []*regexp.Regexp{logKey(), endKey()} {
		if m := key.FindStringSubmatch(p.Key); m != nil {
			return team{p.Run, p.Step, p.Node, m[1]}, true
		}
	}
	return team{}, false
}

// scriptedTeams returns the teams whose children cannot be run again, so that what they did is taken from the cassette. The children of
// others are run again from their own steps, which compares them, too.
func scriptedTeams(entries []*Entry) map[team]bool {
	teams := make(map[team]bool)
	for _, e := range entries {
		t, ok := teamOf(e.Place)
		if !ok {
			continue
		}
		reply := e.Reply.AsObject()
		if logKey().MatchString(e.Key) && !slices.Contains(repeatable, text(reply, "op")) {
			teams[t] = true
		}
		if endKey().MatchString(e.Key) && !slices.Contains([]string{"done", "failed"}, text(reply, "status")) {
			teams[t] = true
		}
		if result, ok := reply.Get("result"); ok && text(result.AsObject(), "status") == "pending" { // the collector was to answer a question first
			teams[t] = true
		}
	}
	return teams
}

// text returns a member that is a text, else "".
func text(o *value.Object, name string) string {
	v, _ := o.Get(name)
	s, _ := v.AsString()
	return s
}
