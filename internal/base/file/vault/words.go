package vault

import (
	"errors"
	"strings"
)

// splitCommand splits a command line into the program and its arguments: words between
// blanks. In double quotes and outside of quotes a backslash makes the next character an
// ordinary one if that is a quote, a backslash or a blank, and otherwise is one itself, so
// that Windows paths can be written as they are. In single quotes everything is as it
// stands.
func splitCommand(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		begun bool // there is a word, perhaps an empty one in quotes
		quote rune // the open one, or 0
	)
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == '\\' && quote != '\'' && i+1 < len(runes) && strings.ContainsRune(`"'\ `, runes[i+1]):
			i++
			word.WriteRune(runes[i])
			begun = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quotation mark is not closed")
	case len(words) == 0 || words[0] == "":
		return nil, errors.New("it names no program")
	}
	return words, nil
}
