package cassette

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/run"
)

// Marks replace what depends on the machine and the user: secrets and directories. The zero Marks
// replace nothing.
type Marks struct {
	Hide func(text string) string // returns a text without secrets; nil hides none
	// Dirs are directories, absolute, by the name that replaces them: "work" for $work.
	Dirs map[string]string
	// Beside returns the directories of the agents, by their names, that the agent at dir knows before
	// the installed ones. Nil returns none.
	Beside func(dir string) map[string]string
}

// with returns m with the directories of the agent of a run and of the agents beside it.
func (m Marks) with(info run.Info) Marks {
	m.Dirs = maps.Clone(m.Dirs)
	if m.Dirs == nil {
		m.Dirs = make(map[string]string)
	}
	if m.Beside != nil && info.AgentDir != "" && !info.ByName {
		for name, dir := range m.Beside(info.AgentDir) {
			m.Dirs["agents/"+name] = dir
		}
	}
	m.Dirs["agent"] = info.AgentDir
	return m
}

// pairs returns the directories and their marks, the longest directory first.
func (m Marks) pairs() [][2]string {
	var pairs [][2]string
	for name, dir := range m.Dirs {
		if len(dir) > 1 {
			pairs = append(pairs, [2]string{dir, "$(" + name + ")"})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Or(len(b[0])-len(a[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}

// hide returns v with marks.
func (m Marks) hide(v value.Value) value.Value {
	pairs := m.pairs()
	return change(v, func(s string) string {
		if m.Hide != nil {
			s = m.Hide(s)
		}
		for _, p := range pairs {
			s = strings.ReplaceAll(s, p[0], p[1])
		}
		return s
	})
}

func (m Marks) hideText(s string) string {
	text, _ := m.hide(value.Of(s)).AsString()
	return text
}

// show returns v with the directories in place of their marks. Secrets stay marks.
func (m Marks) show(v value.Value) value.Value {
	pairs := m.pairs()
	return change(v, func(s string) string {
		for _, p := range pairs {
			s = strings.ReplaceAll(s, p[1], p[0])
		}
		return s
	})
}

// dates are dates, perhaps with a time, of ISO 8601.
var dates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?\b`)
})

// nowMark replaces the date and time at which something was recorded.
const nowMark = "$(now)"

// withoutNow returns a request with a mark in place of today's date, and of the time behind it.
func withoutNow(v value.Value, now time.Time) value.Value {
	return change(v, func(s string) string {
		return dates().ReplaceAllStringFunc(s, func(d string) string {
			for _, day := range []string{now.Local().Format(time.DateOnly), now.UTC().Format(time.DateOnly)} {
				if strings.HasPrefix(d, day) {
					return nowMark
				}
			}
			return d
		})
	})
}

// withoutDates returns a request with the same mark in place of each date: for comparison.
func withoutDates(v value.Value) value.Value {
	return change(v, func(s string) string { return dates().ReplaceAllString(s, nowMark) })
}

// change returns v with the texts that fn returns in place of its texts. Names of members stay.
func change(v value.Value, fn func(string) string) value.Value {
	if text, ok := v.AsString(); ok {
		if changed := fn(text); changed != text {
			return value.Of(changed)
		}
		return v
	}
	return rebuilt(v, func(name string, m value.Value) value.Member {
		return value.Member{Name: name, Value: change(m, fn)}
	}, func(item value.Value) value.Value { return change(item, fn) })
}
