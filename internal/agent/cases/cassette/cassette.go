// Package cassette keeps what a run exchanged with models, tools, scripts and the user in a file that people can
// read, and plays it again.
//
// A cassette is the record of the steps of a run, see package steps: of each its key, what it
// sent and what came back. [Recorder] wraps the store of runs and collects them. [Player] is a store in memory whose
// steps answer from a cassette; a step that is not in it, or that sends something else than was recorded, ends
// the run with a [*MismatchError].
//
// Entries are in the order of their keys, so that recording twice gives the same file but for what really differs. Secrets are
// replaced by marks. The working directory and the directory of the agent are replaced by marks too, and the
// dates of requests, so that a cassette plays elsewhere and later.
package cassette

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
)

// version is the version of the format.
const version = 1

// Cassette is a recorded run, or several of one command.
type Cassette struct {
	// Agent is the name of the agent, "" for none, or a path with slashes if the user named its directory,
	// see [AgentAt].
	Agent     string
	Prompt    string
	Variables map[string]string
	Asked     string   // id of the model that the user asked for, "" for none
	Model     string   // id of the model for what names none, "" for unknown
	Servers   []string // names of the tools of MCP servers
	Entries   []*Entry // in the order of their places
}

// AgentAt returns how a cassette at file names the agent at dir, an absolute path: by a path from
// the directory of file that begins with a dot, or by dir if there is none.
func AgentAt(file, dir string) string {
	if file, err := filepath.Abs(file); err == nil {
		if rel, err := filepath.Rel(filepath.Dir(file), dir); err == nil {
			dir = rel
			if filepath.IsLocal(rel) && rel != "." {
				dir = "./" + rel
			}
		}
	}
	return filepath.ToSlash(dir)
}

// AgentFrom returns the agent of a cassette at file as the user would name it now.
func (c *Cassette) AgentFrom(file string) string {
	if !strings.HasPrefix(c.Agent, ".") {
		return c.Agent
	}
	dir := filepath.Join(filepath.Dir(file), filepath.FromSlash(c.Agent))
	if filepath.IsLocal(dir) { // a path, and not a name
		dir = "." + string(filepath.Separator) + dir
	}
	return dir
}

// Place says where a step is. It is the same in each run of the same work.
type Place struct {
	Run  int    // of the command, from 1
	Step int    // super-step
	Node string // empty for work that is one task
	Key  string // within the task
}

// String returns the place for people.
func (p Place) String() string {
	s := p.Key
	if p.Node != "" {
		s = fmt.Sprintf("node %s (super-step %d), %s", p.Node, p.Step, p.Key)
	}
	if p.Run > 1 {
		s = fmt.Sprintf("run %d, %s", p.Run, s)
	}
	return s
}

// compare orders places, with numbers in keys by their value.
func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Run, q.Run), cmp.Compare(p.Step, q.Step), cmp.Compare(p.Node, q.Node), compareKeys(p.Key, q.Key))
}

func compareKeys(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(as), len(bs)) {
		n, err1 := strconv.Atoi(as[i])
		m, err2 := strconv.Atoi(bs[i])
		c := cmp.Compare(as[i], bs[i])
		if err1 == nil && err2 == nil {
			c = cmp.Or(cmp.Compare(n, m), c)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// Entry is a recorded step.
type Entry struct {
	Place
	Kind    steps.Kind
	Name    string
	Request value.Value // null if it was not described
	Reply   value.Value // the step's result
	Failure *Failure    // instead of a reply
	Line    int         // in the file, 0 for none
}

// Failure is the error of a step that failed.
type Failure struct {
	Code    string // of package fault
	Kind    string // of a provider's error, empty for others
	Message string
	Hint    string
}

// sort brings the entries in order.
func (c *Cassette) sort() {
	slices.SortStableFunc(c.Entries, func(a, b *Entry) int { return a.compare(b.Place) })
}

// find returns the entry at a place, nil if there is none.
func (c *Cassette) find(p Place) *Entry {
	if i, ok := slices.BinarySearchFunc(c.Entries, p, func(e *Entry, p Place) int { return e.compare(p) }); ok {
		return c.Entries[i]
	}
	return nil
}
