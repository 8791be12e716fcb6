package completion

import (
	"strings"
)

// Candidate is what may replace the current word.
type Candidate struct {
	Value       string
	Description string // one line, may be empty
	File        bool   // Value is a path; that of a directory ends in a separator
}

// Source lists the values a flag may have. It may leave out values that do not begin with prefix.
// given holds the values of the flags in front, by name.
type Source func(prefix string, given map[string]string) []Candidate

// Complete returns the candidates for the last of words, which is the current one. They
// begin with it. sources are by what the value of a flag is called ([Flag.Arg]); those
// for FILE and PATH are here already.
//
// Behind the first word of the text there are none: it is text, whatever it looks like.
func Complete(flags []Flag, words []string, sources map[string]Source) []Candidate {
	if len(words) == 0 {
		return nil
	}
	c := completer{flags: flags, sources: sources, given: make(map[string]string)}
	last := len(words) - 1
	for i := 0; i < last; {
		flag, rest, ok := c.read(words[i])
		if !ok {
			return nil // the text has begun
		}
		i++
		switch {
		case flag == nil:
		case rest != nil:
			c.given[flag.Name] = *rest
		case flag.Optional:
			if i == last && !strings.HasPrefix(words[i], "-") {
				return c.values(*flag, "", words[i])
			}
			if i < last && !strings.HasPrefix(words[i], "-") {
				c.given[flag.Name] = words[i]
				i++
			}
		default:
			if i+flag.Words > last {
				delete(c.given, flag.Name)
				if i < last {
					c.given[flag.Name] = words[i]
				}
				return c.values(*flag, "", words[last])
			}
			if flag.Words > 0 {
				c.given[flag.Name] = words[i]
			}
			i += flag.Words
		}
	}
	return c.current(words[last])
}

type completer struct {
	flags   []Flag
	sources map[string]Source
	given   map[string]string
}

// read returns the flag whose value a word asks for, nil if there is none, and that
// value if it is in the same word. ok is false for a word that begins the text.
func (c *completer) read(word string) (flag *Flag, value *string, ok bool) {
	switch {
	case word == "--" || len(word) < 2 || word[0] != '-':
		return nil, nil, false
	case strings.HasPrefix(word, "--"):
		name, value, joined := strings.Cut(word[2:], "=")
		f := c.find(func(f Flag) bool { return f.Name == name })
		if joined {
			return f, &value, true
		}
		return f, nil, true
	}
	for i := 1; i < len(word); i++ {
		f := c.short(word[i])
		switch {
		case f == nil:
			return nil, nil, true
		case f.Arg != "":
			if rest := strings.TrimPrefix(word[i+1:], "="); rest != "" {
				return f, &rest, true
			}
			return f, nil, true
		}
	}
	return nil, nil, true
}

func (c *completer) find(is func(Flag) bool) *Flag {
	for i := range c.flags {
		if is(c.flags[i]) {
			return &c.flags[i]
		}
	}
	return nil
}

func (c *completer) short(letter byte) *Flag {
	return c.find(func(f Flag) bool { return f.Short == string(letter) })
}

// current completes a word that is not the separate value of a flag.
func (c *completer) current(word string) []Candidate {
	flag, value, ok := c.read(word)
	switch {
	case ok && flag != nil && value != nil:
		return c.values(*flag, strings.TrimSuffix(word, *value), *value)
	case word != "" && !strings.HasPrefix(word, "-"):
		return nil
	}
	var found []Candidate
	for _, f := range c.flags {
		if long := "--" + f.Name; !f.Hidden && strings.HasPrefix(long, word) {
			found = append(found, Candidate{Value: long, Description: f.Usage})
		}
	}
	for _, f := range c.flags {
		if f.Short != "" && word != "" && strings.HasPrefix("-"+f.Short, word) {
			found = append(found, Candidate{Value: "-" + f.Short, Description: f.Usage})
		}
	}
	return found
}

// values completes the value of a flag; before is what precedes it in the same word.
func (c *completer) values(f Flag, before, prefix string) []Candidate {
	var all []Candidate
	for _, v := range f.Values {
		all = append(all, Candidate{Value: v})
	}
	switch source := c.sources[f.Arg]; {
	case source != nil:
		all = append(all, source(prefix, c.given)...)
	case f.isFile():
		all = append(all, Files(prefix, false)...)
	}
	var found []Candidate
	for _, candidate := range all {
		if strings.HasPrefix(candidate.Value, prefix) {
			candidate.Value = before + candidate.Value
			found = append(found, candidate)
		}
	}
	return found
}
