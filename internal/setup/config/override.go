package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
)

// override puts the settings of env over those of c. A value that a setting cannot
// hold is skipped with a warning, except for a wrong width, which is an error.
func (c *Config) override(env Env) (warnings []string, err error) {
	for _, k := range keys {
		text, ok := env.Lookup(k.variable())
		if !k.env || !ok {
			continue
		}
		before := *c
		err := setFromText(k.field(c), text)
		if key, problem := c.knowledgeProblem(); key == k.name {
			*c, err = before, errors.New(problem)
		}
		if number, ok := k.field(c).(**float64); ok && *number != nil && err == nil {
			if err = chat.CheckNumber(k.name, **number); err != nil {
				*c = before
			}
		}
		if k.name == "model" {
			c.modelFrom = k.variable()
		}
		if wrong, ok := errors.AsType[unusable](err); ok && wrong.fatal {
			return warnings, fault.Wrap(fault.Config, err, "environment variable %s", k.variable()).
				WithHint("set %s to a value it can have, or unset it", k.variable())
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is ignored: %v", k.variable(), err))
		}
	}
	return warnings, nil
}

// unusable is a text from the environment that a setting cannot hold.
type unusable struct {
	msg   string
	fatal bool
}

func (u unusable) Error() string { return u.msg }

// none is the text that unsets an optional setting.
const none = "null"

// setFromText sets field, a pointer to a field of [Config], to what text says. An
// empty text says something only where any string may stand.
func setFromText(field any, text string) error {
	switch field := field.(type) {
	case *string:
		*field = text
		return nil
	case **string:
		return setOptional(field, text, func(s string) (string, error) { return s, nil })
	case *Wrap:
		if text == none {
			text = "no"
		}
		if err := setter(field)(text); err != nil {
			return unusable{err.Error(), true}
		}
		return nil
	case **bool:
		if text == "" || text == "ask" { // the latter is what being unset means
			text = none
		}
		return setOptional(field, text, parseBool)
	}
	if text == "" {
		return nil
	}
	switch field := field.(type) {
	case **float64:
		return setOptional(field, text, parseFloat)
	case **int:
		return setOptional(field, text, parseUint)
	case *int:
		return set(field, text, parseUint)
	case *bool:
		return set(field, text, parseBool)
	case *Mapping:
		return set(field, text, parseMapping)
	case *Dirs:
		*field = filepath.SplitList(text)
		return nil
	case *provider.Effort:
		if text == none {
			*field = ""
			return nil
		}
	}
	if set := setter(field); set != nil {
		return set(text)
	}
	panic(fmt.Sprintf("config: no rule for a setting of type %T", field))
}

// setter returns what sets field to what a text says, in the file as in the environment: a word of a few, or a number that has bounds. It
// is nil for fields of other types.
func setter(field any) func(text string) error {
	switch field := field.(type) {
	case *Wrap:
		return parseInto(field, parseWrap)
	case *Instruct:
		return parseInto(field, withBool(InstructAuto, InstructOff, oneOf(InstructAuto, InstructAlways, InstructOff)))
	case *InstructionBytes:
		return parseInto(field, upTo[InstructionBytes](1<<20, "bytes"))
	case *SkillTokens:
		return parseInto(field, upTo[SkillTokens](20000, "tokens"))
	case *MemoryTokens:
		return parseInto(field, upTo[MemoryTokens](8000, "tokens"))
	case *chat.Memory:
		return parseInto(field, chat.ParseMemory)
	case *Notify:
		return parseInto(field, withBool(NotifyAll, NotifyOff, oneOf(NotifyOff, NotifyQuestions, NotifyAll)))
	case *Keybindings:
		return parseInto(field, oneOf(Emacs, Vi))
	case *graph.Durability:
		return parseInto(field, oneOf(graph.DurabilityProcess, graph.DurabilityPower, graph.DurabilityOff))
	case *provider.Effort:
		return parseInto(field, parseEffort)
	}
	return nil
}

func parseInto[T any](field *T, parse func(string) (T, error)) func(text string) error {
	return func(text string) error { return set(field, text, parse) }
}

// oneOf returns a parser of some words.
func oneOf[T ~string](words ...T) func(text string) (T, error) {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return func(word string) (T, error) {
		if slices.Contains(list, word) {
			return T(word), nil
		}
		return "", fmt.Errorf("want %s, not %q", text.Or(list), word)
	}
}

// withBool makes a parser take true and false, too, as related programs and older versions have it.
func withBool[T any](yes, no T, parse func(string) (T, error)) func(text string) (T, error) {
	return func(text string) (T, error) {
		switch text {
		case "true":
			return yes, nil
		case "false":
			return no, nil
		}
		return parse(text)
	}
}

// upTo returns a parser of numbers from 0 to most.
func upTo[T ~int](most uint64, unit string) func(text string) (T, error) {
	return func(text string) (T, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n > most {
			return 0, fmt.Errorf("want a number of %s from 0 to %d, not %q", unit, most, text)
		}
		return T(n), nil
	}
}

func set[T any](field *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*field = v
	}
	return err
}

func setOptional[T any](field **T, text string, parse func(string) (T, error)) error {
	if text == none {
		*field = nil
		return nil
	}
	v, err := parse(text)
	if err == nil {
		*field = &v
	}
	return err
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("want true or false, not %q", text)
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("want a number, not %q", text)
	}
	return f, nil
}

func parseUint(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, strconv.IntSize-1)
	if err != nil {
		return 0, fmt.Errorf("want a whole number from 0 up, not %q", text)
	}
	return int(n), nil
}

func parseMapping(text string) (Mapping, error) {
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if v.Kind() != value.ObjectKind {
		return nil, fmt.Errorf("want a JSON object, not a JSON %s", v.Kind())
	}
	mapping := Mapping{}
	for name, member := range v.AsObject().All() {
		s, ok := member.AsString()
		if !ok {
			return nil, fmt.Errorf("want strings in the JSON object, not a JSON %s under %q", member.Kind(), name)
		}
		mapping = append(mapping, Entry{name, s})
	}
	return mapping, nil
}

func parseEffort(text string) (provider.Effort, error) {
	if e := provider.Effort(text); e.Valid() {
		return e, nil
	}
	return "", fmt.Errorf("want one of %s, not %q", provider.EffortNames(), text)
}
