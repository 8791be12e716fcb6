package logging

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
)

// The levels besides those of slog.
const (
	LevelTrace = slog.LevelDebug - 4 // whole states, and requests with what users and models have written
	LevelOff   = slog.Level(math.MaxInt32)
)

// ParseLevel reads the name of a level: off, error, warn, info, debug or trace, in any
// case. Anything else means info.
func ParseLevel(name string) slog.Level {
	if level, ok := lookupLevel(name); ok {
		return level
	}
	return slog.LevelInfo
}

// IsLevel reports whether name is that of a level, as [ParseLevel] takes it.
func IsLevel(name string) bool {
	_, ok := lookupLevel(name)
	return ok
}

func lookupLevel(name string) (slog.Level, bool) {
	level, ok := map[string]slog.Level{
		"off": LevelOff, "error": slog.LevelError, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
		"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": LevelTrace,
	}[strings.ToLower(strings.TrimSpace(name))]
	return level, ok
}

// levelName is the name of the level at or below l, as lines show it.
func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelDebug:
		return "TRACE"
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARN"
	}
	return "ERROR"
}

// Filter says which level is kept of which package. The zero Filter keeps info and
// above of all.
type Filter struct {
	rules []rule     // longest name first
	rest  slog.Level // of packages that no rule names
}

type rule struct {
	pkg   string
	level slog.Level
}

// ParseFilter reads a list of packages, separated by commas. An entry such as
// "graph=debug" sets the level of a package and those below it; the longest name that
// fits wins. An entry without a level, "graph", keeps that package at the given level
// and nothing of packages that are not listed. An entry that is a level, "warn", is for
// the packages that are not listed, and so is "loki=warn". Packages are named by their path below
// "internal" or any directories of it that follow each other: "workflow/graph/expr", "graph/expr" and
// "graph" all name the package of expressions, and "loki::graph::expr" is the same as graph/expr.
func ParseFilter(text string, level slog.Level) (Filter, error) {
	f := Filter{rest: level}
	only, general := false, false
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimPrefix(strings.TrimSpace(entry), "loki="); entry == "" {
			continue
		}
		if l, ok := lookupLevel(entry); ok {
			f.rest, general = l, true
			continue
		}
		name, levelText, given := strings.Cut(entry, "=")
		r := rule{pkg: packageName(strings.TrimSpace(name)), level: level}
		if given {
			l, ok := lookupLevel(levelText)
			if !ok {
				return Filter{}, fmt.Errorf("log filter: %q: %q is not one of off, error, warn, info, debug, trace", entry, strings.TrimSpace(levelText))
			}
			r.level = l
		}
		if r.pkg == "" {
			return Filter{}, fmt.Errorf("log filter: %q names no package", entry)
		}
		only = only || !given
		f.rules = append(f.rules, r)
	}
	if only && !general {
		f.rest = LevelOff
	}
	slices.SortStableFunc(f.rules, func(a, b rule) int { return cmp.Compare(len(b.pkg), len(a.pkg)) })
	return f, nil
}

// packageName brings the spellings of a package's name into one.
func packageName(name string) string {
	name = strings.ReplaceAll(name, "::", "/")
	name = strings.TrimPrefix(name, "loki/")
	return strings.Trim(strings.TrimPrefix(name, "internal/"), "/")
}

// level returns the least level that is kept of a package.
func (f Filter) level(pkg string) slog.Level {
	for _, r := range f.rules {
		if strings.Contains("/"+pkg+"/", "/"+r.pkg+"/") {
			return r.level
		}
	}
	return f.rest
}

// least returns the least level that is kept of any package.
func (f Filter) least() slog.Level {
	level := f.rest
	for _, r := range f.rules {
		level = min(level, r.level)
	}
	return level
}
