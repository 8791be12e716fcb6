package logging

import (
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Line is a line of the log, taken apart.
type Line struct {
	Time    time.Time // UTC, to the millisecond
	Thread  string
	Level   slog.Level
	File    string // path of the source file, such as graph/node/llm.go
	Line    int
	Message string // with the attributes
}

// Parse takes a line apart that a logger of [Open] wrote, given without its line feed.
// ok is false for anything else, such as what a child process wrote into the file.
func Parse(text string) (l Line, ok bool) {
	if len(text) <= len(timeFormat) {
		return Line{}, false
	}
	stamp, rest := text[:len(timeFormat)], text[len(timeFormat):]
	var err error
	l.Time, err = time.ParseInLocation(timeFormat, stamp, time.UTC)
	if err != nil || l.Time.Format(timeFormat) != stamp { // time takes a comma for the point too
		return Line{}, false
	}
	if rest, ok = strings.CutPrefix(rest, " <"); !ok {
		return Line{}, false
	}
	if l.Thread, rest, ok = strings.Cut(rest, "> ["); !ok || l.Thread == "" {
		return Line{}, false
	}
	level, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return Line{}, false
	}
	if l.Level, ok = lookupLevel(level); !ok || levelName(l.Level) != level {
		return Line{}, false
	}
	place, message, ok := strings.Cut(rest, " - ")
	if !ok {
		return Line{}, false
	}
	file, number, ok := strings.Cut(place, ":")
	if !ok || file == "" {
		return Line{}, false
	}
	if l.Line, err = strconv.Atoi(number); err != nil || l.Line < 0 || strconv.Itoa(l.Line) != number {
		return Line{}, false
	}
	l.File, l.Message = file, message
	return l, true
}
