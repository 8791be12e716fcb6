package expr

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"loki/internal/base/value"
)

// function is what an expression can call.
type function struct {
	least, most  int // number of arguments
	usage        string
	takes, gives Kinds // of the first argument, and of the result, which may also be null
	call         func(x *evaluation, args []value.Value) value.Value
}

var functions = map[string]*function{
	"len":         {1, 1, "len(text, list or object)", Text | List | Object, Number, length},
	"lower":       {1, 1, "lower(text)", Text, Text, ofText(strings.ToLower)},
	"upper":       {1, 1, "upper(text)", Text, Text, ofText(strings.ToUpper)},
	"trim":        {1, 1, "trim(text)", Text, Text, ofText(strings.TrimSpace)},
	"starts":      {2, 2, "starts(text, beginning)", Text, Bool, ofTexts(strings.HasPrefix)},
	"ends":        {2, 2, "ends(text, end)", Text, Bool, ofTexts(strings.HasSuffix)},
	"int":         {1, 1, "int(number or text)", Number | Text, Number, integer(math.Trunc, Number|Text)},
	"float":       {1, 1, "float(number or text)", Number | Text, Number, float},
	"string":      {1, 1, "string(value)", Any, Text, asText},
	"keys":        {1, 1, "keys(object)", Object, List, members(func(m value.Member) value.Value { return value.Of(m.Name) })},
	"values":      {1, 1, "values(object)", Object, List, members(func(m value.Member) value.Value { return m.Value })},
	"any":         {1, 2, "any(list) or any(list, value)", List, Bool, countEqual(func(n, _ int) value.Value { return value.Of(n > 0) })},
	"all":         {1, 2, "all(list) or all(list, value)", List, Bool, countEqual(func(n, of int) value.Value { return value.Of(n == of) })},
	"count":       {1, 2, "count(list) or count(list, value)", List, Number, countEqual(func(n, _ int) value.Value { return value.Of(n) })},
	"min":         {1, 99, "min(list) or min(a, b)", List | Number | Text, Number | Text, extreme(-1)},
	"max":         {1, 99, "max(list) or max(a, b)", List | Number | Text, Number | Text, extreme(1)},
	"sum":         {1, 99, "sum(list) or sum(a, b)", List | Number, Number, sum},
	"abs":         {1, 1, "abs(number)", Number, Number, absolute},
	"round":       {1, 1, "round(number)", Number, Number, integer(math.Round, Number)}, // halves away from zero
	"now_is_past": {1, 1, "now_is_past(time), a text such as 2026-01-31T12:00:00Z", Text, Bool, nowIsPast},
}

// length counts characters, elements or members.
func length(x *evaluation, args []value.Value) value.Value {
	if s, ok := x.text(args[0]); ok {
		return value.Of(utf8.RuneCountInString(s))
	}
	if list, ok := args[0].AsList(); ok {
		return value.Of(list.Len())
	}
	if o := args[0].AsObject(); o != nil {
		return value.Of(o.Len())
	}
	return null
}

func ofText(f func(string) string) func(*evaluation, []value.Value) value.Value {
	return func(x *evaluation, args []value.Value) value.Value {
		if s, ok := x.text(args[0]); ok {
			return value.Of(f(s))
		}
		return null
	}
}

func ofTexts(f func(s, t string) bool) func(*evaluation, []value.Value) value.Value {
	return func(x *evaluation, args []value.Value) value.Value {
		s, ok := x.text(args[0])
		t, both := x.text(args[1])
		return value.Of(ok && both && f(s, t))
	}
}

// numeric returns v if it is a number, the number that a text spells, and null for anything else.
func numeric(v value.Value) value.Value {
	if s, ok := v.AsString(); ok && len(s) < 100 {
		v, _ = value.ParseJSON([]byte(strings.TrimPrefix(strings.TrimSpace(s), "+")))
	}
	if isNumber(v) {
		return v
	}
	return null
}

// integer makes whole numbers of others, and of what else it takes, by rounding them.
func integer(rounding func(float64) float64, takes Kinds) func(*evaluation, []value.Value) value.Value {
	return func(_ *evaluation, args []value.Value) value.Value {
		v := numeric(args[0])
		switch {
		case KindOf(args[0])&takes == 0:
			return null
		case v.Kind() != value.Float:
			return v
		}
		f, _ := v.AsFloat()
		v, _ = value.ParseNumber(strconv.FormatFloat(rounding(f), 'f', -1, 64)) // a float if it does not fit 64 bits
		return v
	}
}

func float(_ *evaluation, args []value.Value) value.Value {
	f, ok := numeric(args[0]).AsFloat()
	if !ok {
		return null
	}
	return value.Of(f)
}

// asText renders a value as templates do, but for null.
func asText(x *evaluation, args []value.Value) value.Value {
	if args[0].IsNull() {
		return null
	}
	s := args[0].Text()
	x.charge(len(s) / 8)
	return value.Of(s)
}

func members(f func(value.Member) value.Value) func(*evaluation, []value.Value) value.Value {
	return func(x *evaluation, args []value.Value) value.Value {
		o := args[0].AsObject()
		if o == nil || x.charge(o.Len()) {
			return null
		}
		var list []value.Value
		for name, v := range o.All() {
			list = append(list, f(value.Member{Name: name, Value: v}))
		}
		return value.ListOf(list...).Value()
	}
}

// countEqual passes on how many elements of a list equal the second argument, or else true, and how many there are.
func countEqual(f func(n, of int) value.Value) func(*evaluation, []value.Value) value.Value {
	return func(x *evaluation, args []value.Value) value.Value {
		list, ok := args[0].AsList()
		if !ok {
			return null
		}
		wanted := append(args, value.Of(true))[1]
		n := 0
		for _, v := range list.All() {
			if x.equal(v, wanted) {
				n++
			}
			if x.charge(0) {
				return null
			}
		}
		return f(n, list.Len())
	}
}

// operands returns the arguments, or the elements of the list that is the only one.
func operands(args []value.Value) value.List {
	if list, ok := args[0].AsList(); ok && len(args) == 1 {
		return list
	}
	return value.ListOf(args...)
}

// extreme returns the smallest (-1) or largest (1) of numbers or of texts, null if there is anything else.
func extreme(sign int) func(*evaluation, []value.Value) value.Value {
	return func(x *evaluation, args []value.Value) (best value.Value) {
		for i, v := range operands(args).All() {
			if i == 0 {
				best = v
			}
			c, ok := x.compare(v, best)
			if !ok || x.charge(1) {
				return null
			}
			if c == sign {
				best = v
			}
		}
		return best
	}
}

func sum(x *evaluation, args []value.Value) value.Value {
	total := value.Of(0)
	for _, v := range operands(args).All() {
		if total = calculate("+", total, v); total.IsNull() || x.charge(2) {
			return null
		}
	}
	return total
}

func absolute(_ *evaluation, args []value.Value) value.Value {
	if f, _ := args[0].AsFloat(); f < 0 {
		return negative(args[0])
	}
	return calculate("+", args[0], value.Of(0))
}

// nowIsPast reports whether a time of RFC 3339 is over.
func nowIsPast(x *evaluation, args []value.Value) value.Value {
	s, _ := args[0].AsString()
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
	if err != nil || x.env.Now.IsZero() {
		return null
	}
	return value.Of(!t.After(x.env.Now))
}
