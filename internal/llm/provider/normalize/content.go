package normalize

import "loki/internal/llm/chat"

// Content returns what a message says in an API whose content is a text or a list of
// parts: the text of m as a string, or a []P if there is an image in it, since many servers
// take a list only where they must. text makes a part of a text that is not empty, image of
// a URL; reasoning is left out.
func Content[P any](m chat.Message, text, image func(string) P) any {
	var parts []P
	images := false
	for _, p := range m.Parts {
		switch {
		case p.Type == chat.ImagePart:
			images = true
			parts = append(parts, image(p.URL))
		case p.Type == chat.TextPart && p.Text != "":
			parts = append(parts, text(p.Text))
		}
	}
	if !images {
		return m.Text()
	}
	return parts
}

// ToolImages returns the images in a tool's result, for an API that takes images from the
// user only, behind a text that says whose they are. It returns nil if there are none. text
// and image make parts as for [Content].
func ToolImages[P any](m chat.Message, text, image func(string) P) []P {
	var parts []P
	for _, p := range m.Parts {
		if p.Type != chat.ImagePart {
			continue
		}
		if parts == nil {
			parts = append(parts, text("Images returned by the tool "+m.ToolName+":"))
		}
		parts = append(parts, image(p.URL))
	}
	return parts
}
