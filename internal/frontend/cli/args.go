package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// textFlag is the flag whose value is followed by text, whatever it looks like.
const textFlag = "argc-eval"

// expandArgs prepares the command line for pflag, which knows neither flags of two
// values nor the rule that free text ends the options for good: the words from the
// first bare one on are text, whatever they look like. Flags of two values take two
// words, which are joined into one value.
func expandArgs(flags *pflag.FlagSet, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...), nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			return append(append(out, "--"), args[i:]...), nil
		}
		name, pair := strings.CutPrefix(arg, "--")
		if name == textFlag && pair && i+1 < len(args) {
			return append(append(out, arg, args[i+1], "--"), args[i+2:]...), nil
		}
		does := byVerb(name)
		if kind, ok := strings.CutPrefix(name, "list="); ok {
			name, does = "list", byVerb("list")
			args = slices.Insert(slices.Clone(args), i+1, kind)
		}
		if pair && name == "list" {
			if i+1 >= len(args) || does[args[i+1]] == "" {
				return nil, unknownVerb(name, "a kind", args[i+1:])
			}
			i++
			out = append(out, "--"+does[args[i]])
			continue
		}
		if pair = pair && takesTwo(flags.Lookup(name)); pair {
			if len(does) > 0 && (i+1 >= len(args) || does[args[i+1]] == "") {
				return nil, unknownVerb(name, "a verb", args[i+1:])
			}
			if i+2 >= len(args) {
				return nil, fault.New(fault.Usage, "flag --%s needs two values: %s", name, flags.Lookup(name).Value.Type())
			}
			if len(does) > 0 {
				out = append(out, "--"+does[args[i+1]]+"="+args[i+2])
			} else {
				out = append(out, "--"+name, joinPair(args[i+1], args[i+2]))
			}
			i += 2
			continue
		}
		if !strings.HasPrefix(arg, "--") {
			if spelled, ok := optionalShort(flags, arg); ok {
				out = append(out, spelled.before...)
				arg, name = spelled.long, spelled.long[2:]
				if strings.Contains(arg, "=") {
					out = append(out, arg)
					continue
				}
			}
		}
		if f := flags.Lookup(name); f != nil && name != arg && f.NoOptDefVal != "" && f.NoOptDefVal != newWorktree && !isSwitch(f) {
			// A flag with an optional value takes the next word unless it looks like a flag. One with a number takes numbers only.
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && (f.Value.Type() != wholeNumber || isWhole(args[i+1])) {
				i++
				arg += "=" + args[i]
			}
			out = append(out, arg)
			continue
		}
		out = append(out, arg)
		if takesNext(flags, arg) && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out, nil
}

// unknownVerb returns the error that the flag called name has none of its words behind it, but rest.
func unknownVerb(name, what string, rest []string) error {
	hint := "one of " + strings.Join(verbWords(name), ", ")
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return fault.New(fault.Usage, "flag --%s needs %s", name, what).WithHint("%s", hint)
	}
	if lists := name + "s"; rest[0] == "list" && byVerb("list")[lists] != "" {
		hint = fmt.Sprintf("loki --list %s lists them; a verb is %s", lists, hint)
	} else if near := yamldoc.Nearest(rest[0], verbWords(name)); near != "" {
		hint = fmt.Sprintf("did you mean --%s %s? It is %s", name, near, hint)
	}
	return fault.New(fault.Usage, "flag --%s: %q is not %s", name, rest[0], what).WithHint("%s", hint)
}

// spelling is a group of short flags whose last has an optional value.
type spelling struct {
	before []string // the flags in front of it
	long   string   // the last one, with two hyphens, and its value if it has one
}

// optionalShort spells a group of short flags out that ends with one of optional value:
// -s, -s=NAME, -sNAME, -Ss.
func optionalShort(flags *pflag.FlagSet, arg string) (spelling, bool) {
	for i := 1; i < len(arg); i++ {
		f := flags.ShorthandLookup(arg[i : i+1])
		switch {
		case f == nil || f.NoOptDefVal == "":
			return spelling{}, false // unknown, or the rest is its value
		case isSwitch(f):
			continue
		}
		s := spelling{long: "--" + f.Name}
		if i > 1 {
			s.before = []string{arg[:i]}
		}
		if rest := strings.TrimPrefix(arg[i+1:], "="); rest != "" {
			s.long += "=" + rest
		}
		return s, true
	}
	return spelling{}, false
}

// isSwitch reports whether f takes no value at all.
func isSwitch(f *pflag.Flag) bool { return f.Value.Type() == "bool" || f.Value.Type() == "count" }

// takesTwo reports whether f, which may be nil, takes two values.
func takesTwo(f *pflag.Flag) bool {
	if f == nil {
		return false
	}
	_, ok := f.Value.(pairs)
	return ok
}

// takesNext reports whether the value of the last flag in arg is the next word.
func takesNext(flags *pflag.FlagSet, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		f := flags.Lookup(name) // with "=value" in it, it is not found
		return f != nil && f.NoOptDefVal == ""
	}
	for i := 1; i < len(arg); i++ {
		f := flags.ShorthandLookup(arg[i : i+1])
		if f == nil {
			return false
		}
		if f.NoOptDefVal == "" { // takes a value: the rest of arg, if there is any
			return i == len(arg)-1
		}
	}
	return false
}

// optionInText returns the first word of the text behind its first one that is exactly an
// option, "" if there is none or if a -- in args says that the text is meant as it is.
func optionInText(flags *pflag.FlagSet, args, text []string) string {
	if at := len(args) - len(text) - 1; len(text) == 0 || at >= 0 && args[at] == "--" {
		return ""
	}
	for _, word := range text[1:] {
		if name, ok := strings.CutPrefix(word, "--"); ok && flags.Lookup(name) != nil {
			return word
		}
		if len(word) == 2 && word[0] == '-' && flags.ShorthandLookup(word[1:]) != nil {
			return word
		}
	}
	return ""
}

// filesInText returns the words that the text begins with and that are files. A shell has made them of a pattern behind -f.
func filesInText(text []string) []string {
	n := 0
	for n < len(text) {
		if info, err := os.Stat(text[n]); err != nil || !info.Mode().IsRegular() {
			break
		}
		n++
	}
	return text[:n]
}

// once is a flag that may be given once.
type once struct {
	value  *string
	kind   string
	values []string           // the only ones there are, unless check decides; nil for any
	check  func(string) error // may be nil
	given  bool
}

func (o *once) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

// number64 is the value of a flag that is a number.
type number64 struct {
	value **float64
	key   string // of the setting
}

func (n *number64) String() string { return "" }

func (n *number64) Type() string { return "N" }

func (n *number64) Set(v string) error {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || chat.CheckNumber(n.key, x) != nil {
		return errors.New("want " + chat.NumberRange(n.key))
	}
	*n.value = &x
	return nil
}

func (o *once) Type() string { return o.kind }

func (o *once) Set(v string) error {
	if o.given {
		return fmt.Errorf("it was given before")
	}
	if o.values != nil && o.check == nil {
		if err := oneOf(o.values...)(v); err != nil {
			return err
		}
	}
	if o.check != nil {
		if err := o.check(v); err != nil {
			return err
		}
	}
	*o.value, o.given = v, true
	return nil
}

// wholeNumber is what the value of a flag is called that is a whole number.
const wholeNumber = "N"

// isWhole reports whether text is a whole number from 0.
func isWhole(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0
}

// whole accepts a whole number from 0, and what a flag without a value has.
func whole(bare string) func(string) error {
	return func(v string) error {
		if v == bare || isWhole(v) {
			return nil
		}
		return fmt.Errorf("a whole number from 0 is expected, not %q", v)
	}
}

// oneOf accepts only the given values.
func oneOf(values ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(values, v) {
			return nil
		}
		return fmt.Errorf("it is not one of %s", strings.Join(values, ", "))
	}
}

// notEmpty refuses the empty value that an unset variable of a shell leaves behind.
func notEmpty(v string) error {
	if v == "" {
		return fmt.Errorf("it is empty")
	}
	return nil
}

// pairs is a repeatable flag of two values, as expandArgs joins them.
type pairs struct {
	values *[][2]string
	kind   string // what the values are
}

func (p pairs) String() string { return "" }
func (p pairs) Type() string   { return p.kind }

func (p pairs) Set(v string) error {
	n, rest, _ := strings.Cut(v, ":")
	length, err := strconv.Atoi(n)
	if err != nil || length > len(rest) {
		return fmt.Errorf("two words are expected, NAME and VALUE")
	}
	*p.values = append(*p.values, [2]string{rest[:length], rest[length:]})
	return nil
}

// joinPair joins two words so that pairs can separate them, whatever they hold.
func joinPair(name, value string) string {
	return strconv.Itoa(len(name)) + ":" + name + value
}
