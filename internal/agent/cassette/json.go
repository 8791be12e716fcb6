package cassette

import (
	"strings"

	"loki/internal/value"
)

// jsonKey is the only key of a mapping that stands for the JSON text of its value: the arguments of a call, say, or the result
// of a tool. A mapping that has such a key by itself gets one more dollar sign.
const jsonKey = "$json"

// opened returns v with mappings in place of the texts that are JSON objects.
func opened(v value.Value) value.Value {
	if text, ok := v.AsString(); ok {
		if !strings.HasPrefix(text, "{") {
			return v
		}
		object, err := value.ParseJSON([]byte(text))
		if err != nil || object.AsObject().Len() == 0 || object.String() != text {
			return v
		}
		return one(jsonKey, opened(object))
	}
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			items = append(items, opened(item))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, m := range o.All() {
		if o.Len() == 1 && isJSONKey(name) {
			name = "$" + name
		}
		members = append(members, value.Member{Name: name, Value: opened(m)})
	}
	return value.ObjectOf(members...).Value()
}

// closed is the inverse of opened.
func closed(v value.Value) value.Value {
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			items = append(items, closed(item))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, m := range o.All() {
		switch {
		case o.Len() == 1 && name == jsonKey:
			return value.Of(closed(m).String())
		case o.Len() == 1 && isJSONKey(name):
			name = name[1:]
		}
		members = append(members, value.Member{Name: name, Value: closed(m)})
	}
	return value.ObjectOf(members...).Value()
}

func one(name string, v value.Value) value.Value {
	return value.ObjectOf(value.Member{Name: name, Value: v}).Value()
}

// isJSONKey reports whether a name is that of the key for JSON texts, with any number of dollar signs.
func isJSONKey(name string) bool {
	return strings.HasSuffix(name, jsonKey) && strings.Trim(strings.TrimSuffix(name, jsonKey), "$") == ""
}
