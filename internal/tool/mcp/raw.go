package mcp

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// rawKey is the member of a result's metadata that holds the result as the server sent it.
const rawKey = "loki/raw"

// keep returns a message of a server in a form that the SDK decodes without a loss. The SDK decodes what tools return, and
// their schemas, into maps and floats, and refuses contents of kinds that it does not know. So their JSON is carried past it as a text, for
// [original]. A version of the protocol that the SDK does not know is replaced by the nearest that it knows, and what a
// server says of itself in another form than the SDK's is left out. The id of an answer that came back as a text is a number again.
func keep(message []byte, log *slog.Logger) []byte {
	message = bytes.TrimPrefix(message, []byte("\ufeff"))
	var m, result map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil {
		return message
	}
	_, asks := m["method"]
	id := bytes.Trim(m["id"], `"`)
	changed := !asks && len(id) < len(m["id"]) && json.Unmarshal(id, new(int64)) == nil
	if changed {
		m["id"] = id
	}
	_ = json.Unmarshal(m["result"], &result)
	var version string
	if json.Unmarshal(result["protocolVersion"], &version) == nil && version != "" {
		changed = understand(result) || changed
		if known := knownVersion(version); known != version {
			log.Warn("the MCP server speaks a version of the protocol that is not known here", "version", text.Cut(version, 100), "treated_as", known)
			result["protocolVersion"], _ = json.Marshal(known)
			changed = true
		}
	}
	carried := false
	for _, name := range []string{"content", "tools", "contents"} {
		if _, ok := result[name]; ok {
			result[name] = json.RawMessage("[]")
			carried = true
		}
	}
	if _, ok := result["structuredContent"]; ok {
		delete(result, "structuredContent")
		result["content"] = json.RawMessage("[]")
		carried = true
	}
	if string(result["resultType"]) == `"task"` {
		result["content"] = json.RawMessage("[]")
		carried = true
	}
	if carried {
		meta := make(map[string]json.RawMessage)
		_ = json.Unmarshal(result["_meta"], &meta)
		if meta == nil {
			meta = make(map[string]json.RawMessage)
		}
		meta[rawKey], _ = value.Marshal(string(m["result"]))
		result["_meta"], _ = value.Marshal(meta)
	}
	if !carried && !changed {
		return message
	}
	if result != nil {
		m["result"], _ = value.Marshal(result)
	}
	if kept, err := value.Marshal(m); err == nil {
		return kept
	}
	return message
}

// understand gives what the result of an initialization says of the server a form that the SDK decodes: a capability
// that is not declared by an object, such as true, becomes {}, and false none. It reports whether it changed result.
func understand(result map[string]json.RawMessage) (changed bool) {
	if json.Unmarshal(result["serverInfo"], new(sdk.Implementation)) != nil {
		delete(result, "serverInfo")
		changed = true
	}
	if json.Unmarshal(result["capabilities"], new(sdk.ServerCapabilities)) == nil {
		return changed
	}
	var can map[string]json.RawMessage
	_ = json.Unmarshal(result["capabilities"], &can)
	for name, v := range can {
		one, _ := json.Marshal(map[string]json.RawMessage{name: v})
		switch {
		case string(v) == "false":
			delete(can, name)
		case json.Unmarshal(one, new(sdk.ServerCapabilities)) != nil:
			can[name] = json.RawMessage("{}")
		}
	}
	result["capabilities"], _ = json.Marshal(can)
	return true
}

// knownVersion returns the version of the protocol that the SDK knows and that is nearest to v, not newer if possible.
// Versions are dates.
func knownVersion(v string) string {
	known := sdk.SupportedProtocolVersions()
	slices.Sort(known)
	nearest := known[0]
	for _, k := range known {
		if k <= v && k <= protocol || k == v {
			nearest = k
		}
	}
	return nearest
}

// original returns the result of a server as it sent it.
func original(result any, meta sdk.Meta) json.RawMessage {
	if raw, ok := meta[rawKey].(string); ok {
		return json.RawMessage(raw)
	}
	raw, _ := json.Marshal(result)
	return raw
}
