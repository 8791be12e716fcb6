// Package legacy reads sessions of older versions: one YAML file with the settings and
// all messages.
//
// A message has a role and a content, which is a text, a list of parts (texts and
// images), or a mapping of tool calls with their results.
package legacy

import (
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// File is what such a file holds.
type File struct {
	Settings   session.Settings
	Transcript session.Transcript
	DataURLs   map[string]string // see [session.State]
}

// Parse reads a file. name is for messages. Unknown keys are ignored; the error has
// code Config.
func Parse(name string, src []byte) (File, error) {
	src, images := takeImages(src)
	doc, err := yamldoc.Parse(name, src, yamldoc.HideSource)
	if err != nil {
		return File{}, bad(name, err)
	}
	m := doc.Root().Map()
	m.Require("model", "messages")
	f := File{Settings: settings(m), DataURLs: session.ReadTexts(m.Map("data_urls"))}
	r := reader{images: images}
	f.Transcript.Compacted = r.messages(m.List("compressed_messages"))
	f.Transcript.Live = r.messages(m.List("messages"))
	if err := doc.Err(); err != nil {
		return File{}, bad(name, err)
	}
	return f, nil
}

// settings reads the settings of a session. Those under names that they had in still older
// programs count where the present name is missing.
func settings(m *yamldoc.Map) session.Settings {
	s := session.ReadSettings(m)
	if s.EnabledTools == nil {
		var tools string
		if m.CommaList("use_tools", &tools) {
			s.EnabledTools = &tools
		}
	}
	if s.CompressionThreshold == nil {
		var tokens int
		if m.Uint("compress_threshold", &tokens) {
			s.CompressionThreshold = &tokens
		}
	}
	return s
}

func bad(name string, err error) error {
	return fault.Wrap(fault.Config, err, "the session cannot be read").
		WithHint("repair %s, or move it elsewhere to begin anew", name)
}

// reader converts messages. Calls without an id are given one.
type reader struct {
	images *images
	calls  int
}

func (r *reader) messages(nodes []*yamldoc.Node) []chat.Message {
	var list []chat.Message
	for _, n := range nodes {
		m := n.Map()
		m.Require("role")
		var text string
		m.Text("role", &text)
		role := chat.Role(text)
		switch role {
		case chat.System, chat.User, chat.Assistant, chat.ToolRole:
		case "":
			continue // reported
		default:
			m.Get("role").Errorf("want system, user, assistant or tool, found %q", text)
			continue
		}
		content := m.Get("content")
		if content == nil {
			n.Errorf("required field %q is missing", "content")
			continue
		}
		switch content.Kind() {
		case yamldoc.Mapping:
			list = append(list, r.rounds(content.Map())...)
		case yamldoc.List:
			list = append(list, chat.Message{Role: role, Parts: r.parts(content)})
		case yamldoc.Null:
			list = append(list, chat.Message{Role: role})
		default:
			list = append(list, r.text(role, content))
		}
	}
	return list
}

func (r *reader) text(role chat.Role, n *yamldoc.Node) chat.Message {
	text, _ := n.Text()
	if text == "" {
		return chat.Message{Role: role}
	}
	return chat.Text(role, r.images.restore(text))
}

func (r *reader) parts(n *yamldoc.Node) []chat.Part {
	var parts []chat.Part
	nodes, _ := n.List()
	for _, n := range nodes {
		m := n.Map()
		var kind, text string
		m.Text("type", &kind)
		switch kind {
		case "text":
			m.Text("text", &text)
			parts = append(parts, chat.Part{Type: chat.TextPart, Text: r.images.restore(text)})
		case "image_url":
			m.Map("image_url").Text("url", &text)
			parts = append(parts, chat.Part{Type: chat.ImagePart, URL: r.images.restore(text)})
		default:
			n.Errorf("want a part of type text or image_url, found %q", kind)
		}
	}
	return parts
}
