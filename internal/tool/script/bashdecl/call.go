package bashdecl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/signature"
)

// Args returns the words of the command line, after the script's name, for the
// given arguments, a JSON object:
//
//	"key": "text"       --key=text; numbers likewise
//	"key": [a, b]       --key=a --key=b; nothing if it is empty
//	"key": true         --key if it is a flag, else --key=true; nothing for false of a flag
//	"key": null         --key=null
//	"key": {...}        --key={...}, compact
//
// The value of an option with an <INT> or a <NUM> must be such a number, as a number or as text,
// and null counts as no value: bash would evaluate any other text in arithmetic.
//
// A declared key means its option. Any other key becomes "--" and the key with "-" in
// place of "_", which the script then refuses. The word of a subcommand comes first. Every
// text is passed unchanged, except that a NUL, which no command line can hold, is an
// error. The texts of errors are for the model.
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
		if strings.Contains(key, "=") { // the key would bring its own value
			return nil, fmt.Errorf("the tool has no argument %q", key)
		}
		key = propertyName(key)
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
func (f Function) number(key string) signature.Kind {
	p := f.options[key]
	if p == nil || p.Kind == argc.Flag {
		return ""
	}
	return numeric(p, "")
}

var (
	integerText = text.Regexp(`^[+-]?[0-9]{1,19}$`)
	numberText  = text.Regexp(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// checkNumbers checks one member of the arguments, each element of it if it is a list.
func checkNumbers(key string, wants signature.Kind, v value.Value) error {
	list, ok := v.AsList()
	if !ok {
		list = value.ListOf(v)
	}
	for _, item := range list.All() {
		s := item.Text()
		f, isFloat := item.AsFloat()
		good := numberText().MatchString(s)
		if wants == signature.Integer {
			good = integerText().MatchString(s) || item.Kind() == value.Float && isFloat && f == float64(int64(f))
		}
		if !good {
			return fmt.Errorf("argument %q must be of type %s, not %s. The tool was not run", key, wants, item.AppendJSON(nil))
		}
	}
	return nil
}

// words returns the words for one member of the arguments.
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
			words = append(words, name+with+textOf(p, item))
		}
		return words
	}
	return []string{name + with + textOf(p, v)}
}

// textOf returns a JSON value in the form that a script gets.
func textOf(p *argc.Param, v value.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	// Models write 5.0 for 5, which arithmetic in bash does not accept.
	if n, ok := v.AsFloat(); ok && p != nil && kind(p) == signature.Integer && n == float64(int64(n)) && v.Kind() == value.Float {
		return fmt.Sprint(int64(n))
	}
	return string(v.AppendJSON(nil))
}
