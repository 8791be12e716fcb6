package pattern

import (
	"errors"
	"strings"
)

// What may be wrong with a pattern.
var (
	errMany    = errors.New("it has too many alternatives")
	errBracket = errors.New(`a [ without its ] in the same name; \[ is the character itself`)
	errBrace   = errors.New(`a { without its }; \{ is the character itself`)
	errEnd     = errors.New("it ends with a backslash")
)

// expand returns the patterns without braces that text means, in the library's dialect. With both, brackets and braces
// also mean themselves. The library's dialect differs in three points: a bracket that is the first of its class
// must be escaped, a class of other characters has the slash among them, and three stars are two.
func expand(text string, both bool) ([]string, error) {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i+1 == len(text) {
				return nil, errEnd
			}
			plain.WriteString(text[i : i+2])
			i++
		case '}', ']':
			plain.WriteByte('\\')
			plain.WriteByte(c)
		case '*':
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], "*"))
			if i += run - 1; run == 2 {
				plain.WriteByte('*')
			}
			plain.WriteByte('*')
		case '[', '{':
			group := group
			if c == '[' {
				group = class
			}
			length, choices, err := group(text[i:], both)
			if err != nil {
				return nil, err
			}
			after, err := expand(text[i+length:], both)
			if err != nil {
				return nil, err
			}
			return product(plain.String(), choices, after)
		default:
			plain.WriteByte(c)
		}
	}
	return []string{plain.String()}, nil
}

// product returns all texts of before, a choice and what follows.
func product(before string, choices, after []string) ([]string, error) {
	if len(choices)*len(after) > maxBranches {
		return nil, errMany
	}
	var all []string
	for _, choice := range choices {
		for _, rest := range after {
			all = append(all, before+choice+rest)
		}
	}
	return all, nil
}

// class returns the length of the class that text begins with, and what it means.
func class(text string, both bool) (length int, choices []string, err error) {
	end := classEnd(text)
	if end < 0 {
		return 0, nil, errBracket
	}
	choices = []string{translateClass(text[1:end])}
	if both {
		choices = append(choices, escape(text[:end+1], special))
	}
	return end + 1, choices, nil
}

// classEnd returns the index of the bracket that closes the class at the start of text, -1
// if there is none in the same name.
func classEnd(text string) int {
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i++
	}
	for first := i; i < len(text) && text[i] != '/'; i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == ']' && i > first:
			return i
		}
	}
	return -1
}

// translateClass returns the class whose content, without the brackets, is inner.
func translateClass(inner string) string {
	start := "["
	if inner[0] == '!' || inner[0] == '^' {
		start, inner = "[!/", inner[1:]
	}
	if inner[0] == ']' {
		start += `\`
	}
	return start + inner + "]"
}

// group returns the length of the group of alternatives that text begins with, and what they mean.
func group(text string, both bool) (length int, choices []string, err error) {
	commas, shut := alternatives(text)
	if shut < 0 {
		return 0, nil, errBrace
	}
	from := 1
	for _, at := range append(commas, shut) {
		inner, err := expand(text[from:at], both)
		if err != nil {
			return 0, nil, err
		}
		if choices = append(choices, inner...); len(choices) > maxBranches {
			return 0, nil, errMany
		}
		from = at + 1
	}
	if both {
		inner, err := expand(text[1:shut], true)
		if err != nil {
			return 0, nil, err
		}
		for _, one := range inner {
			choices = append(choices, `\{`+one+`\}`)
		}
	}
	return shut + 1, choices, nil
}

// alternatives returns where the commas of the group at the start of text are, and the brace that
// closes it, -1 if none does.
func alternatives(text string) (commas []int, shut int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if end := classEnd(text[i:]); end > 0 {
				i += end
			}
		case '{':
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return commas, i
			}
		}
	}
	return nil, -1
}

// clean returns a pattern without braces that has no empty names, none that is a dot, and no slash at its end.
func clean(text string) string {
	names := strings.Split(text, "/")
	kept := names[:0]
	for i, name := range names {
		if name != "" && name != "." && name != `\.` || i == 0 && name == "" && len(names) > 1 {
			kept = append(kept, name)
		}
	}
	if len(kept) == 1 && kept[0] == "" {
		return "/"
	}
	return strings.Join(kept, "/")
}
