package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
)

// verbatimKey marks an object that stands for a JSON text.
const verbatimKey = "loki.verbatim"

// verbatim returns an object that carries a JSON text through the SDK, which would
// otherwise decode it into maps: integers beyond 2^53 would be rounded and the keys,
// whose order in a schema means something to models, sorted.
func verbatim(text []byte) map[string]any {
	return map[string]any{verbatimKey: string(text)}
}

// verbatimText returns the text that an object of [verbatim] carries.
func verbatimText(object map[string]any) (string, bool) {
	text, ok := object[verbatimKey].(string)
	return text, ok && len(object) == 1
}

// restore puts the texts of all objects of [verbatim] within v, which is of decoded
// JSON, into their places and returns v.
func restore(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := verbatimText(v); ok {
			return json.RawMessage(text)
		}
		for key := range v {
			v[key] = restore(v[key])
		}
	case []any:
		for i := range v {
			v[i] = restore(v[i])
		}
	case []map[string]any: // what the SDK's converters make of a list
		list := make([]any, len(v))
		for i := range v {
			list[i] = restore(v[i])
		}
		return list
	}
	return v
}

// restoreBody is [restore] for the body of a request.
func restoreBody(body map[string]any) map[string]any {
	restore(body)
	return body
}

// object is a JSON object of which only some members are of interest.
type object = map[string]json.RawMessage

// shield makes a reply document safe for the SDK: what its converters take for granted
// is checked, what nobody reads is left out, and the arguments of calls are wrapped by
// [verbatim]. An error means that doc is no reply.
func shield(doc []byte) ([]byte, error) {
	return edit(doc, "candidates", func(list json.RawMessage) (json.RawMessage, error) {
		return each(list, func(candidate object) error {
			keep(candidate, "index", "content", "finishReason")
			return change(candidate, "content", func(content object) error {
				keep(content, "role", "parts")
				parts, err := each(content["parts"], shieldPart)
				content["parts"] = parts
				return err
			})
		})
	}, "candidates", "promptFeedback", "usageMetadata")
}

func shieldPart(part object) error {
	if signature, ok := part["thought_signature"]; ok { // some gateways' spelling
		part["thoughtSignature"] = signature
	}
	keep(part, "text", "thought", "thoughtSignature", "functionCall")
	return change(part, "functionCall", func(call object) error {
		keep(call, "id", "name", "args")
		if args := call["args"]; args != nil {
			var compact bytes.Buffer // replies in one piece are indented
			if err := json.Compact(&compact, args); err != nil {
				return err
			}
			wrapped, err := json.Marshal(verbatim(compact.Bytes()))
			call["args"] = wrapped
			return err
		}
		return nil
	})
}

// edit replaces the member key of the object doc by what f makes of it, and drops all
// other members but those of rest.
func edit(doc []byte, key string, f func(json.RawMessage) (json.RawMessage, error), rest ...string) ([]byte, error) {
	var o object
	if err := json.Unmarshal(doc, &o); err != nil {
		return nil, err
	}
	keep(o, rest...)
	if value, ok := o[key]; ok {
		edited, err := f(value)
		if err != nil {
			return nil, err
		}
		o[key] = edited
	}
	return json.Marshal(o)
}

// change lets f change the member key of o, if it is there and not null.
func change(o object, key string, f func(object) error) error {
	var member object
	if err := unmarshal(o[key], &member); err != nil || member == nil {
		return err
	}
	if err := f(member); err != nil {
		return err
	}
	changed, err := json.Marshal(member)
	o[key] = changed
	return err
}

// each lets f change the objects of a list. An absent list is an empty one.
func each(list json.RawMessage, f func(object) error) (json.RawMessage, error) {
	objects := []object{}
	if err := unmarshal(list, &objects); err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(o object) bool { return o == nil })
	for _, o := range objects {
		if err := f(o); err != nil {
			return nil, err
		}
	}
	return json.Marshal(objects)
}

func unmarshal(data json.RawMessage, v any) error {
	if data == nil {
		return nil
	}
	return json.Unmarshal(data, v)
}

// keep drops the members of o that are null or not among keys: the SDK tells an absent
// member from a null one.
func keep(o object, keys ...string) {
	for key, value := range o {
		if string(value) == "null" || !slices.Contains(keys, key) {
			delete(o, key)
		}
	}
}
