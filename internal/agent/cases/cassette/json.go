package cassette

import (
	"strings"

	"loki/internal/base/value"
)

// jsonKey is the only key of a mapping that means the JSON text of its value: the arguments of a call, say, or the result
// of a tool. A mapping that has such a key by itself gets one more dollar sign.
const jsonKey = "$json"

// expandJSON returns v with mappings in place of the texts that are JSON objects.
func expandJSON(v value.Value) value.Value {
	if text, ok := v.AsString(); ok {
		if !strings.HasPrefix(text, "{") {
			return v
		}
		object, err := value.ParseJSON([]byte(text))
		if err != nil || object.AsObject().Len() == 0 || object.String() != text {
			return v
		}
		return one(jsonKey, expandJSON(object))
	}
	single := v.AsObject().Len() == 1
	return rebuilt(v, func(name string, m value.Value) value.Member {
		if single && isJSONKey(name) {
			name = "$" + name
		}
		return value.Member{Name: name, Value: expandJSON(m)}
	}, expandJSON)
}

// collapseJSON is the inverse of opened.
func collapseJSON(v value.Value) value.Value {
	single := v.AsObject().Len() == 1
	if single {
		if text, ok := v.AsObject().Get(jsonKey); ok {
			return value.Of(collapseJSON(text).String())
		}
	}
	return rebuilt(v, func(name string, m value.Value) value.Member {
		if single && isJSONKey(name) {
			name = name[1:]
		}
		return value.Member{Name: name, Value: collapseJSON(m)}
	}, collapseJSON)
}

// rebuilt returns v with the members and items that the functions return in place of v's.
// What is neither an object nor a list stays as it is.
func rebuilt(v value.Value, member func(string, value.Value) value.Member, item func(value.Value) value.Value) value.Value {
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, i := range list.All() {
			items = append(items, item(i))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, m := range o.All() {
		members = append(members, member(name, m))
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
