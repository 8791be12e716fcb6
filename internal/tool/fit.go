package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
)

// Fitter is a tool that brings the arguments of its calls into the declared types itself. For other tools the [Box] does
// what [Fit] does with the declaration.
type Fitter interface {
	// Fit returns the arguments as the tool takes them. The error is worded for the model.
	Fit(args json.RawMessage) (json.RawMessage, error)
}

// fit returns the arguments of a call of t as t takes them.
func fit(t Tool, declared chat.Tool, args json.RawMessage) (json.RawMessage, error) {
	if own, ok := t.(Fitter); ok {
		return own.Fit(args)
	}
	return Fit(declared.Parameters, args, FitOptions{})
}

// FitOptions say how [Fit] reads a declaration. The zero value is for most tools.
type FitOptions struct {
	// Known makes an argument that is not declared an error, and keeps null for optional ones: the tool
	// knows which of them can be null.
	Known bool
	// Words says that the tool takes words of a command line: one value may be given for a list, and a number, a boolean or
	// an object is written as JSON where a text is declared.
	Words bool
}

// Fit returns arguments, a JSON object, in the types that parameters, a JSON Schema, declares. Texts become numbers,
// booleans, lists and objects where nothing is lost. null for a member that need not
// be there and cannot be null is left out, since models write it where they mean nothing. Anything else that has another
// type than declared is an error, and so are missing members; an empty text is not missing. Parts of the schema that
// Fit does not understand allow everything.
func Fit(parameters, arguments json.RawMessage, o FitOptions) (json.RawMessage, error) {
	form, err := value.ParseJSON(parameters)
	if err != nil || form.Kind() != value.ObjectKind {
		return arguments, nil
	}
	args, err := value.ParseJSON(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	f := fitter{o: o, root: form}
	fitted := f.fit(form, args, arguments, "", 0)
	if o.Known {
		f.reportUndeclared(form, args)
	}
	switch {
	case len(f.wrong) > 0:
		return nil, fmt.Errorf("%s", strings.Join(f.wrong[:min(len(f.wrong), schema.MaxViolations)], "; "))
	case !f.changed:
		return arguments, nil
	}
	return fitted.AppendJSON(nil), nil
}

type fitter struct {
	o       FitOptions
	root    value.Value
	changed bool
	wrong   []string
}

// try runs f on a copy and reports whether it found nothing wrong.
func (f *fitter) try(s, v value.Value, raw json.RawMessage, path string, depth int) (value.Value, fitter) {
	g := fitter{o: f.o, root: f.root}
	v = g.fit(s, v, raw, path, depth)
	return v, g
}

func (f *fitter) fail(path, format string, args ...any) {
	f.wrong = append(f.wrong, argumentName(path)+" "+fmt.Sprintf(format, args...))
}

// argumentName returns how a message names an argument.
func argumentName(path string) string {
	if path == "" {
		return "the arguments"
	}
	return fmt.Sprintf("argument %q", path)
}

// maxFitDepth is how deep a schema is followed, since it may refer to itself.
const maxFitDepth = 64

// fit returns v, whose JSON is raw, in the types of s.
func (f *fitter) fit(s, v value.Value, raw json.RawMessage, path string, depth int) value.Value {
	o := s.AsObject()
	if nullable, _ := o.Get("nullable"); o == nil || depth > maxFitDepth || v.IsNull() && value.Equal(nullable, value.Of(true)) {
		return v
	}
	if ref, ok := o.Get("$ref"); ok {
		name, _ := ref.AsString()
		return f.fit(f.resolve(name), v, raw, path, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if forms, ok := o.Get(keyword); ok {
			v = f.either(forms, v, raw, path, depth+1)
		}
	}
	if forms, ok := o.Get("allOf"); ok {
		for _, form := range items(forms) {
			v = f.fit(form, v, raw, path, depth+1)
		}
	}
	if allowed, ok := o.Get("enum"); ok {
		return f.fitEnum(items(allowed), v, path)
	}
	v, ok := f.fitType(o, v, raw, path)
	if !ok {
		return v
	}
	if list, isList := v.AsList(); isList {
		return f.list(o, list, raw, path, depth)
	}
	if v.AsObject() != nil || v.Kind() == value.ObjectKind {
		return f.object(o, v, raw, path, depth)
	}
	return v
}

// resolve returns what a reference within the schema refers to; null, which allows everything, for others.
func (f *fitter) resolve(ref string) value.Value {
	rest, ok := strings.CutPrefix(ref, "#")
	v := f.root
	for _, name := range strings.Split(strings.TrimPrefix(rest, "/"), "/") {
		if name != "" {
			v, _ = v.AsObject().Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
	}
	if !ok {
		return value.Value{}
	}
	return v
}

// either returns v as the first form that it fits as it is, else as the first that it can be brought into.
func (f *fitter) either(forms, v value.Value, raw json.RawMessage, path string, depth int) value.Value {
	var fitted *value.Value
	var wrong []string
	for _, form := range items(forms) {
		w, g := f.try(form, v, raw, path, depth)
		switch {
		case len(g.wrong) > 0:
			wrong = append(wrong, g.wrong[0])
		case !g.changed:
			return v
		case fitted == nil:
			fitted = &w
		}
	}
	switch {
	case fitted != nil:
		f.changed = true
		return *fitted
	case len(wrong) > 0:
		// A form that has the right type at the top is the one that is meant.
		another := func(why string) bool { return strings.HasPrefix(why, argumentName(path)+" must be ") }
		if meant := slices.DeleteFunc(slices.Clone(wrong), another); len(meant) > 0 {
			wrong = meant
		}
		f.wrong = append(f.wrong, strings.Join(wrong, ", or "))
	}
	return v
}

// fitType returns v in one of the types of a schema.
func (f *fitter) fitType(o *value.Object, v value.Value, raw json.RawMessage, path string) (value.Value, bool) {
	declared, ok := o.Get("type")
	if !ok {
		return v, true
	}
	types := items(declared)
	if declared.Kind() == value.String {
		types = []value.Value{declared}
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i], _ = t.AsString()
		switch names[i] {
		case "null", "boolean", "integer", "number", "string", "array", "object":
		default:
			return v, true // no type of JSON
		}
		if isOf(v, names[i]) {
			if n, isFloat := v.AsFloat(); names[i] == "integer" && isFloat && v.Kind() == value.Float && len(names) == 1 && math.Abs(n) < 1<<53 {
				f.changed = true
				return value.Of(int64(n)), true // 5.0, which not every language takes for 5
			}
			return v, true
		}
	}
	for _, name := range names {
		if w, ok := f.convert(v, name, raw); ok {
			f.changed = f.changed || !value.Equal(v, w)
			return w, true
		}
	}
	f.fail(path, "must be of type %s, not %s", strings.Join(names, " or "), describeValue(v))
	return v, false
}

func isOf(v value.Value, name string) bool {
	switch v.Kind() {
	case value.Null:
		return name == "null"
	case value.Bool:
		return name == "boolean"
	case value.String:
		return name == "string"
	case value.ListKind:
		return name == "array"
	case value.ObjectKind:
		return name == "object"
	case value.Float:
		n, _ := v.AsFloat()
		return name == "number" || name == "integer" && n == math.Trunc(n)
	}
	return name == "number" || name == "integer"
}

// convert returns v, which is of another type, as one of the type called name, if nothing is lost.
func (f *fitter) convert(v value.Value, name string, raw json.RawMessage) (value.Value, bool) {
	if name == "string" {
		var compact bytes.Buffer
		isWord := f.o.Words && v.Kind() != value.Null && v.Kind() != value.ListKind && json.Compact(&compact, raw) == nil
		return value.Of(compact.String()), isWord
	}
	said, isText := v.AsString()
	if name == "array" && f.o.Words && (isText || v.Kind() == value.Int || v.Kind() == value.Float) {
		return v, true
	}
	if !isText {
		return v, false
	}
	parsed, err := value.ParseJSON([]byte(said))
	if err != nil || parsed.Kind() == value.String || !isOf(parsed, name) {
		return v, false
	}
	if parsed.Kind() == value.Float && (name == "integer" || strings.Trim(said, "-0123456789") == "") {
		return v, false // it would be rounded, or is written as no integer is
	}
	return parsed, name != "null"
}

// fitEnum returns v as one of the allowed values.
func (f *fitter) fitEnum(allowed []value.Value, v value.Value, path string) value.Value {
	list := make([]string, len(allowed))
	for i, a := range allowed {
		if value.Equal(a, v) {
			return v
		}
		list[i] = a.String()
	}
	for _, a := range allowed {
		if same := a.Text() == v.Text() || a.Kind() == value.Bool && strings.EqualFold(a.Text(), v.Text()); same && v.Kind() != value.ListKind && v.Kind() != value.ObjectKind {
			f.changed = true
			return a
		}
	}
	f.fail(path, "must be one of %s, not %s", text.Cut(strings.Join(list, ", "), 500), describeValue(v))
	return v
}

func (f *fitter) list(o *value.Object, list value.List, raw json.RawMessage, path string, depth int) value.Value {
	form, _ := o.Get("items")
	prefix, _ := o.Get("prefixItems")
	heads := items(prefix)
	if len(heads) > 0 {
		f.length(o, list.Len(), path)
	}
	var raws []json.RawMessage
	_ = json.Unmarshal(raw, &raws) // of a list that was a text there are none
	fitted := make([]value.Value, 0, list.Len())
	for i, item := range list.All() {
		var own json.RawMessage
		if i < len(raws) {
			own = raws[i]
		}
		of := form
		if i < len(heads) {
			of = heads[i]
		}
		fitted = append(fitted, f.fit(of, item, own, fmt.Sprintf("%s[%d]", path, i), depth+1))
	}
	return value.ListOf(fitted...).Value()
}

// length reports a tuple that has too few or too many elements.
func (f *fitter) length(o *value.Object, n int, path string) {
	limit := func(keyword string, otherwise int) int {
		v, ok := o.Get(keyword)
		if number, isNumber := v.AsFloat(); ok && isNumber {
			return int(number)
		}
		return otherwise
	}
	switch least, most := limit("minItems", 0), limit("maxItems", math.MaxInt); {
	case n < least:
		f.fail(path, "must have at least %d elements, not %d", least, n)
	case n > most:
		f.fail(path, "must have at most %d elements, not %d", most, n)
	}
}

func (f *fitter) object(o *value.Object, v value.Value, raw json.RawMessage, path string, depth int) value.Value {
	object := v.AsObject()
	forms, _ := o.Get("properties")
	needed := make(map[string]bool)
	if list, ok := o.Get("required"); ok {
		for _, name := range items(list) {
			if s, ok := name.AsString(); ok {
				needed[s] = true
				if _, given := object.Get(s); !given {
					f.fail(joinPath(path, s), "is missing")
				}
			}
		}
	}
	var raws map[string]json.RawMessage
	_ = json.Unmarshal(raw, &raws) // of an object that was a text there are none
	for name, form := range forms.AsObject().All() {
		member, given := object.Get(name)
		if !given {
			continue
		}
		fitted, g := f.try(form, member, raws[name], joinPath(path, name), depth+1)
		if member.IsNull() && len(g.wrong) > 0 && !needed[name] {
			if !f.o.Known { // a script may have a default besides
				object = object.Without(name)
				f.changed = true
			}
			continue
		}
		f.wrong = append(f.wrong, g.wrong...)
		if g.changed && len(g.wrong) == 0 {
			object = object.Merge(value.ObjectOf(value.Member{Name: name, Value: fitted}))
			f.changed = true
		}
	}
	return object.Value()
}

// reportUndeclared reports the arguments that are not declared.
func (f *fitter) reportUndeclared(form, args value.Value) {
	properties, _ := form.AsObject().Get("properties")
	for name := range args.AsObject().All() {
		if _, ok := properties.AsObject().Get(name); ok {
			continue
		}
		names := []string{}
		for known := range properties.AsObject().All() {
			names = append(names, known)
		}
		f.fail(name, "is not known; known: %s", list(names))
	}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func items(v value.Value) []value.Value {
	list, _ := v.AsList()
	all := make([]value.Value, 0, list.Len())
	for _, item := range list.All() {
		all = append(all, item)
	}
	return all
}

// describeValue returns the type of a value and, of a short one, the value.
func describeValue(v value.Value) string {
	switch v.Kind() {
	case value.Null:
		return "null"
	case value.ListKind, value.ObjectKind:
		return "an " + v.Kind().String()
	case value.Bool:
		return "the boolean " + v.Text()
	}
	return "the " + v.Kind().String() + " " + text.CutRunes(v.String(), 80)
}
