package session

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// Alias is a name that users give a session, unique in its scope. It is the name of a
// file too, and therefore valid on every system. The empty alias means no alias.
type Alias string

// TempName is the name of a session without an alias. It is not an alias itself.
const TempName = "temp"

// ParseAlias checks a name. Sessions that older versions saved by themselves were
// called "_/name"; that prefix is dropped. An impossible name is an error with
// code Usage.
func ParseAlias(name string) (Alias, error) {
	name = strings.TrimPrefix(name, "_/")
	if why := invalid(name); why != "" {
		return "", fault.New(fault.Usage, "%q cannot be the name of a session: %s", name, why)
	}
	return Alias(name), nil
}

// LegalAlias returns the alias of a session that an older version gave a name, which may
// be one that is no longer allowed. An allowed name stays as it is.
func LegalAlias(name string) Alias {
	if alias, err := ParseAlias(name); err == nil {
		return alias
	}
	legal := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || unprintable(r) {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(name, "-"))
	legal = strings.TrimFunc(legal, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	for len(legal) > text.MaxFileName-len("session-") {
		_, size := utf8.DecodeLastRuneInString(legal)
		legal = legal[:len(legal)-size]
	}
	if legal = strings.TrimRight(legal, ". "); invalid(legal) != "" { // a name that means something else
		legal = strings.TrimRightFunc("session-"+legal, func(r rune) bool { return r == '-' || unicode.IsSpace(r) })
	}
	return Alias(legal)
}

// invalid returns why an alias is invalid, "" if it is valid.
func invalid(name string) string {
	switch {
	case name == TempName:
		return "sessions without a name are called so"
	case isUUID(name):
		return "it looks like an id"
	}
	if why := text.FileNameFault(name); why != "" {
		return why
	}
	if i := strings.IndexFunc(name, unprintable); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		return fmt.Sprintf("it contains %U, which cannot be printed", r)
	}
	return ""
}

// unprintable reports whether r cannot be in an alias: it is a control character, a separator of lines, or no character. Spaces
// of all widths can, and so can the joiners of emoji and of Persian.
func unprintable(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && !unicode.Is(unicode.Join_Control, r)
}

// stampLayout is the time in the alias of a session that is saved without a
// name.
const stampLayout = "20060102T150405"

// stamp returns the alias of a temporary session, with its title if it has one. Others of the same second end in -2, -3 and so on.
func stamp(t time.Time, title string) Alias {
	s := t.Local().Format(stampLayout)
	if title != "" {
		s += "-" + title
	}
	return Alias(s)
}

// AutoSaved reports whether a is an alias that Loki made, from the time and perhaps a
// title: "20250101T120000" or "20250101T120000-garden-plans".
func (a Alias) AutoSaved() bool {
	_, ok := a.Title()
	return ok
}

// Title returns what follows the time in an alias that Loki made; ok is false for
// other aliases.
func (a Alias) Title() (title string, ok bool) {
	head, title, _ := strings.Cut(string(a), "-")
	if _, err := time.Parse(stampLayout, head); err != nil {
		return "", false
	}
	return title, true
}
