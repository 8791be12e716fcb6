package bashdecl

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"loki/internal/argc"
	"loki/internal/value"
)

// Args returns the words behind the script's name that make a call with the given
// arguments, which are a JSON object:
//
//	"key": "text"       --key=text; numbers likewise
//	"key": [a, b]       --key=a --key=b; nothing if it is empty
//	"key": true         --key if it is a flag, else --key=true; nothing for false of a flag
//	"key": null         --key=null
//	"key": {...}        --key={...}, compact
//
// Where an option takes an <INT> or a <NUM>, the value has to be one, as a number or as
// text, and null is as good as no value: bash would evaluate any other text in arithmetic.
//
// A declared key stands for the option that it was made of, any other one for "--" and
// the key with "-" in place of "_", which the script then refuses. The word of a
// subcommand comes first. Every text arrives as it is, except that a NUL, which no command
// line can hold, is an error. Errors are worded for the model.
func (f Function) Args(arguments json.RawMessage) ([]string, error) {
	doc, err := value.ParseJSON(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	object := doc.AsObject()
	if object == nil {
		return nil, fmt.Errorf("the arguments have to be a JSON object, not %s", doc.Kind())
	}
	words := []string{}
	if f.Subcommand != "" {
		words = append(words, f.Subcommand)
	}
	for key, v := range object.All() {
		if strings.Contains(key, "=") { // it would come with a value of its own
			return nil, fmt.Errorf("there is no argument %q", key)
		}
		key = underscored(key)
		if wants := f.number(key); wants != "" {
			if v.Kind() == value.Null {
				continue
			}
			if err := checkNumbers(key, wants, v); err != nil {
				return nil, err
			}
		}
		words = append(words, f.words(key, v)...)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, errors.New("a NUL character cannot be passed to a bash tool; leave it out")
		}
	}
	return words, nil
}

// number returns whether the values of an option have to be of type integer or number,
// "" for neither.
func (f Function) number(key string) string {
	p := f.options[key]
	switch {
	case p == nil || p.Kind == argc.Flag:
	case p.Labels[0] == "INT":
		return "integer"
	case p.Labels[0] == "NUM":
		return "number"
	}
	return ""
}

var (
	integerText = regexp.MustCompile(`^[+-]?[0-9]{1,19}$`)
	numberText  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// checkNumbers checks one member of the arguments, each element of it if it is a list.
func checkNumbers(key, wants string, v value.Value) error {
	list, ok := v.AsList()
	if !ok {
		one := value.ListOf(v)
		list = one
	}
	for _, item := range list.All() {
		s := item.Text()
		f, isFloat := item.AsFloat()
		good := numberText.MatchString(s)
		if wants == "integer" {
			good = integerText.MatchString(s) || item.Kind() == value.Float && isFloat && f == float64(int64(f))
		}
		if !good {
			return fmt.Errorf("argument %q has to be of type %s, not %s. The tool was not run", key, wants, item.AppendJSON(nil))
		}
	}
	return nil
}

// words returns what one member of the arguments becomes.
func (f Function) words(key string, v value.Value) []string {
	p := f.options[key]
	name := "--" + strings.ReplaceAll(key, "_", "-")
	flag := p == nil
	if p != nil {
		name, flag = p.Switch(), p.Kind == argc.Flag
	}
	with := "="
	if p != nil && p.Prefixed {
		with = ""
	}
	if b, ok := v.AsBool(); ok && flag {
		if b {
			return []string{name}
		}
		return nil
	}
	if list, ok := v.AsList(); ok {
		words := make([]string, 0, list.Len())
		for _, item := range list.All() {
			words = append(words, name+with+text(p, item))
		}
		return words
	}
	return []string{name + with + text(p, v)}
}

// text returns a JSON value as a script gets it.
func text(p *argc.Param, v value.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	// Models write 5.0 where 5 is meant, which arithmetic in bash does not take.
	if n, ok := v.AsFloat(); ok && p != nil && kind(p) == "integer" && n == float64(int64(n)) && v.Kind() == value.Float {
		return fmt.Sprint(int64(n))
	}
	return string(v.AppendJSON(nil))
}
