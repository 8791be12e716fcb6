package normalize

import (
	"bytes"
	"encoding/json"

	"loki/internal/value"
)

// WithProperties returns the JSON Schema of a tool's parameters with a member properties,
// which some servers require of every object. A schema that has one, or is not an object, is
// returned as it is; of others the result is [ObjectSchema]. Nothing at all, and null, are
// schemas without members.
func WithProperties(schema json.RawMessage) json.RawMessage {
	members, ok := membersOf(schema)
	if !ok || members["properties"] != nil {
		return schema
	}
	return complete(schema, members)
}

// ObjectSchema returns the JSON Schema of a tool's parameters with the members type and
// properties, "object" and {} unless it has them. One that has both is returned as it is,
// and the members of what is changed are sorted. What is not an object counts as a schema
// without members.
func ObjectSchema(schema json.RawMessage) json.RawMessage {
	members, ok := membersOf(schema)
	if !ok {
		members = make(map[string]json.RawMessage)
	}
	return complete(schema, members)
}

// membersOf returns the members of schema, a map of the caller's own, and whether it is
// an object, or nothing.
func membersOf(schema json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	if len(bytes.TrimSpace(schema)) > 0 && json.Unmarshal(schema, &members) != nil {
		return nil, false
	}
	if members == nil {
		members = make(map[string]json.RawMessage)
	}
	return members, true
}

// complete returns schema, whose members are known, with type and properties.
func complete(schema json.RawMessage, members map[string]json.RawMessage) json.RawMessage {
	if members["type"] != nil && members["properties"] != nil {
		return schema
	}
	if members["type"] == nil {
		members["type"] = json.RawMessage(`"object"`)
	}
	if members["properties"] == nil {
		members["properties"] = json.RawMessage("{}")
	}
	out, err := value.Marshal(members)
	if err != nil {
		return schema // cannot happen: the members have been parsed
	}
	return out
}
