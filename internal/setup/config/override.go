package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"loki/internal/base/fault"
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
		wrap, err := parseWrap(text)
		if err != nil {
			return unusable{err.Error(), true}
		}
		*field = wrap
		return nil
	case **bool:
		*field = nil
		if b, err := parseBool(text); err == nil {
			*field = &b
		}
		return nil
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
	case *graph.Durability:
		return set(field, text, parseDurability)
	case *Instruct:
		return set(field, text, parseInstruct)
	case *InstructionBytes:
		return set(field, text, parseInstructionBytes)
	case *SkillTokens:
		return set(field, text, parseSkillTokens)
	case *MemoryTokens:
		return set(field, text, parseMemoryTokens)
	case *chat.Memory:
		return set(field, text, chat.ParseMemory)
	case *Notify:
		return set(field, text, parseNotify)
	case *Keybindings:
		return set(field, text, parseKeybindings)
	case *provider.Effort:
		if text == none {
			*field = ""
			return nil
		}
		return set(field, text, parseEffort)
	}
	panic(fmt.Sprintf("config: no rule for a setting of type %T", field))
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

func parseDurability(text string) (graph.Durability, error) {
	switch d := graph.Durability(text); d {
	case graph.DurabilityProcess, graph.DurabilityPower, graph.DurabilityOff:
		return d, nil
	}
	return "", fmt.Errorf("want %s, %s or %s, not %q", graph.DurabilityProcess, graph.DurabilityPower, graph.DurabilityOff, text)
}

func parseNotify(text string) (Notify, error) {
	switch n := Notify(text); n {
	case NotifyOff, NotifyQuestions, NotifyAll:
		return n, nil
	case "true": // as older versions have it
		return NotifyAll, nil
	case "false":
		return NotifyOff, nil
	}
	return "", fmt.Errorf("want %s, %s or %s, not %q", NotifyOff, NotifyQuestions, NotifyAll, text)
}

func parseKeybindings(text string) (Keybindings, error) {
	switch k := Keybindings(text); k {
	case Emacs, Vi:
		return k, nil
	}
	return "", fmt.Errorf("want %s or %s, not %q", Emacs, Vi, text)
}
