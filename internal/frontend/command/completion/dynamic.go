package completion

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"loki/internal/base/fault"
)

// Variable is the environment variable that asks the program to complete. Its value is
// the name of a shell; unset, empty and "0" turn completion off.
const Variable = "COMPLETE"

//go:embed scripts
var scripts embed.FS

// Registration returns the script that has a shell complete with the help of the program.
// The error has the code Usage.
func Registration(s Shell) (string, error) {
	script, err := scripts.ReadFile("scripts/" + string(s))
	if err != nil {
		return "", fault.New(fault.Usage, "%s cannot call a program to complete its options", s).
			WithHint("there is a static script: loki --completions %s", s)
	}
	return string(script), nil
}

// Words returns the words that a registration script of s has passed on, with the quotes
// that some shells leave in them removed.
func Words(s Shell, args []string) []string {
	words := slices.Clone(args)
	switch s {
	case Bash:
		for i, w := range words {
			words[i] = unquote(w)
		}
	case PowerShell:
		// It may drop an empty argument, so its script adds a point to the last one.
		if last := len(words) - 1; last >= 0 {
			words[last] = strings.TrimSuffix(words[last], ".")
		}
	}
	return words
}

// unquote removes the quotes of a POSIX shell from a word, which may be unfinished.
func unquote(word string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && quote != '\'' && i+1 < len(word):
			if next := word[i+1]; quote == '"' && !strings.ContainsRune("\\\"$`", rune(next)) {
				b.WriteByte(c)
				continue
			}
			i++
			b.WriteByte(word[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Print writes candidates for the registration script of s: one a line, and behind a tab
// its description or, for bash, whether it is a file. current is the last word as the
// shell passed it on. A candidate that does not fit into a line is left out.
func Print(w io.Writer, s Shell, current string, candidates []Candidate) error {
	var b strings.Builder
	for _, c := range candidates {
		if strings.ContainsAny(c.Value, "\t\r\n") {
			continue
		}
		value, note := c.Value, oneLine(c.Description)
		if s == Bash {
			note = "word"
			if c.File {
				note = "file"
			} else if current == "" || current[0] != '"' && current[0] != '\'' {
				value = quote(value)
			}
		}
		fmt.Fprintf(&b, "%s\t%s\n", value, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s) }

// quote quotes what a POSIX shell would not take as it is.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(" \"'\\$`&|;<>()*?[]{}~#!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
